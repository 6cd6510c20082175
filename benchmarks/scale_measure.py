"""One fit on a cluster, measured from the client; and the same fit by `dualfree.solve` inside a worker."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import dualfree as df
from dualfree.distributed import Block, Partitions, solve

_TIMEOUT = 600.0
_SETTLE = 0.05  # Dask sends what the fit before has left up to 10 ms late, and whatever comes in between waits for it


@contextmanager
def workers(count: int) -> Iterator[Client]:
    """So many worker processes on this machine, each with one thread, and their client."""
    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(count, timeout=_TIMEOUT)
        yield client


class Stopwatch:
    """Seconds since it was made, by the clock and of the processors; the scheduler runs in the client's process."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cpu = self._cpu()
        self.began = time.perf_counter()

    def _cpu(self) -> float:
        return time.process_time() + sum(self.client.run(time.process_time).values())

    def read(self) -> tuple[float, float]:
        """Return both."""
        seconds = time.perf_counter() - self.began
        return seconds, self._cpu() - self.cpu


@dataclass(frozen=True)
class Resident:
    """Blocks that lie on the workers, with the size of the whole."""

    futures: list[Any]
    rows: int
    d: int
    nnz: int

    @property
    def lam(self) -> float:
        """λ for λn = 1."""
        return 1.0 / self.rows


def put(client: Client, blocks: list[Any]) -> Resident:
    """Have the blocks made, one on each worker."""
    names = sorted(client.scheduler_info(n_workers=-1)["workers"])
    futures = [
        client.compute(block, workers=[names[k % len(names)]], optimize_graph=False) for k, block in enumerate(blocks)
    ]
    shapes = client.gather(client.map(_shape, futures, pure=False))
    return Resident(futures, sum(s[0] for s in shapes), shapes[0][1], sum(s[2] for s in shapes))


def _shape(block: Block) -> tuple[int, int, int]:
    return block.X.shape[0], block.X.shape[1], block.X.nnz


@dataclass(frozen=True)
class Measured:
    """One fit.

    `seconds` is the whole call, from rows that lie on the workers as they were read to the certified weights. Of it,
    `round_seconds` and `evaluation_seconds` went to rounds and certificates. `cpu_seconds` is what client, scheduler and
    workers computed meanwhile, all together: other programs disturb it less than the clock. `n_bytes` are vectors,
    by their size; `wire_bytes` is what went over the loopback device meanwhile (None where the system does not say).
    """

    seconds: float
    cpu_seconds: float
    rounds: int
    passes: float
    round_seconds: float
    evaluation_seconds: float
    n_bytes: int
    wire_bytes: int | None
    gap: float
    primal: float
    dual: float
    reached: bool


def on_cluster(client: Client, data: Resident, tol: float, max_rounds: int = 1000) -> Measured:
    """Fit the logistic model at λn = 1 to a relative gap."""
    time.sleep(_SETTLE)
    wire, clock = _loopback_bytes(), Stopwatch(client)
    found = solve(
        Partitions(data.futures),
        loss="logistic",
        lam=data.lam,
        tol=tol,
        max_rounds=max_rounds,
        random_state=0,
        client=client,
        timeout=_TIMEOUT,
    )
    seconds, cpu_seconds = clock.read()
    after = _loopback_bytes()
    last = found.trace[-1]
    return Measured(
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        rounds=found.n_rounds,
        passes=last.passes / max(1, found.n_rounds),
        round_seconds=last.seconds,
        evaluation_seconds=last.evaluation_seconds,
        n_bytes=found.bytes_moved,
        wire_bytes=None if wire is None or after is None else after - wire,
        gap=found.certificate.relative_gap,
        primal=found.certificate.primal,
        dual=found.certificate.primal - found.certificate.gap,
        reached=found.certificate.relative_gap <= tol,
    )


def in_worker(client: Client, data: Resident, tol: float) -> tuple[float, float]:
    """Return the seconds of `dualfree.solve` on the only block, by the clock and of the processor of its worker."""
    return client.submit(_solve_locally, data.futures[0], data.lam, tol, pure=False).result()


def _solve_locally(block: Block, lam: float, tol: float) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    found = df.solve(df.Problem(block.X, block.y, loss="logistic", lam=lam), tol=tol, random_state=0)
    seconds = time.perf_counter() - began, time.process_time() - cpu
    if found.certificate.relative_gap > tol:
        raise RuntimeError(f"dualfree.solve ended at a gap of {found.certificate.relative_gap:.1e}: {found.message}")
    return seconds


def primal(client: Client, data: Resident, w: np.ndarray) -> float:
    """Return P(w), summed on the workers."""
    sent = client.scatter(w, broadcast=True, hash=False)
    sums = client.gather([client.submit(_losses, block, sent, pure=False) for block in data.futures])
    return sum(sums) / data.rows + data.lam / 2 * float(w @ w)


def _losses(block: Block, w: np.ndarray) -> float:
    return float(np.logaddexp(0.0, -block.y * (block.X @ w)).sum())


def _loopback_bytes() -> int | None:
    """Bytes that the loopback device has received; everything between processes of one machine goes that way."""
    try:
        lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        device, _, numbers = line.partition(":")
        if device.strip() == "lo":
            return int(numbers.split()[0])
    return None
