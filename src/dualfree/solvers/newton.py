"""Newton's method: the second phase of `auto` where the problem is badly conditioned.

The Hessian is (1/n) Σ s_i φ''(z_i) x_i x_iᵀ + λ I. Where d is small it is formed, at a cost of Σ nnz_i², and factorised
(Cholesky, d³/3): a handful of steps end at the optimum, however badly the problem is conditioned. Where d is large the
direction comes from conjugate gradients with the Hessian's diagonal as preconditioner, a pass over the data for each
product, only as exactly as the step deserves (truncated Newton).

One epoch here is one Newton step: a direction Δ, and a search for the root of the slope of P along it, which costs O(n) a
trial because X·Δ is formed once. The intercept is one more variable, without a penalty.

The dual point comes with the step. Newton's equation H Δ = −∇P says that

    α⁺_i = −s_i (φ'(z_i) + φ''(z_i) x_i·Δ)    has    w(α⁺) = w + Δ = w⁺,

so the gap at w⁺ is Σ FY(z⁺_i, α⁺_i)/n alone, and that is of fourth order in Δ. The gradient bound ‖∇P‖²/(2λ) at the same point
is worse by up to the condition number; with it, a run at small λ would have to go on for steps after it has arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from .. import least_squares
from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..certificate import Shape
from ..dual_domain import bounds, unlimited
from ..losses import Logistic, Squared
from ..losses.calls import loss_curvatures, loss_fenchel_young, loss_slopes
from ..problem import Problem
from ..team import Part, Team
from ..vector_math import wide_vectors
from .base import Solver
from .linear_cg import LinearCg
from .sample import Sample, sample_size, tells_weights

# The Hessian may take this many bytes; d up to 2048.
_HESSIAN_BYTES = 1 << 25
_BLOCK_BYTES = 1 << 18
_NARROW = 32
# Nanoseconds: for a pair of columns and a row by BLAS, for an entry of the dense block, for a pair of a row's stored entries.
_PER_DENSE_PAIR, _PER_DENSE_ENTRY, _PER_PAIR = 0.012, 2.7, 0.6
_PER_NARROW_PAIR, _PER_NARROW_ENTRY = 0.05, 0.5  # the same where there are few columns
_CURVED_SHARE = 0.4  # of the rows, with losses that have flat or straight parts
# Derivatives of the loss are formed for this many rows at a time, on vector registers and in the first-level cache.
_AT_A_TIME = 256
_LINE_STEPS = 30
_TINY = 1e-200  # a quotient by it does not overflow
# How much of the slope may be left after a full step, beyond the least point and before it; and after any other step.
_OVERSHOOT, _UNDERSHOOT, _MISSED = 0.25, 0.9, 0.1
_CG_STEPS = 500
# The most steps on the part of the rows to begin with, and how exactly.
_SAMPLE_STEPS, _SAMPLE_GAP = 12, 1e-3
_OVERFIT = 0.2


class Newton(Solver):
    """Newton steps with a line search; not offered by name, `auto` turns to it."""

    name = "newton"
    needs_convex = True
    trusts_dual = True
    sample: Sample | None = None
    """The rows to begin with, where they have been looked at already."""

    @staticmethod
    def suits(problem: Shape) -> bool:
        """Whether the loss is smooth and says its curvature."""
        return bool(problem.loss.convex and np.isfinite(problem.loss.smoothness) and problem.loss.has("curvature"))

    @staticmethod
    def direct(problem: Shape) -> bool:
        """Whether the Hessian fits in memory."""
        return 8 * (problem.d + 1) ** 2 <= _HESSIAN_BYTES

    @staticmethod
    def by_blas(problem: Problem) -> bool:
        """Whether the rows are full enough to be multiplied as dense blocks."""
        return len(problem.rows) == 1 or _dense_cost(problem) < _PER_PAIR * problem.pairs

    @staticmethod
    def hessian_cost(problem: Problem) -> float:
        """About how many nanoseconds a Hessian takes; rows where the loss is flat take no part."""
        share = (
            1.0 if problem.loss.builtin_id is None or isinstance(problem.loss, (Logistic, Squared)) else _CURVED_SHARE
        )
        return share * (_dense_cost(problem) if Newton.by_blas(problem) else _PER_PAIR * problem.pairs)

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin on the ray through w(α), or through the weights given, where P is least."""
        super().start(alpha, intercept)
        if self.given_w is not None:
            self.w = self.given_w
        self.margins = np.zeros(self.problem.n)
        self.first_energy = 0.0
        self.unsolved: Array | float = 0.0  # what is left of Newton's equation, −∇P − H Δ
        size = sample_size(self.problem)
        self.begins_on_sample = not self.w.any() and not intercept and tells_weights(self.problem, size)
        self._go_to(self.w, intercept)

    def _go_to(self, w: Array, intercept: float) -> None:
        """Set w to the best point of the ray through a given one."""
        problem = self.problem
        self.w, self.intercept, self.margins[:] = np.zeros(problem.d), 0.0, 0.0
        if w.any() or intercept:
            self.team.margins_into(w, self.alpha)
            self._move(np.zeros(1), w, intercept)
            self.rows_touched += problem.n

    def _solve_sample(self) -> None:
        """Solve the problem on a part of the rows, about as exactly as a part can know the answer, and begin from there.

        Early steps far from the optimum need no exact derivatives. A few on an eighth of the rows leave two or three on all.
        """
        sample = self.sample or Sample(self.problem, self.rng, sample_size(self.problem))
        warm, part = sample.steps, sample.problem
        steps = Newton(part, self.rng)
        steps.start(warm.alpha, warm.intercept)
        enough = max(_SAMPLE_GAP, _OVERFIT * part.d / part.n)  # what is beyond that the sample has by chance
        for _ in range(_SAMPLE_STEPS):
            steps.visit(part.n)
            if steps.gap_estimate is None or not steps.gap_estimate > enough * part.at_zero:
                break
        self.rows_touched += steps.rows_touched + (warm.rows_touched if self.sample is None else 0.0)
        self.sample = None  # its rows are copies
        self._go_to(steps.w, steps.intercept)

    @property
    def visits_per_call(self) -> int:
        """One call is one Newton step."""
        return self.problem.n

    def visit(self, count: int) -> None:
        """Make one Newton step."""
        if self.begins_on_sample:
            self.begins_on_sample = False
            self._solve_sample()
        if self.dual_follows:
            self._form_dual()
        problem, b = self.problem, self.intercept
        n, d = problem.n, problem.d

        # α is not needed again before the step is made: one vector of length n serves as slopes, curvatures and X·Δ
        direct = self.direct(problem)
        found = self.team.each(
            lambda part: derivatives(
                part.problem, self.margins[part.where], b, self.alpha[part.where], direct, self.team.size > 1
            )
        )
        gradient = sum_in_order([vector for vector, _ in found]) / n
        gradient[:d] += problem.lam * self.w
        if direct:
            hessian = regularised(sum_in_order([matrix for _, matrix in found]), problem)
            direction = -solve_positive(hessian, gradient)
        else:
            direction = self._conjugate_gradients(self.alpha, gradient)
        step_b = float(direction[d]) if problem.fit_intercept else 0.0
        step_w = np.ascontiguousarray(direction[:d])
        if direct and isinstance(problem.loss, Squared) and not self.w.any():
            self._arrive(step_w, step_b)
        else:
            self.team.margins_into(step_w, self.alpha)
            self._move(gradient, step_w, step_b, float(gradient @ direction))
        self.rows_touched += 4 * n

    def _arrive(self, step_w: Array, step_b: float) -> None:
        """The squared loss: P is its own quadratic model, a full step ends at the optimum, and α = −s φ' there.

        Only the first step is made like this. A second one is there to take away rounding errors, and margins and α that are
        changed by a little keep more digits than those formed afresh.
        """
        self.w += step_w
        self.intercept += step_b
        self.gap_estimate = 0.0
        self.dual_follows = least_squares.suits(self.problem)
        if not self.dual_follows:
            self._form_dual()

    def _form_dual(self) -> None:
        """Set the margins, and α = −s φ' there."""
        problem = self.problem
        self.dual_follows = False
        self.team.margins_into(self.w, self.margins)
        _slopes_into(problem.loss.compiled, self.margins, self.intercept, problem.y, problem.sample_weight, self.alpha)
        np.negative(self.alpha, out=self.alpha)

    def _move(self, gradient: Array, step_w: Array, step_b: float, at_zero: float | None = None) -> None:
        """Go along (step_w, step_b), whose X·step_w is in α, to where P is about least; set α and the estimate of the gap."""
        problem = self.problem
        loss, lam, n = problem.loss.compiled, problem.lam, problem.n
        bend, pull = lam * float(step_w @ step_w), lam * float(self.w @ step_w)

        def there(part: Part, t: float) -> tuple[Any, ...]:
            here, where = part.problem, part.where
            return loss, self.margins[where], self.alpha[where], t, self.intercept, step_b, here.y, here.sample_weight

        def slope(t: float) -> float:
            along = sum(self.team.each(lambda part: _slope_along(*there(part, t))))
            return float(along / n + pull + t * bend)

        if isinstance(problem.loss, Squared) and self.direct(problem):
            t = 1.0  # P is its own quadratic model
        else:
            t = _root_of_slope(slope, slope(0.0) if at_zero is None else at_zero)
        self.w += t * step_w
        terms = sum(self.team.each(lambda part: _move_along(*there(part, t))))
        self.intercept += t * step_b
        # a step that was cut short, or a direction that is not exact, leaves this much of λ (w⁺ − w(α⁺))
        left = float(np.linalg.norm((1.0 - t) * gradient - t * self.unsolved))
        self.gap_estimate = terms / n + left * left / (2.0 * lam)

    def end_epoch(self) -> None:
        """Nothing: the intercept moved with the step."""

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b)."""
        return self.alpha, self.w, self.intercept

    def _conjugate_gradients(self, curvatures: Array, gradient: Array) -> Array:
        """Solve H x = −gradient until the residual is a part of the gradient that shrinks with it."""
        problem = self.problem
        diagonal = np.empty(gradient.size)
        hessian_diagonal(problem.rows, curvatures, problem.fit_intercept, problem.lam, problem.n, diagonal)
        solution = LinearCg(np.zeros(gradient.size), -gradient, diagonal)
        first = solution.energy
        self.first_energy = max(self.first_energy, first)
        enough = first * min(0.1, np.sqrt(first / self.first_energy)) ** 2 if first > 0 else 0.0
        for _ in range(_CG_STEPS):
            if not solution.energy > enough:
                break
            solution.step(lambda vector: hessian_product(self.team, curvatures, vector))
            self.rows_touched += problem.n
        self.unsolved = solution.residual
        return solution.point

    def _hessian(self, curvatures: Array) -> Array:
        """Return the Hessian of P, its upper triangle; the last row and column belong to the intercept."""
        parts = self.team.each(lambda part: curvature_sum(part.problem, curvatures[part.where], self.team.size > 1))
        return regularised(sum_in_order(parts), self.problem)


def _dense_cost(problem: Problem) -> float:
    per_pair, per_entry = (
        (_PER_NARROW_PAIR, _PER_NARROW_ENTRY) if is_narrow(problem) else (_PER_DENSE_PAIR, _PER_DENSE_ENTRY)
    )
    return problem.n * problem.d * (per_pair * problem.d + per_entry)


def _root_of_slope(slope: Any, here: float) -> float:
    """Find t with slope(t) about zero, 1 where that will do: a bracket, and secants inside it.

    P is convex along the line: where the slope is still negative, P has fallen all the way; where it is positive but a small
    part of the slope at 0, the least point was passed only just now.
    """
    low, at_low, high, at_high, t = 0.0, here, np.inf, np.inf, 1.0
    if not here < 0.0:
        return 1.0  # rounding is all that is left: a full step is right
    for _ in range(_LINE_STEPS):
        at = slope(t)
        if _UNDERSHOOT * here <= at <= -_OVERSHOOT * here and (t == 1.0 or abs(at) <= -_MISSED * here):
            break
        if at > 0.0 or np.isnan(at):
            high, at_high = t, at
        else:
            low, at_low = t, at
        if not np.isfinite(high):
            t *= 4.0
            continue
        share = at_low / (at_low - at_high) if np.isfinite(at_high) else 0.5
        t = low + min(0.9, max(0.1, share)) * (high - low)
    return t


def derivatives(
    problem: Problem, margins: Array, b: float, out: Array, with_hessian: bool, in_threads: bool = False
) -> tuple[Array, Array]:
    """Return Σ s φ' x and Σ s φ'' x xᵀ (empty unless asked for); with an intercept x ends in a 1. `out` is left with s φ''."""
    d, loss, y, s = problem.d, problem.loss.compiled, problem.y, problem.sample_weight
    gradient = np.zeros(d + problem.fit_intercept)
    if with_hessian and is_narrow(problem) and not problem.fit_intercept:
        total = np.zeros((d, d), order="F")
        plain = isinstance(problem.loss, Squared) and s.min() == s.max()  # φ'' = 1
        _slopes_into(loss, margins, b, y, s, out)
        for part, block in _narrow_blocks(problem):  # both sums of a block while it is in the cache
            gradient += out[part] @ block
            if plain:
                _add_product(block, None, total)
            else:
                curvatures_into(loss, margins[part], b, y[part], s[part], out[part])
                _add_product(block, out[part], total)
        if plain:
            out[:] = s
            total *= s[0]
        return gradient, total.T
    _slopes_into(loss, margins, b, y, s, out)
    add_rows(problem.rows, out, gradient[:d])
    if problem.fit_intercept:
        gradient[d] = out.sum()
    curvatures_into(loss, margins, b, y, s, out)
    return gradient, curvature_sum(problem, out, in_threads) if with_hessian else np.empty(0)


