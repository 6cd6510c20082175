"""What two threads gain: in plain loops, and in whole fits next to what the machine has to give.

    python -m benchmarks.threads --data-dir folder                 # every set with more than a million non-zeros
    python -m benchmarks.threads --data-dir folder --only rcv1_subsets

Two processors may be two cores or one core with two threads of its own, and share caches, memory and power either way; a
virtual machine's may be the one at one moment and the other at the next. So each fit is also timed while another process makes
the same fits, one thread each: two threads cannot gain more than that pair does. And fits are repeated many times: the ratio of
medians says what was had here and now, that of the quickest ones what is had where nobody disturbs. How long it takes to hand a
number over, before the fits of a set and between them, tells whether the processors have a cache in common: some 50 ns if so,
some 250 if not, and threads that put their weights together wait accordingly.
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
from dualfree.atomics import acquire, release

from .datasets import DataSet, NotComparedError, files_in, load

_MANY = 1_000_000  # non-zeros
_REPEATS, _MOST_REPEATS, _SECONDS = 7, 60, 8.0  # of fits: no fewer, no more, and about as long as this
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


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _to_and_fro(own: int, places: Any, times: int) -> None:
    """Of two threads each writes a number when it has seen the other's; their places are on cache lines of their own."""
    mine, other = np.uintp(places[own].ctypes.data), np.uintp(places[1 - own].ctypes.data)
    for k in range(times):
        if own == 0:
            release(mine, k + 1)
        while acquire(other) < k + 1:
            pass
        if own == 1:
            release(mine, k + 1)


def hand_over(times: int = 20_000) -> float:
    """Return the nanoseconds that it takes until one processor sees what the other has written."""
    with ThreadPoolExecutor(1) as pool:
        for rounds in (1, times):  # the first compiles
            places = np.zeros((2, 64), dtype=np.int64)
            running = pool.submit(_to_and_fro, 1, places, rounds)
            seconds = _seconds(partial(_to_and_fro, 0, places, rounds))
            running.result()
    return 1e9 * seconds / (2 * times)


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
            _fit(_problem(data, *order), 1, 0)
            if orders.poll():
                order = orders.recv()


def _problem(data: DataSet, loss: str, lam_n: float) -> df.Problem:
    return df.Problem(data.X, data.y, loss=loss, lam=lam_n / data.X.shape[0])


def _fit(problem: df.Problem, n_threads: int, seed: int) -> df.Result:
    return df.solve(problem, tol=1e-6, random_state=seed, n_threads=n_threads)


class _Times:
    """How long a fit takes with so many threads, time after time, with another seed each; the first, which may compile, not."""

    def __init__(self, problem: df.Problem, n_threads: int) -> None:
        self.problem, self.n_threads = problem, n_threads
        self.seconds: list[float] = []
        self.all_epochs: list[int] = []
        _fit(problem, n_threads, 0)

    def add(self) -> None:
        """Fit once more."""
        began = time.perf_counter()
        result = _fit(self.problem, self.n_threads, len(self.seconds))
        self.seconds.append(time.perf_counter() - began)
        self.all_epochs.append(result.n_epochs)

    @property
    def epochs(self) -> float:
        return float(np.mean(self.all_epochs))

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def least(self) -> float:
        return min(self.seconds)


def fits(data: DataSet, path: Path) -> None:
    """Print the times of whole fits to 1e-6, with one thread and with two in turn, and their ratio; and its mean over the fits.

    The last column is what the machine has to give: how much more two one-thread fits in two processes get done than one.
    """
    context = multiprocessing.get_context("spawn")
    orders, theirs = context.Pipe()
    neighbour = context.Process(target=_keep_fitting, args=(data.name, path, theirs), daemon=True)
    neighbour.start()
    orders.recv()  # what it imports and loads must not be in anybody's time
    ratios = []
    near = [hand_over()]
    for loss in ("logistic", "squared_hinge") if data.task == "binary" else ("squared",):
        for lam_n in (1.0, 0.01):
            problem = _problem(data, loss, lam_n)
            one, two, crowded = _Times(problem, 1), _Times(problem, 2), _Times(problem, 1)
            turns = 0
            while turns < _REPEATS or (turns < _MOST_REPEATS and sum(one.seconds + two.seconds) < _SECONDS):
                turns += 1
                one.add()
                two.add()
                if turns % (_MOST_REPEATS // _REPEATS) == 0 or turns <= _REPEATS // 2:
                    orders.send((loss, lam_n))
                    time.sleep(_UNDER_WAY)
                    crowded.add()
                    orders.send("rest")
                    time.sleep(_UNDER_WAY)
            print(
                f"{data.name:<20} {loss:<13} λn = {lam_n:<5g} one {1e3 * one.median:7.1f} ms ({one.epochs:.1f} epochs)"
                f"   two {1e3 * two.median:7.1f} ms ({two.epochs:.1f})   ratio {one.median / two.median:.2f}"
                f"   quickest {one.least / two.least:.2f}   machine {2.0 * one.median / crowded.median:.2f}",
                flush=True,
            )
            ratios.append(one.median / two.median)
            near.append(hand_over())
    mean = np.exp(np.mean(np.log(ratios)))
    handed_over = ", ".join(f"{nanoseconds:.0f}" for nanoseconds in near)
    print(
        f"{data.name:<20} geometric mean of the ratios {mean:.2f}   a number handed over in {handed_over} ns",
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
