"""What two threads gain: in plain loops, and in whole fits next to what the machine has to give.

    python -m benchmarks.threads --data-dir folder                 # every set with more than a million non-zeros
    python -m benchmarks.threads --data-dir folder --only rcv1_subsets

Two processors may be two cores or one core with two threads of its own, and share caches, memory and power either way. So each
fit is also timed while another process makes the same fits, one thread each: two threads cannot gain more than that pair does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import dualfree as df

from .datasets import DataSet, NotComparedError, files_in, load

_MANY = 1_000_000  # non-zeros
_REPEATS = 7
_UNDER_WAY = 0.4  # seconds, after which another process surely is; or is no more


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _gather(x: Any, indices: Any) -> float:
    total = 0.0
    for _ in range(8):
        for i in indices:
            total += x[i]
    return total


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _scatter(x: Any, indices: Any) -> None:
    for _ in range(6):
        for i in indices:
            x[i] += 1e-9


def _product(matrix: Any, out: Any) -> None:
    np.matmul(matrix, matrix, out=out)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def loops() -> None:
    """Print by how much two threads at once are faster than one after the other."""
    rng = np.random.default_rng(0)
    indices, vectors = rng.integers(0, 47_000, 1_000_000), rng.random((2, 47_000))
    matrices = rng.random((2, 600, 600))
    jobs = {
        "matrix product": [partial(_product, matrix, np.empty_like(matrix)) for matrix in matrices],
        "gather": [partial(_gather, vector, indices.copy()) for vector in vectors],
        "scatter": [partial(_scatter, vector, indices.copy()) for vector in vectors],
    }
    with ThreadPoolExecutor(1) as pool:
        for name, (mine, other) in jobs.items():
            mine()  # it may compile

            def both(mine: Callable[[], object] = mine, other: Callable[[], object] = other) -> None:
                running = pool.submit(other)
                mine()
                running.result()

            alone, together = (min(_seconds(work) for _ in range(_REPEATS)) for work in (mine, both))
            print(f"{name:<20} two at once gain {2.0 * alone / together:.2f}", flush=True)


def _keep_fitting(name: str, path: Path, orders: Connection) -> None:
    """Make one-thread fits, the last pair (loss, λn) that came in; stop at None. Runs in a process of its own."""
    data = load(name, path, "float64")
    orders.send("ready")
    with threadpool_limits(1):
        order = orders.recv()
        while order is not None:
            if order == "rest":
                order = orders.recv()
                continue
            _fit(_problem(data, *order), 1)
            if orders.poll():
                order = orders.recv()


def _problem(data: DataSet, loss: str, lam_n: float) -> df.Problem:
    return df.Problem(data.X, data.y, loss=loss, lam=lam_n / data.X.shape[0])


def _fit(problem: df.Problem, n_threads: int) -> df.Result:
    return df.solve(problem, tol=1e-6, random_state=0, n_threads=n_threads)


def fits(data: DataSet, path: Path) -> None:
    """Print the times of whole fits to 1e-6, with one thread and with two in turn, and their ratio.

    The last column is what the machine has to give: how much more two one-thread fits in two processes get done than one.
    """
    context = multiprocessing.get_context("spawn")
    orders, theirs = context.Pipe()
    neighbour = context.Process(target=_keep_fitting, args=(data.name, path, theirs), daemon=True)
    neighbour.start()
    orders.recv()  # what it imports and loads must not be in anybody's time
    for loss in ("logistic", "squared_hinge") if data.task == "binary" else ("squared",):
        for lam_n in (1.0, 0.01):
            problem = _problem(data, loss, lam_n)
            kinds = {"one": 1, "two": 2, "crowded": 1}
            times: dict[str, list[float]] = {kind: [] for kind in kinds}
            epochs: dict[str, int] = {}
            for turn in range(_REPEATS + 1):
                for kind, n_threads in kinds.items():
                    if kind == "crowded":
                        orders.send((loss, lam_n))
                        time.sleep(_UNDER_WAY)
                    began = time.perf_counter()
                    epochs[kind] = _fit(problem, n_threads).n_epochs
                    if turn > 0:  # the first one may compile
                        times[kind].append(time.perf_counter() - began)
                orders.send("rest")
                time.sleep(_UNDER_WAY)
            one, two, crowded = (float(np.median(times[kind])) for kind in kinds)
            print(
                f"{data.name:<20} {loss:<13} λn = {lam_n:<5g} one {1e3 * one:7.1f} ms ({epochs['one']} epochs)"
                f"   two {1e3 * two:7.1f} ms ({epochs['two']})   ratio {one / two:.2f}"
                f"   machine {2.0 * one / crowded:.2f}",
                flush=True,
            )
    orders.send(None)
    neighbour.join()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of .npz files")
    parser.add_argument("--only", help="the name of one data set")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} processors")
    with threadpool_limits(1):
        loops()
        for name, path in files_in(arguments.data_dir).items():
            if arguments.only not in (None, name):
                continue
            try:
                data = load(name, path, "float64")
            except NotComparedError as reason:
                print(reason)
                continue
            if data.nnz > _MANY:
                fits(data, path)


if __name__ == "__main__":
    main()