def is_narrow(problem: Problem) -> bool:
    """Whether X is dense with few columns; a general product is then up to three times as fast as a symmetric one."""
    return len(problem.rows) == 1 and problem.d <= _NARROW


def _narrow_blocks(problem: Problem) -> Iterator[tuple[slice, Array]]:
    """Where a block of rows is, and the block in double precision, small enough to stay in the cache."""
    per_block = max(1, _BLOCK_BYTES // (8 * problem.d))
    for first in range(0, problem.n, per_block):
        part = slice(first, min(first + per_block, problem.n))
        yield part, problem.rows[0][part].astype(np.float64, copy=False)


def _add_product(block: Array, curvatures: Array | None, total: Array) -> None:
    """total += blockᵀ diag(curvatures) block, by a general product."""
    if curvatures is None:  # numpy would take a symmetric product for it
        scipy.linalg.blas.dgemm(1.0, block.T, block.T, beta=1.0, c=total, trans_b=1, overwrite_c=1)
    else:
        scaled = np.empty_like(block)
        _scale_rows(block, curvatures, scaled)
        total += block.T @ scaled


def _add_square(block: Array, total: Array, in_threads: bool) -> None:
    """total += blockᵀ block, its lower triangle at least."""
    if in_threads:
        # a little slower, but numpy lets go of the interpreter's lock, which scipy keeps
        rows_first = total.T  # the product is symmetric; in this order both lie in memory alike
        rows_first += block.T @ block
    else:
        scipy.linalg.blas.dsyrk(1.0, block.T, beta=1.0, c=total, lower=1, overwrite_c=1)


def sum_in_order(parts: list[Array]) -> Array:
    """Add up what the threads found, into the first."""
    for other in parts[1:]:
        parts[0] += other
    return parts[0]


def hessian_product(team: Team, curvatures: Array, vector: Array) -> Array:
    """Return the Hessian of P times a vector."""
    problem = team.problem

    def one(part: Part, out: Array) -> None:
        hessian_times(part.problem.rows, curvatures[part.where], vector, problem.fit_intercept, problem.n, out)

    product = team.add_up(vector.size, one)
    product[: problem.d] += problem.lam * vector[: problem.d]
    return product


def curvature_sum(problem: Problem, curvatures: Array, in_threads: bool = False) -> Array:
    """Return Σ c_i x_i x_iᵀ, its upper triangle; with an intercept each x_i ends in a 1."""
    d = problem.d
    size = d + 1 if problem.fit_intercept else d
    total = np.zeros((size, size))
    if Newton.by_blas(problem):
        _add_blocks(problem, curvatures, total[:d, :d], in_threads)
    else:
        _add_outer_products(problem.rows, curvatures, total)
    if problem.fit_intercept:
        column = np.zeros(d)
        add_rows(problem.rows, curvatures, column)
        total[:d, d] = column
        total[d, d] = curvatures.sum()
    return total


def _add_blocks(problem: Problem, curvatures: Array, hessian: Array, in_threads: bool) -> None:
    """hessian += Σ curvature_i x_i x_iᵀ by BLAS, a block of rows that stays in the cache at a time."""
    rows, (n, d) = problem.rows, (problem.n, problem.d)
    total = np.zeros((d, d), order="F")  # its lower triangle, column by column, is the upper one row by row
    if is_narrow(problem):
        for part, block in _narrow_blocks(problem):
            _add_product(block, curvatures[part], total)
        hessian += total.T
        return
    per_block = max(1, _BLOCK_BYTES // (8 * d), d // 2)
    block = np.empty((min(per_block, n), d))
    for first in range(0, n, per_block):
        used = _scaled_rows(rows, curvatures, first, min(per_block, n - first), block)
        _add_square(block[:used], total, in_threads)
    hessian += total.T


def regularised(total: Array, problem: Shape) -> Array:
    """Turn Σ c_i x_i x_iᵀ over all rows into the Hessian of P, in place."""
    d, n = problem.d, problem.n
    if problem.fit_intercept:
        total[d, d] = max(total[d, d], 1e-12 * n)
    total /= n
    total[np.arange(d), np.arange(d)] += problem.lam
    return total


def solve_positive(hessian: Array, gradient: Array) -> Array:
    """Solve with a Cholesky factor, scaled to a unit diagonal; a little is added to it where rounding made it indefinite."""
    scale = 1.0 / np.sqrt(np.diagonal(hessian))
    scaled = hessian * scale[:, None]
    scaled *= scale
    bump = 0.0
    while True:
        scaled[np.diag_indices(scale.size)] = 1.0 + bump
        # the upper triangle, row by row, is the lower one of the transpose, column by column: nothing is copied
        factor, trouble = scipy.linalg.lapack.dpotrf(scaled.T, lower=1, clean=0)
        if trouble == 0:
            solution, _ = scipy.linalg.lapack.dpotrs(factor, scale * gradient, lower=1)
            return np.asarray(scale * solution)
        bump = max(1e-14, 100.0 * bump)


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _slopes_into(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i = s_i φ'(z_i + b; y_i)."""
    wide_vectors()
    loss_slopes(loss, z, b, y, s, out)


@kernel
def curvatures_into(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i = s_i φ''(z_i + b; y_i)."""
    wide_vectors()
    loss_curvatures(loss, z, b, y, s, out)


@kernel
def add_rows(rows: Any, factors: Any, out: Any) -> None:
    _rows.rows_add(rows, factors, 0, factors.size, out)


@kernel
def _slope_along(loss: Any, z: Any, along: Any, t: float, b: float, step_b: float, y: Any, s: Any) -> float:
    """Return Σ s_i φ'(z_i + b + t (along_i + step_b); y_i) (along_i + step_b)."""
    wide_vectors()
    moved, slopes = np.empty(_AT_A_TIME), np.empty(_AT_A_TIME)
    total = 0.0
    for first in range(0, z.size, _AT_A_TIME):
        last = min(first + _AT_A_TIME, z.size)
        size = last - first
        for k in range(size):
            moved[k] = z[first + k] + t * along[first + k]
        loss_slopes(loss, moved[:size], b + t * step_b, y[first:last], s[first:last], slopes[:size])
        total += _dot_shifted(slopes[:size], along[first:last], step_b)
    return total


@device(reassociate=True)
def _dot_shifted(slopes: Any, along: Any, shift: float) -> float:
    total = 0.0
    for k in range(slopes.size):
        total += slopes[k] * (along[k] + shift)
    return total


@device(reassociate=True)
def misfit(slopes: Any, curvatures: Any, dual: Any) -> tuple[float, bool]:
    """Σ κ²/(2c) over the rows whose curvature c was not zero; and whether there are others."""
    total, least = 0.0, np.inf
    for k in range(slopes.size):
        kappa = slopes[k] + dual[k]
        total += kappa * kappa / (2.0 * max(curvatures[k], _TINY)) * (curvatures[k] > 0.0)
        least = min(least, curvatures[k])
    return total, least == 0.0


@kernel
def _move_along(loss: Any, z: Any, along: Any, t: float, b: float, step_b: float, y: Any, s: Any) -> float:
    """z += t along and along ← α⁺, the linearised dual point inside its domain; return about Σ FY(z⁺, α⁺)."""
    wide_vectors()
    slopes, curvatures = np.empty(_AT_A_TIME), np.empty(_AT_A_TIME)
    limited = not unlimited(loss)
    total = 0.0
    for first in range(0, z.size, _AT_A_TIME):
        last = min(first + _AT_A_TIME, z.size)
        size = last - first
        z_part, dual, y_part, s_part = z[first:last], along[first:last], y[first:last], s[first:last]
        loss_slopes(loss, z_part, b, y_part, s_part, slopes[:size])
        loss_curvatures(loss, z_part, b, y_part, s_part, curvatures[:size])
        for k in range(size):
            step = t * dual[k]
            z_part[k] += step
            dual[k] = -slopes[k] - curvatures[k] * (step + t * step_b)
        here = b + t * step_b
        loss_slopes(loss, z_part, here, y_part, s_part, slopes[:size])
        left, flat = misfit(slopes[:size], curvatures[:size], dual)
        total += left
        for k in range(size if limited else 0):
            low, high = bounds(loss, y_part[k], s_part[k])
            dual[k] = min(high, max(low, dual[k]))
        for k in range(size if flat else 0):
            if curvatures[k] == 0.0 and s_part[k] > 0.0:
                total += s_part[k] * loss_fenchel_young(loss, z_part[k] + here, y_part[k], dual[k] / s_part[k])[0]
    return total


@kernel
def _scale_rows(block: Any, factors: Any, out: Any) -> None:
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = factors[i] * block[i, j]


@kernel
def _scaled_rows(rows: Any, curvatures: Any, first: int, count: int, block: Any) -> int:
    """Those of `count` rows from `first` on whose curvature is not zero, times its root; return how many there are."""
    used = 0
    for i in range(first, first + count):
        if curvatures[i] > 0.0:
            block[used] = 0.0
            _rows.row_add(rows, i, np.sqrt(curvatures[i]), block[used])
            used += 1
    return used


@kernel
def _add_outer_products(rows: Any, curvatures: Any, hessian: Any) -> None:
    """hessian += Σ curvature_i x_i x_iᵀ, upper triangle: row j of x_i adds x_ij x_i to row j of the matrix.

    The indices of a row are sorted, so that only the entries from j on are needed.
    """
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            _rows.row_outer_add(rows, i, curvatures[i], hessian)


@kernel
def hessian_times(rows: Any, curvatures: Any, vector: Any, intercept: bool, n: int, out: Any) -> None:
    """out += (1/n) Σ curvature_i x_i (x_i·vector) in one pass; with `intercept`, x_i ends in a 1."""
    constant = vector[-1] if intercept else 0.0
    total = 0.0
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            factor = curvatures[i] / n * (_rows.row_dot(rows, i, vector) + constant)
            _rows.row_add(rows, i, factor, out)
            total += factor
    if intercept:
        out[-1] += total


@kernel
def hessian_diagonal(rows: Any, curvatures: Any, intercept: bool, lam: float, n: int, out: Any) -> None:
    """out = the diagonal of the Hessian, without zeros."""
    out[:] = 0.0
    total = 0.0
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            _rows.row_add_squares(rows, i, curvatures[i] / n, out)
            total += curvatures[i] / n
    if intercept:
        out[-1] = total
    out[:] += lam
