"""Conjugate gradients for the squared loss where rows are fewer than columns: each step brings its dual point.

From w = w(α) on, gradients and directions are combinations of the rows, so all of them can be followed by their coefficients,
vectors of length n, at no price. With s_i (y_i − z_i − b) − α_i = n ρ_i,

    −∇P(w) = Σ ρ_i x_i,    the direction is w(q),    w ← w + t w(q) comes with α ← α + t q,    q ← λn ρ + β q,

and since w = w(α) at every step, the gap is Σ FY_i/n = (n/2) Σ ρ_i²/s_i. The gradient bound ‖∇P‖²/(2λ), which is all that
`conjugate_gradients.py` knows, is worse by up to the condition number. A preconditioner on the columns would lead out of the
span of the rows; there is none.

The intercept is kept at its best, where Σ s_i (y_i − z_i − b) = 0, so Σ α_i stays zero. That is to solve the problem with
centred columns; the product with those costs one more vector, Σ s_i x_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import kernel
from ..losses import Squared
from ..problem import Problem
from ..team import own_part, own_rows
from ..vector_math import dot
from .base import Solver
from .conjugate_gradients import SHORT, STEPS_PER_EPOCH, ConjugateGradients
from .linear_cg import LinearCg, step_along

_ABOUT = 0.01  # how far w(α) may be from weights given, to be taken for them
# Where columns are of very different scale and not many more than rows, a preconditioner would be needed: known after so many
# passes by a way left that is so many times as long. And what a certificate may exceed the estimate by.
_EARLY, _TOO_LONG, _WRONG = 60, 4.0, 10.0
_AT_ONCE = 4  # rows that are multiplied and added while they are near


class RowSpaceCg(ConjugateGradients):
    """Conjugate gradients in the span of the rows; not offered by name, `auto` begins with it or turns to it."""

    trusts_dual = True
    gap_estimate: float = np.inf

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Whether P is quadratic and rows are no more than columns: else y is far from what rows can explain, and α slow."""
        return isinstance(problem.loss, Squared) and problem.n <= problem.d

    @staticmethod
    def stretch(problem: Problem, alpha: Array, w: Array) -> bool:
        """Multiply α so that w(α) is about w, as where α and w are the solution for another λ; False: it is not."""
        ours = problem.weights_of(alpha)
        size = float(ours @ ours)
        factor = float(ours @ w) / size if size > 0.0 else 0.0
        if not np.linalg.norm(w - factor * ours) <= _ABOUT * np.linalg.norm(w):
            return False
        alpha *= factor
        return True

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin at w(α)."""
        problem, s = self.problem, self.problem.sample_weight
        if problem.fit_intercept:
            alpha -= s * (alpha.sum() / s.sum())
        Solver.start(self, alpha, intercept)
        self.estimates: list[float] = []
        self.along = np.empty(problem.n)
        self.errors = np.zeros(problem.n)  # s (y − z − b)
        if self.w.any():
            self.team.margins_into(self.w, self.errors)
        np.subtract(problem.y, self.errors, out=self.errors)
        self.intercept = 0.0
        self.column_sums = self._sum_of_rows(s) if problem.fit_intercept else None
        if problem.fit_intercept:
            self.intercept = float(s @ self.errors / s.sum())
            self.errors -= self.intercept
        self.errors *= s
        self.coefficients = problem.lam * (self.errors - alpha)  # q
        residual = self._sum_of_rows(self.errors - alpha) / problem.n
        with np.errstate(over="ignore", invalid="ignore"):
            self.solution = LinearCg(self.w, residual, lambda vector: vector)
            self._estimate()
        self.in_one_call = self.team.size == 1 and problem.nnz <= SHORT
        self.rows_touched += 2 * problem.n

    def has_failed(self, gap: float) -> bool:
        """Whether the steps have come to an end before the target: rounding, overflow, or a rate that is too slow.

        Columns with large means, for example, leave no digits in what centring takes away.
        """
        if gap <= self.target:
            return False
        ended = not self.solution.energy > 0.0 or (self.gap_estimate <= self.target and gap > _WRONG * self.target)
        steps, half = len(self.estimates), len(self.estimates) // 2
        if ended or steps < _EARLY:
            return ended
        before, now = min(self.estimates[:half]), min(self.estimates)
        if not now > self.target > 0.0:
            return False
        rate = np.log(before / now) / (steps - half)
        return bool(rate * _TOO_LONG * steps < np.log(now / self.target))

    def _sum_of_rows(self, factors: Array) -> Array:
        total, scratch = np.empty(self.problem.d), np.empty(self.problem.d)
        self.team.sum_rows_into(factors, total, scratch)
        return total

    def _estimate(self) -> None:
        """Set the gap at α; or at s (y − z − b), should the rows be unable to explain what is left of y."""
        super()._estimate()
        by_gradient = self.gap_estimate
        gap = _fenchel_young(self.errors, self.alpha, self.problem.sample_weight) / self.problem.n
        self.gap_estimate, self.dual_is_behind = min(gap, by_gradient), by_gradient < gap

    def visit(self, count: int) -> None:
        """Make one step, or those of an epoch, where that is still worth its price."""
        if not self.solution.energy > 0.0 or (self.steps > 0 and self.gap_estimate <= self.target):
            return
        if self.in_one_call:
            self._make_steps()
            return
        self.steps += 1
        problem, solution = self.problem, self.solution
        with np.errstate(over="ignore", invalid="ignore"):
            solution.step(self._product)
            step, ratio, s = solution.length, solution.ratio, problem.sample_weight
            self.intercept -= step * self.mean
            _follow(self.along, step, ratio, problem.lam, s, self.errors, self.alpha, self.coefficients)
            self._estimate()
        self.estimates.append(self.gap_estimate)
        self.rows_touched += problem.n

    def _make_steps(self) -> None:
        """Make the steps of an epoch in one call."""
        problem, solution = self.problem, self.solution
        estimates = np.empty(STEPS_PER_EPOCH)
        made, solution.energy, self.intercept, self.dual_is_behind = _steps(
            problem.rows,
            problem.sample_weight,
            problem.lam,
            np.empty(0) if self.column_sums is None else self.column_sums,
            (solution.point, solution.residual, solution.search),
            (self.along, self.errors, self.alpha, self.coefficients),
            solution.energy,
            self.intercept,
            self.target,
            estimates,
        )
        self.estimates += estimates[:made].tolist()
        self.gap_estimate = self.estimates[-1]
        self.steps += made
        self.rows_touched += made * problem.n

    def _product(self, vector: Array) -> Array:
        """Return the Hessian times a vector, b being at its best; X·vector is kept."""
        problem, s = self.problem, self.problem.sample_weight

        total = np.empty(problem.d)
        totals, _ = self.team.totals(total, total)
        self.team.run(_times, problem.rows, s, vector, self.along, totals)
        self.team.add_up(totals, total)
        self.mean = 0.0
        if self.column_sums is not None:
            self.mean = float(s @ self.along / s.sum())
            self.along -= self.mean
            total -= self.mean * self.column_sums
        product: Array = total / problem.n + problem.lam * vector
        return product

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b)."""
        return self.errors if self.dual_is_behind else self.alpha, self.w, self.intercept


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _times(own: int, cuts: Any, rows: Any, s: Any, vector: Any, along: Any, totals: Any) -> None:
    """along = X·vector and a thread's total = Σ s_i along_i x_i, in one pass."""
    total = own_part(own, cuts, totals)
    total[:] = 0.0
    mine = own_rows(own, cuts)
    rows, s, along = _rows.rows_between(rows, mine), s[mine], along[mine]
    factors = np.empty(s.size)
    for first in range(0, s.size, _AT_ONCE):
        last = min(first + _AT_ONCE, s.size)
        _rows.rows_dot(rows, first, last, vector, along)
        for i in range(first, last):
            factors[i] = s[i] * along[i]
        _rows.rows_add(rows, factors, first, last, total)


