"""What the solvers with exact steps share: an account of how far the running w may be from w(α), and of how much moves.

Each visit adds c x_i to w, c = (α_i⁺ − α_i)/(λn). In floating point that leaves an error of at most 5ε |c| ‖x_i‖ from forming
c x_i and ε ‖w‖ from the additions, and ‖w‖ never exceeds its value at the start plus Σ |c| ‖x_i‖. So a kernel that sums
|c| ‖x_i‖ gives a bound on ‖w − w(α)‖ that costs nothing; a certificate squares it and need not sum w(α) from all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .._checks import Array
from .._jit import kernel
from ..problem import Problem
from .base import ENTRIES_PER_CALL, Solver
from .dealing import ONE_EACH, Visits
from .guesses import evenness
from .together import Epochs, Together
from .visits import visit_rows

_EPS = 2.0**-52
# Rows of a run, and columns above which sparse rows come in runs.
_RUN, _MANY_COLUMNS = 4, 2048
# Where the mean of L_i q_i is larger than the first, steps of sparse rows with many columns count the second part of q_i.
_COUPLED, _RELAXED = 2.0, 0.75


class ExactSteps(Solver):
    """Base class of the solvers that maximise the dual along one coordinate after another."""

    needs_smooth = False
    needs_convex = True
    trusts_dual = True
    together: Together | None = None
    farthest: float
    exactly = True
    """Whether every step is exact, one after the other; `auto` may do with nearly exact ones, several threads at a time."""

    takes_long = False
    """Whether so many epochs are foreseen that threads should look which rows are alike."""

    gain: float = 0.0
    """What D gained in this epoch, at least; at its end, what it would have gained in a whole one."""

    misfit: float = 0.0
    """The same of what the rows had in the gap when they were visited, about."""

    def start(self, alpha: Array, intercept: float) -> None:
        """Take α as the starting point and set w = w(α)."""
        super().start(alpha, intercept)
        self.farthest = self.drift = 0.0
        if not self.is_zero(alpha):
            self._know(self.problem.sum_error)

    def take_over(self, other: ExactSteps) -> None:
        """Go on from where another method with exact steps is, w and what is known of it included."""
        self.alpha, self.w, self.intercept, self.offset = other.alpha, other.w, other.intercept, other.offset
        self.farthest, self.drift, self.together = other.farthest, other.drift, other.together

    def begin_epoch(self) -> None:
        """Begin to count."""
        self.gain = self.misfit = self.residuals_met = self.squares_met = 0.0

    def end_epoch(self) -> None:
        """Say what a whole epoch would have had."""
        super().end_epoch()
        self.gain /= self.part_wanted
        self.misfit /= self.part_wanted
        self.even = evenness(self.residuals_met, self.squares_met, self.part_wanted * self._visits_of_epoch)

    @property
    def _visits_of_epoch(self) -> int:
        return self.problem.n

    def renew(self, w: Array, error: float) -> None:
        """Take w(α) as it was just summed from α."""
        super().renew(w, error)
        self._know(error)

    def _know(self, error: float) -> None:
        self.farthest = float(np.linalg.norm(self.w)) * (1 + self.problem.d * _EPS)
        size = _size(self.alpha, self.problem.row_norms_squared) * self.scale
        self.drift = (error + 8.0 * _EPS) * size + 8.0 * _EPS * self.farthest

    def _make_steps(self, order: Array) -> None:
        """Visit rows in this order."""
        if self._has_threads:
            self._make_steps_together(Visits(order, ONE_EACH, order.size, 0))
            return
        drift, self.drift = self.drift, None  # should this be interrupted before the account, nothing is known of w
        how = (self.exactly, self._inverse_smoothness, self.part_of_q, order)
        way, *found = visit_rows(*self.data, *how, self.alpha, self.w, self.offset)
        self._account(drift, order.size, way, found, order.size)

    def _make_steps_together(self, visits: Visits, epochs: Epochs | None = None) -> tuple[int, float, float]:
        """Share out visits to the threads, those of one epoch or of several.

        Return how many epochs were made, and `Epochs.misfit` and `left` of the last but one.
        """
        drift, self.drift = self.drift, None
        if self.together is None:
            coupling = self.coupling if self._has_text else None
            self.together = Together(self.team, self._inverse_smoothness, self.part_of_q, coupling)
        if self.takes_long:
            self.together.dealing.by_likeness()
        if epochs is None:
            epochs = Epochs(self.rng.integers(2**64, size=1, dtype=np.uint64))
        made = self.together.visit(self.data, visits, epochs, self.intercept, self.alpha, self.w, self.offset)
        self.intercept = made.intercept
        # A turn ends with w + (1/σ') Σ_k (copy_k − w): as many roundings of the copies' ways as there are threads and
        # some more, and two of w itself. The copies' own roundings are those of their visits.
        way = (2 + self.team.size) * made.way
        self._account(drift, made.visits, way, made.found, made.additions)
        return made.epochs, made.misfit_before, made.left_before

    @property
    def _has_threads(self) -> bool:
        return self.team.size > 1 and not self.exactly

    @property
    def visits_per_call(self) -> int:
        """As many as Ctrl-C allows, of the methods of `auto`: they draw no random numbers for single visits."""
        if self.exactly:
            return super().visits_per_call
        return max(1, ENTRIES_PER_CALL // max(1, self.problem.nnz // self.problem.n))

    @property
    def threads_shuffle(self) -> bool:
        """Whether each thread shuffles the visits to its own rows: an epoch is one call, and all rows are dealt out in it."""
        return self._has_threads and self.visits_per_call >= self.problem.n

    @cached_property
    def part_of_q(self) -> float:
        """What part of q_i a step counts: less than all where rows that have columns in common hold one another back.

        The smaller λ, the more epochs it takes until what one row asks for has got through to the others; to go a little
        beyond the top of the dual along each coordinate is what successive over-relaxation does about it.
        """
        if self.exactly or not self._has_text:
            return 1.0
        return _RELAXED if self.coupling > _COUPLED else 1.0

    @cached_property
    def _has_text(self) -> bool:
        """Whether rows are sparse with many columns, as those of texts are, and the loss is smooth."""
        return run_length(self.problem) > 1 and self._is_smooth

    @cached_property
    def _is_smooth(self) -> bool:
        return bool(np.isfinite(self.problem.loss.smoothness))

    @cached_property
    def coupling(self) -> float:
        """The mean of L_i q_i."""
        return mean_coupling(self.problem, self.scale)

    @property
    def _inverse_smoothness(self) -> float:
        return 1.0 / float(self.problem.loss.smoothness)  # 0 where the loss has a corner

    def _account(
        self, drift: float | None, visits: int, travelled: float, found: Sequence[float], additions: int
    ) -> None:
        """Hear the drift before and, from a kernel, visits, Σ |c| ‖x_i‖, what `visit_rows` found, and how often w changed."""
        self.rows_touched += visits
        gained, misfit, residuals, squares = found
        self.gain += gained / self.problem.n
        self.misfit += misfit / self.problem.n
        self.residuals_met += residuals
        self.squares_met += squares
        self.farthest += travelled * (1 + visits * _EPS)
        if drift is not None:
            self.drift = drift + _EPS * (8.0 * travelled + 2.0 * additions * self.farthest)


def mean_coupling(problem: Problem, scale: float) -> float:
    """The mean of L_i q_i, q_i = scale ‖x_i‖². In theory coordinate steps divide the gap by e in one epoch more than that."""
    return scale * float(problem.smoothness @ problem.row_norms_squared) / problem.n


def run_length(problem: Problem) -> int:
    """How many neighbours are visited one after the other: several where rows have few columns in common.

    Memory gives the next row sooner than any other. But rows that have much to do with one another are better not always
    neighbours.
    """
    return _RUN if not problem.is_dense and problem.d > _MANY_COLUMNS else 1


@kernel
def _size(alpha: Array, v: Array) -> float:
    """Σ |α_i| ‖x_i‖, rounded up."""
    total = 0.0
    for i in range(alpha.size):
        total += abs(alpha[i]) * np.sqrt(v[i])
    return total * (1.0 + alpha.size * 2.0**-52)
