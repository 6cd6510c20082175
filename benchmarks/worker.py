"""Fits in a process of their own, so that a fit can be timed in peace, and ended when it takes too long.

A solver that is in compiled code hears no signal; the only way to stop it is to end its process. A fresh process is
cheap: it is forked from a server that has imported all peers, but has never solved anything (so no thread pool has been
started in it), with the limits on threads in its environment from the beginning.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .datasets import DataSet, load
from .grid import Cell
from .peers import OURS, Answer, Task, installed, peer_named

installed()  # when the server of processes imports this file, all peers are imported with it

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
# A new process runs the main program's file up to its last import; with these in place that takes no time.
_ALSO_IMPORTED = ("benchmarks.markdown", "benchmarks.measure", "benchmarks.results")
_WARM_UP_ROWS = 300
_WARM_UP_TOL = 1e-2
_MESSAGE_SECONDS = 0.05  # between two processes
_WARM_UP_SECONDS = 600.0  # compiling for the first time on a machine


@dataclass(frozen=True)
class Job:
    """A fit to be timed."""

    cell: Cell
    solver: str
    tol: float


@dataclass(frozen=True)
class Fit:
    """A fit that ended."""

    seconds: float
    answer: Answer


@dataclass(frozen=True)
class Failure:
    """A fit that gave no answer; `note` says why."""

    note: str
    too_slow: bool = False


def limit_threads(threads: int) -> None:
    """Set the environment of all processes that are started from now on."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)), DUALFREE_QUIET="1")


def task_of(data: DataSet, cell: Cell) -> Task:
    """Return the problem of a cell."""
    return Task(data.X, data.y, cell.loss, cell.lam_n / data.X.shape[0], cell.intercept, cell.threads)


class Worker:
    """A process that holds one data set and runs one fit at a time. A new one is started when it had to be ended."""

    def __init__(self, name: str, path: Path, dtype: str, threads: int) -> None:
        self._arguments = (name, path, dtype, threads)
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload([__name__, *_ALSO_IMPORTED])
        self._process: Any = None
        self._connection: Connection | None = None

    def fit(self, job: Job, limit: float) -> Fit | Failure:
        """Run the job; give up on it after `limit` seconds, not counting the warm-up of a solver that is new here."""
        if self._connection is None:
            self._connection, theirs = self._context.Pipe()
            self._process = self._context.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._connection.send(job)
            if not self._connection.poll(_WARM_UP_SECONDS):
                self.close()
                return Failure(f"no answer to a warm-up after {_WARM_UP_SECONDS:g} s", too_slow=True)
            self._connection.recv()
            if not self._connection.poll(limit + _MESSAGE_SECONDS):
                self.close()
                return Failure(f"more than {limit:.3g} s", too_slow=True)
            outcome: Fit | Failure = self._connection.recv()
            return outcome
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            self.close()
            return Failure(f"its process ended with code {code}")

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
        self._connection = self._process = None


def _serve(connection: Connection, name: str, path: Path, dtype: str, threads: int) -> None:
    data = load(name, path, dtype)
    warm: set[Any] = set()
    with threadpool_limits(threads):
        while True:
            try:
                job: Job = connection.recv()
            except EOFError:
                return
            solver = job.solver, job.cell.loss, job.cell.intercept
            if solver not in warm:
                warm.add(solver)
                timed(Job(job.cell, job.solver, _WARM_UP_TOL), _few_rows(data))
            if job.solver == OURS and job not in warm:
                # Which phases a run goes through, and so what is compiled, depends on all rows, on λ and on the tolerance.
                warm.add(job)
                timed(job, data)
            gc.collect()
            gc.freeze()  # what is there stays there; collecting again then costs nothing
            connection.send("begins")
            connection.send(timed(job, data))


def timed(job: Job, data: DataSet) -> Fit | Failure:
    """Run a job here and now."""
    task = task_of(data, job.cell)
    peer = peer_named(job.solver, job.cell.loss)
    gc.disable()
    try:
        began = time.perf_counter()
        answer = peer.fit(task, job.tol)
        seconds = time.perf_counter() - began
    except Exception as error:  # a peer may raise whatever it likes; the cell then says so
        return Failure(f"{type(error).__name__}: {error}")
    finally:
        gc.enable()
    if not (np.isfinite(answer.w).all() and np.isfinite(answer.intercept)):
        return Failure("its weights are not finite")
    return Fit(seconds, answer)


def _few_rows(data: DataSet) -> DataSet:
    """Rows enough to run every line of a solver once, both classes among them."""
    rows = np.linspace(0, data.y.size - 1, min(_WARM_UP_ROWS, data.y.size)).astype(int)
    if data.task == "binary":
        rows = np.union1d(rows, [int(np.argmax(data.y)), int(np.argmin(data.y))])
    return DataSet(data.name, data.task, data.X[rows], data.y[rows])
