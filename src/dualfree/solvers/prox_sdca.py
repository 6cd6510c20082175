"""Prox-SDCA (Shalev-Shwartz and Zhang 2014): maximise the dual exactly along one coordinate after another.

Rows are visited in a new random permutation each epoch (``order="permutation"``, the stronger choice in practice) or drawn
independently (``order="uniform"``, as in the paper's experiments).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._checks import Array, one_of
from .._jit import device, kernel
from ..problem import Problem
from ..rows import number_type
from ..sampling.permutation import shuffle, shuffle_from, shuffle_runs, shuffle_runs_from
from .base import RandomNumbers
from .dealing import ONE_EACH, Visits
from .exact_steps import ExactSteps, run_length
from .visits import visit_rows

# The gap that an epoch leaves, in what its rows had in the gap when they were visited: the first part of that, and the second
# times the ratio of this sum to that of the epoch before. That ratio, until it is known.
_FRESH, _STALE, _QUICK = 0.07, 0.85, 0.25
# Entries that one call may visit, about a quarter of a millisecond's worth; a visit counts as so many besides its own.
_AT_ONCE, _ENTRIES_PER_ROW = 1 << 18, 10


class ProxSdca(ExactSteps):
    """Exact coordinate steps of the dual."""

    name = "prox-sdca"

    def __init__(self, problem: Problem, rng: RandomNumbers, *, order: str = "permutation") -> None:
        super().__init__(problem, rng)
        self.order = one_of("order", order, ("permutation", "uniform"))
        self.rate, self.misfit_before, self.knows_gap = _QUICK, 0.0, False
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

    def end_epoch(self) -> None:
        """Say about how large the gap is."""
        super().end_epoch()
        self._guess_gap()

    def _guess_gap(self) -> None:
        """Of an epoch that was cut short: that it has made its part of what a whole one would have.

        A row that has just been visited has nothing left in the gap, one that waits gets more by the visit: what the rows had
        when they were visited is what those have that have waited longest. Where the gap falls quickly, most of what they had
        is from before the epoch.
        """
        if not math.isfinite(self.misfit):  # numbers so large that their squares overflow
            self.activity, self.misfit_before, self.knows_gap = None, 0.0, False
        elif self.part_wanted < 1.0:
            left = self.rate**self.part_wanted
            self.misfit_before *= left
            self.activity = (self.activity or 0.0) * left
        else:
            known, self.rate = self.misfit_before > 0.0, rate_of(self.misfit, self.misfit_before)
            self.activity, self.misfit_before = gap_left(self.misfit, self.rate), self.misfit
            self.knows_gap = known and self.order == "permutation" and np.isfinite(self.problem.loss.smoothness)
        self.guess = self.activity if self.knows_gap else None


def rate_of(misfit: float, before: float) -> float:
    """By what an epoch multiplied the gap, about: what its rows had in it, relative to those of the epoch before."""
    return min(1.0, misfit / before) if before > 0.0 else _QUICK


def gap_left(misfit: float, rate: float) -> float:
    """About the gap after an epoch."""
    return misfit * (_FRESH + _STALE * rate)


_rate_of, _gap_left = device(rate_of), device(gap_left)  # for kernels; from Python, a call of these takes microseconds


class Permutations(ProxSdca):
    """Prox-SDCA for `auto`: steps may be a little short of exact or beyond, rows come in short runs, a last epoch is short."""

    exactly = False
    may_shorten = True

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.length = run_length(problem)
        self.epochs_so_far = 0
        self.part = (0.0, 1.0)  # of the permutation, that this epoch is about
        self.visit_only(self.permutation)

    def visit_only(self, chosen: Array) -> None:
        """Leave the other rows as they are."""
        self.permutation = chosen.astype(self.permutation.dtype, copy=False)
        self.everyone = self.permutation.copy() if self.length > 1 else self.permutation

    def begin_epoch(self) -> None:
        """Shuffle the rows. A short epoch does without, if it can: it begins with the rows that have waited longest."""
        end = self.part[1] % 1.0  # where the last one ended; all of it is as none
        self.goes_on = self.part_wanted < 1.0 and end + self.part_wanted <= 1.0 and self.epochs_so_far > 0
        begin = end if self.goes_on else 0.0
        self.part = (begin, begin + self.part_wanted)
        super().begin_epoch()
        self.position = math.ceil(begin * self.permutation.size)

    def _shuffle(self) -> None:
        if self.threads_shuffle or self.goes_on:
            return
        if self.length > 1:
            shuffle_runs(self.everyone, self.permutation, self.length, self.rng)
        else:
            super()._shuffle()

    def visit(self, count: int) -> None:
        """Make `count` updates; or several epochs, where they are as short as what the interpreter does for one."""
        size = self.permutation.size
        epochs = self._epochs_at_once() if count == size and self.part_wanted == 1.0 else 1
        if epochs > 1:
            self._make_epochs(epochs)
        else:
            self.epochs_made = 1
            if self.threads_shuffle:
                self._make_steps_together(Visits(self.everyone, ONE_EACH, size, self.length, self.part, self.goes_on))
            else:
                super().visit(min(count, max(0, math.ceil(self.part[1] * size) - self.position)))
        self.epochs_so_far += self.epochs_made

    def _epochs_at_once(self) -> int:
        """How many epochs one call may make: no more than there have been, so that the gaps between calls tell a rate."""
        problem = self.problem
        if self.team.size > 1 or self.enough_activity == np.inf:
            return 1
        short = _AT_ONCE // (problem.nnz + _ENTRIES_PER_ROW * problem.n)
        return max(1, min(self.epochs_allowed, self.epochs_so_far, short))

    def _make_epochs(self, most: int) -> None:
        """Make up to so many epochs in one call, the first in the order that there is."""
        drift, self.drift = self.drift, None
        seeds = self.rng.integers(2**64, size=most, dtype=np.uint64)
        enough, before = (number * self.problem.n for number in (self.enough_activity, self.misfit_before))
        orders = (self.everyone, self.permutation, self.length, seeds)
        point = (self.alpha, self.w, self.offset)
        how = (self._inverse_smoothness, self.part_of_q)
        made, self.intercept, way, *found, before = _epochs(
            self.data, how, orders, before, enough, self.problem.fit_intercept, self.intercept, point
        )
        self.epochs_made = made
        visits = made * self.permutation.size
        self._account(drift, visits, way, found, visits)
        self.misfit_before = before / self.problem.n


@kernel
def _epochs(
    data: Any, how: Any, orders: Any, before: float, enough: float, fit_intercept: bool, b: float, point: Any
) -> tuple[int, float, float, float, float, float]:
    """Make epochs until n times the gap is about `enough`, `before` being n times the misfit of the epoch before.

    Return how many, b, Σ |c| ‖x_i‖, n times the last gain of D and the last misfit, and `before` the last one. After each epoch
    but the last b makes the step that `Solver.end_epoch` makes.
    """
    rows, loss, y, s, v, scale, extra = data
    source, order, length, seeds = orders
    alpha, w, offset = point
    made, travelled, gained, misfit, left = 0, 0.0, 0.0, before, np.inf
    while made < seeds.size and left > enough:
        if made > 0:
            if fit_intercept:
                constant = extra * scale * alpha.sum()
                b += constant
                offset[0] = b + constant
            if length > 1:
                shuffle_runs_from(source, order, length, seeds[made])
            else:
                shuffle_from(order, seeds[made])
        before = misfit
        way, gained, misfit = visit_rows(rows, loss, y, s, v, scale, extra, False, *how, order, alpha, w, offset)
        left = _gap_left(misfit, _rate_of(misfit, before))
        travelled += way
        made += 1
    return made, b, travelled, gained, misfit, before
