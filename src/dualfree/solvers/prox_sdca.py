"""Prox-SDCA (Shalev-Shwartz and Zhang 2014): maximise the dual exactly along one coordinate after another.

Rows are visited in a new random permutation each epoch (``order="permutation"``, the stronger choice in practice) or drawn
independently (``order="uniform"``, as in the paper's experiments).
"""

from __future__ import annotations

import numpy as np

from .._checks import Array, one_of
from ..problem import Problem
from ..rows import number_type
from ..sampling.permutation import shuffle, shuffle_runs
from .base import RandomNumbers
from .exact_steps import ExactSteps, run_length


class ProxSdca(ExactSteps):
    """Exact coordinate steps of the dual."""

    name = "prox-sdca"

    def __init__(self, problem: Problem, rng: RandomNumbers, *, order: str = "permutation") -> None:
        super().__init__(problem, rng)
        self.order = one_of("order", order, ("permutation", "uniform"))
        if self.order == "permutation":
            self.permutation = np.arange(problem.n, dtype=number_type(problem.n))

    def begin_epoch(self) -> None:
        """Shuffle the rows."""
        super().begin_epoch()
        self.position = 0
        if self.order == "permutation":
            self._shuffle()

    def _shuffle(self) -> None:
        shuffle(self.permutation, self.rng)

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        if self.order == "permutation":
            order = self.permutation[self.position : self.position + count]
            self.position += count
        else:
            n = self.problem.n
            order = self.rng.integers(n, size=count, dtype=number_type(n))
        self._make_steps(order)


class Permutations(ProxSdca):
    """Prox-SDCA for `auto`: steps may be a little short of exact, and rows come in short runs, where that saves time."""

    exactly = False

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.length = run_length(problem)
        self.visit_only(self.permutation)

    def visit_only(self, chosen: Array) -> None:
        """Leave the other rows as they are."""
        self.permutation = chosen.astype(self.permutation.dtype, copy=False)
        self.everyone = self.permutation.copy() if self.length > 1 else self.permutation

    def _shuffle(self) -> None:
        if self.length > 1:
            shuffle_runs(self.everyone, self.permutation, self.length, self.rng)
        else:
            super()._shuffle()
