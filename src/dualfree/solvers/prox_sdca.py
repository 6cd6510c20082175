"""Prox-SDCA (Shalev-Shwartz and Zhang 2014): maximise the dual exactly along one coordinate after another.

Rows are visited in a new random permutation each epoch (``order="permutation"``, the stronger choice in practice) or drawn
independently (``order="uniform"``, as in the paper's experiments).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._checks import Array, one_of
from .._jit import kernel
from ..problem import Problem
from ..rows import number_type
from ..sampling.permutation import shuffle, shuffle_from, shuffle_runs, shuffle_runs_from
from .base import ENTRIES_PER_CALL, RandomNumbers
from .dealing import ONE_EACH, Visits
from .exact_steps import ExactSteps, run_length
from .guesses import UNKNOWN_RATE, evenness_of, gap_left, goes_on, left_after, rate_of
from .together import Epochs
from .visits import move_intercept, visit_rows

# Entries that one call may visit, about a quarter of a millisecond's worth; a visit counts as so many besides its own.
_AT_ONCE, _ENTRIES_PER_ROW = 1 << 18, 10


class ProxSdca(ExactSteps):
    """Exact coordinate steps of the dual."""

    name = "prox-sdca"

    def __init__(self, problem: Problem, rng: RandomNumbers, *, order: str = "permutation") -> None:
        super().__init__(problem, rng)
        self.order = one_of("order", order, ("permutation", "uniform"))
        self.rate, self.misfit_before, self.knows_gap = UNKNOWN_RATE, 0.0, False
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
            self.knows_gap = known and self.order == "permutation" and self._is_smooth
        self.guess = self.activity if self.knows_gap else None


class Permutations(ProxSdca):
    """Prox-SDCA for `auto`: steps may be a little short of exact or beyond, rows come in short runs, a last epoch is short."""

    exactly = False
    may_shorten = True

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.length = run_length(problem)
        self.epochs_so_far = 0
        self.seeds = np.empty(0, dtype=np.uint64)
        self.part = (0.0, 1.0)  # of the permutation, that this epoch is about
        self.visit_only(self.permutation)

    def visit_only(self, chosen: Array) -> None:
        """Leave the other rows as they are."""
        self.permutation = chosen.astype(self.permutation.dtype, copy=False)
        self.everyone = self.permutation.copy() if self.length > 1 else self.permutation

    @property
    def _visits_of_epoch(self) -> int:
        return self.permutation.size

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
        most = self._epochs_at_once() if count == size and self.part_wanted == 1.0 else 1
        self.epochs_made = 1
        if self.threads_shuffle:
            visits = Visits(self.everyone, ONE_EACH, size, self.length, self.part, self.goes_on)
            self._hear_of_epochs(*self._make_steps_together(visits, self._epochs(most)))
        elif most > 1:
            self._make_epochs(most)
        else:
            super().visit(min(count, max(0, math.ceil(self.part[1] * size) - self.position)))
        self.epochs_so_far += self.epochs_made

    def _epochs_at_once(self) -> int:
        """How many epochs one call may make.

        Until the first certificate nobody wants to know of each, as long as Ctrl-C is heard in time. Then short ones, no more
        than there have been, so that the gaps between calls tell a rate.
        """
        problem = self.problem
        each = problem.nnz + _ENTRIES_PER_ROW * problem.n
        if self.enough_guessed > 0.0 and self._is_smooth:
            return max(1, min(self.epochs_allowed, ENTRIES_PER_CALL // each))
        if self._has_threads or self.enough_activity == np.inf:
            return 1
        return max(1, min(self.epochs_allowed, self.epochs_so_far, _AT_ONCE // each))

    def _epochs(self, most: int) -> Epochs:
        """What a call needs to know that makes up to so many epochs."""
        n, missing = self.problem.n, most - self.seeds.size
        if missing > 0:
            self.seeds = np.concatenate((self.seeds, self.rng.integers(2**64, size=missing, dtype=np.uint64)))
        left = n * self.activity if self.activity is not None else math.inf
        return Epochs(
            self.seeds[:most], n * self.misfit_before, left, n * self.enough_activity, n * self.enough_guessed
        )

    def _hear_of_epochs(self, made: int, misfit_before: float, left_before: float) -> None:
        """Hear how many were made and, of the last but one, n times its misfit and what it left of the gap, about."""
        n = self.problem.n
        self.seeds = self.seeds[made:]  # the next call takes the others: its epochs are those of single calls
        self.epochs_made, self.misfit_before, self.activity_before = made, misfit_before / n, left_before / n

    def _make_epochs(self, most: int) -> None:
        """Make up to so many epochs in one call, the first in the order that there is."""
        drift, self.drift = self.drift, None
        orders = (self.everyone, self.permutation, self.length)
        point = (self.alpha, self.w, self.offset)
        how = (self._inverse_smoothness, self.part_of_q)
        made, self.intercept, way, *found, misfit_before, left_before = _make_epochs(
            self.data, how, orders, tuple(self._epochs(most)), self.intercept, point
        )
        visits = made * self.permutation.size
        self._account(drift, visits, way, found, visits)
        self._hear_of_epochs(made, misfit_before, left_before)


@kernel
def _make_epochs(
    data: Any, how: Any, orders: Any, epochs: Any, b: float, point: Any
) -> tuple[int, float, float, float, float, float, float, float, float]:
    """Make epochs, the first in the order that there is; after each but the last b makes its step.

    Return how many, b, Σ |c| ‖x_i‖, what `visit_rows` found in the last epoch, and `Epochs.misfit` and `left` of the last but
    one.
    """
    rows, loss, y, s, v, scale, extra = data
    source, order, length = orders
    seeds, misfit, left, enough, enough_guessed = epochs
    alpha, w, offset = point
    made, travelled, gained, misfit_before, left_before = 0, 0.0, 0.0, misfit, left
    residuals, squares, even = 0.0, 0.0, 1.0
    while made == 0 or (made < seeds.size and goes_on(left, left_before, even, enough, enough_guessed)):
        if made > 0:
            b = move_intercept(alpha, b, scale, extra, offset)
            if length > 1:
                shuffle_runs_from(source, order, length, seeds[made])
            else:
                shuffle_from(order, seeds[made])
        misfit_before, left_before = misfit, left
        way, gained, misfit, residuals, squares = visit_rows(
            rows, loss, y, s, v, scale, extra, False, *how, order, alpha, w, offset
        )
        left, even = left_after(misfit, misfit_before), evenness_of(residuals, squares, order.size)
        travelled += way
        made += 1
    return made, b, travelled, gained, misfit, residuals, squares, misfit_before, left_before
