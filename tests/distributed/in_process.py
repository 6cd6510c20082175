"""A cluster without Dask: every stage runs in this process, one partition after another. For tests of the mathematics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dualfree as df
from dualfree.distributed import DistributedResult, RoundState
from dualfree.distributed.part import Part
from dualfree.distributed.partitions import Block
from dualfree.distributed.progress import ProgressLine
from dualfree.distributed.reply import Reply, fold
from dualfree.distributed.rounds import Rounds
from dualfree.distributed.setup import Asked, spec_of_cluster
from dualfree.distributed.summary import summarise


class InProcess:
    """Stands in for `distributed.cluster.Cluster`."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts, self.places, self.bytes_moved, self.stages = parts, [""] * len(parts), 0, 0
        self.before_stage: Callable[[InProcess, str], None] = lambda cluster, name: None

    def stage(
        self, name: str, task: Callable[..., Reply], *arguments: Any, w: Any = None, reply_bytes: Any = None
    ) -> Reply:
        self.stages += 1
        self.before_stage(self, name)
        vectors = [] if w is None else [w]
        return fold([task(part, *arguments, *vectors) for part in self.parts])

    def patiently(self, ask: Callable[[], Any]) -> Any:
        return ask()

    def spread(self) -> None:
        """There is one place only."""

    def keep(self, chosen: list[int]) -> None:
        self.parts = [self.parts[k] for k in chosen]


def parts_of(problem: df.Problem, count: int) -> list[Part]:
    edges = np.linspace(0, problem.n, count + 1).astype(int)
    return [
        Part(Block(problem.X[a:b], problem.y[a:b], problem.sample_weight[a:b]), k, problem.loss, problem.d)
        for k, (a, b) in enumerate(itertools.pairwise(edges))
    ]


def solve_in_process(
    problem: df.Problem,
    count: int,
    *,
    tol: float = 1e-8,
    rounds: int = 1000,
    passes: float = 2,
    depth: int = 5,
    newton: bool = True,
    callback: Callable[[RoundState], Any] | None = None,
    before_stage: Callable[[InProcess, str], None] | None = None,
) -> DistributedResult:
    """The rounds of a distributed fit."""
    cluster: Any = InProcess(parts_of(problem, count))
    summary = summarise(cluster)
    spec = spec_of_cluster(cluster, summary, Asked(problem.loss, problem.lam, problem.fit_intercept, None, 0))
    if before_stage is not None:
        cluster.before_stage = before_stage
    fit = Rounds(
        cluster,
        spec,
        summary,
        passes=passes,
        depth=depth,
        tol=tol,
        max_rounds=rounds,
        deadline=math.inf,
        callback=callback,
        checkpoint=None,
        progress=ProgressLine(False, tol),
    )
    if not newton:
        fit._choose_method = lambda: None  # type: ignore[method-assign]
    with np.errstate(over="ignore", invalid="ignore"):
        return fit.go()
