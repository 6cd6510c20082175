"""Small clusters and partitions for the tests of this folder."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

import dualfree as df
from dualfree.distributed import Block, Partitions


@contextmanager
def small_cluster(workers: int = 2, *, processes: bool = False, **options: Any) -> Iterator[Client]:
    """A cluster on this machine, and its client.

    `LocalCluster` looks after a worker 15 s after it was lost. Where that worker has come back and is lost once more at that
    very moment, it would close the nanny for good; hence the longer time.
    """
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}):
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=processes, dashboard_address=":0", **options
        )
        try:
            with Client(cluster) as client:
                yield client
        finally:
            with contextlib.suppress(
                KeyError
            ):  # Dask's own, about a worker that was killed before the cluster knew of it
                cluster.close()


def cut(X: Any, start: int, stop: int, y: Any, sample_weight: Any) -> Block:
    return Block(X[start:stop], y[start:stop], None if sample_weight is None else sample_weight[start:stop])


def partitions_of(problem: df.Problem, count: int, labels: Any = None) -> Partitions:
    """The rows of a problem in `count` blocks of nearly the same size, each made on a worker."""
    y = problem.y if labels is None else labels
    edges = np.linspace(0, problem.n, count + 1).astype(int)
    made = dask.delayed(cut)
    return Partitions([made(problem.X, a, b, y, problem.sample_weight) for a, b in itertools.pairwise(edges)])


def tasks_left(client: Client, patience: float = 10.0) -> list[str]:
    """Keys of this package that the scheduler still knows once it has had time to hear that they are not wanted."""

    def ours(dask_scheduler: Any) -> list[str]:
        return [str(key) for key in dask_scheduler.tasks if "dualfree" in str(key)]

    end = time.monotonic() + patience
    while (left := client.run_on_scheduler(ours)) and time.monotonic() < end:
        time.sleep(0.05)
    return left
