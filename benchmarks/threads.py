"""What two threads gain: in plain loops, which is what the machine has to give, and in whole fits.

    python -m benchmarks.threads --data-dir folder                 # every set with more than a million non-zeros
    python -m benchmarks.threads --data-dir folder --only rcv1_subsets

Two processors may be two cores or one core with two threads of its own; a matrix product tells them apart on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import dualfree as df

from .datasets import DataSet, NotComparedError, files_in, load

_MANY = 1_000_000  # non-zeros
_REPEATS = 5


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


def fits(data: DataSet) -> None:
    """Print the times of whole fits to 1e-6, with one thread and with two in turn, and their ratio."""
    for loss in ("logistic", "squared_hinge") if data.task == "binary" else ("squared",):
        for lam_n in (1.0, 0.01):
            problem = df.Problem(data.X, data.y, loss=loss, lam=lam_n / data.X.shape[0])
            times: dict[int, list[float]] = {1: [], 2: []}
            epochs: dict[int, int] = {}
            for turn in range(_REPEATS + 1):
                for n_threads in times:
                    began = time.perf_counter()
                    result = df.solve(problem, tol=1e-6, random_state=0, n_threads=n_threads)
                    epochs[n_threads] = result.n_epochs
                    if turn > 0:  # the first one may compile
                        times[n_threads].append(time.perf_counter() - began)
            one, two = (float(np.median(times[k])) for k in (1, 2))
            print(
                f"{data.name:<20} {loss:<13} λn = {lam_n:<5g} one {1e3 * one:7.1f} ms ({epochs[1]} epochs)"
                f"   two {1e3 * two:7.1f} ms ({epochs[2]})   ratio {one / two:.2f}",
                flush=True,
            )


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
                fits(data)


if __name__ == "__main__":
    main()