@kernel
def _follow(
    along: Any, step: float, ratio: float, lam: float, s: Any, errors: Any, alpha: Any, coefficients: Any
) -> None:
    """Do to the coefficients of the rows what a step did to w and to the direction."""
    for i in range(s.size):
        errors[i] -= step * s[i] * along[i]
        alpha[i] += step * coefficients[i]
        coefficients[i] = lam * (errors[i] - alpha[i]) + ratio * coefficients[i]


@kernel
def _fenchel_young(errors: Any, alpha: Any, s: Any) -> float:
    """Return Σ FY = Σ (errors_i − α_i)²/(2 s_i)."""
    total = 0.0
    for i in range(s.size):
        if s[i] > 0.0:
            left = errors[i] - alpha[i]
            total += left * left / (2.0 * s[i])
    return total


@kernel
def _steps(
    rows: Any,
    s: Any,
    lam: float,
    column_sums: Any,
    of_columns: Any,
    of_rows: Any,
    energy: float,
    intercept: float,
    target: float,
    estimates: Any,
) -> tuple[int, float, float, bool]:
    """Make as many steps as there is room for estimates, or until one is no more than `target`.

    Return how many were made, the energy, the intercept, and whether α is behind.
    """
    point, residual, search = of_columns
    along, errors, alpha, coefficients = of_rows
    n, d = s.size, point.size
    all_rows, products = np.array([0, n]), np.empty((1, d))
    product, no_diagonal = products[0], np.empty(0)
    made, is_behind = 0, False
    while made < estimates.size and energy > 0.0:
        _times(0, all_rows, rows, s, search, along, products)
        mean = 0.0
        if column_sums.size > 0:
            mean = dot(s, along, n) / s.sum()
            for i in range(n):
                along[i] -= mean
            for j in range(d):
                product[j] -= mean * column_sums[j]
        for j in range(d):
            product[j] = product[j] / n + lam * search[j]
        energy, length, ratio = step_along(product, no_diagonal, point, residual, search, energy)
        intercept -= length * mean
        _follow(along, length, ratio, lam, s, errors, alpha, coefficients)
        gap, by_gradient = _fenchel_young(errors, alpha, s) / n, dot(residual, residual, d) / (2.0 * lam)
        is_behind = by_gradient < gap
        estimates[made] = min(gap, by_gradient)
        made += 1
        if estimates[made - 1] <= target:
            break
    return made, energy, intercept, is_behind
