"""Newton's method: the second phase of `auto` where the problem is badly conditioned.

The Hessian is (1/n) Σ s_i φ''(z_i) x_i x_iᵀ + λ I. Where d is small it is formed, at a cost of Σ nnz_i², and factorised
(Cholesky, d³/3): a handful of steps end at the optimum, however badly the problem is conditioned. Where d is large the
direction comes from conjugate gradients with the Hessian's diagonal as preconditioner, a pass over the data for each
product, only as exactly as the step deserves (truncated Newton).

One epoch here is one Newton step: a direction, and a backtracking line search on P that costs O(n) a trial, because
X·direction is formed once. The intercept is one more variable, without a penalty. The dual point that goes with w is
α = −s φ'(Xw + b).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from .. import rows as _rows
from .._checks import Array
from .._jit import kernel
from ..certificate import Shape
from ..losses.calls import loss_curvature, loss_slopes, loss_value
from ..problem import Problem
from .base import Solver

# The Hessian may take this many bytes; d up to 2048.
_HESSIAN_BYTES = 1 << 25
_BLOCK_BYTES = 1 << 21
# Rows at least this full are multiplied as dense blocks by BLAS, emptier ones entry by entry.
_DENSE_SHARE = 0.15
_HALVINGS = 40
_CG_STEPS = 500


class Newton(Solver):
    """Newton steps with a line search; not offered by name, `auto` turns to it."""

    name = "newton"
    needs_convex = True
    evaluate_each_epoch = True

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
        return problem.nnz > _DENSE_SHARE * problem.n * problem.d

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin at w(α)."""
        super().start(alpha, intercept)
        self.margins = np.empty(self.problem.n)
        self.first_energy = 0.0
        self._follow(intercept)

    @property
    def visits_per_call(self) -> int:
        """One call is one Newton step."""
        return self.problem.n

    def visit(self, count: int) -> None:
        """Make one Newton step."""
        problem, b = self.problem, self.intercept
        loss, y, s, n = problem.loss.compiled, problem.y, problem.sample_weight, problem.n
        gradient = problem.lam * (self.w - problem.weights_of(self.alpha))  # ∇P = λ (w − w(α)) with α = −s φ'
        if problem.fit_intercept:
            gradient = np.append(gradient, -self.alpha.sum() / n)

        # α is not needed again before the step is made: one vector of length n serves as curvatures and as X·direction
        curvatures = along = self.alpha
        curvatures_into(loss, self.margins, b, y, s, curvatures)
        if self.direct(problem):
            direction = -solve_positive(self._hessian(curvatures), gradient)
        else:
            direction = self._conjugate_gradients(curvatures, gradient)
        step_b = float(direction[-1]) if problem.fit_intercept else 0.0
        step_w = np.ascontiguousarray(direction[: problem.d])
        _rows.margins_into(problem.rows, step_w, along)

        def objective(t: float) -> float:
            w = self.w + t * step_w
            total = _loss_sum_along(loss, self.margins, along, t, b + t * step_b, y, s)
            return float(total / n + 0.5 * problem.lam * (w @ w))

        slope, here, t = float(gradient @ direction), objective(0.0), 1.0
        for _ in range(_HALVINGS):
            # near the optimum both sides agree to rounding; a full step is then right
            if objective(t) <= here + 1e-4 * t * slope + 1e-14 * abs(here):
                break
            t *= 0.5
        self.w += t * step_w
        self._follow(b + t * step_b)
        self.rows_touched += 4 * n

    def _follow(self, intercept: float) -> None:
        """Set the margins, the best intercept and α = −s φ'(Xw + b) that go with w."""
        problem = self.problem
        _rows.margins_into(problem.rows, self.w, self.margins)
        self.intercept = problem.best_intercept(self.margins, intercept) if problem.fit_intercept else 0.0
        _dual_into(problem.loss.compiled, self.margins, self.intercept, problem.y, problem.sample_weight, self.alpha)

    def end_epoch(self) -> None:
        """Nothing: the intercept moved with the step."""

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b)."""
        return self.alpha, self.w, self.intercept

    def _conjugate_gradients(self, curvatures: Array, gradient: Array) -> Array:
        """Solve H x = −gradient until the residual is a part of the gradient that shrinks with it."""
        problem, d = self.problem, self.problem.d
        diagonal = np.empty(gradient.size)
        _hessian_diagonal(problem.rows, curvatures, problem.fit_intercept, problem.lam, problem.n, diagonal)
        x, product = np.zeros(gradient.size), np.empty(gradient.size)
        residual = -gradient
        scaled = residual / diagonal
        search = scaled.copy()
        energy = first = float(residual @ scaled)
        self.first_energy = max(self.first_energy, first)
        enough = first * min(0.1, np.sqrt(first / self.first_energy)) ** 2 if first > 0 else 0.0
        for _ in range(_CG_STEPS):
            if not energy > enough:
                break
            _hessian_times(problem.rows, curvatures, search, problem.fit_intercept, problem.n, product)
            product[:d] += problem.lam * search[:d]
            self.rows_touched += problem.n
            step = energy / float(search @ product)
            x += step * search
            residual -= step * product
            np.divide(residual, diagonal, out=scaled)
            before, energy = energy, float(residual @ scaled)
            search *= energy / before
            search += scaled
        return x

    def _hessian(self, curvatures: Array) -> Array:
        """Return the Hessian of P, its upper triangle; the last row and column belong to the intercept."""
        return regularised(curvature_sum(self.problem, curvatures), self.problem)


def curvature_sum(problem: Problem, curvatures: Array) -> Array:
    """Return Σ c_i x_i x_iᵀ, its upper triangle; with an intercept each x_i ends in a 1."""
    d, n = problem.d, problem.n
    size = d + 1 if problem.fit_intercept else d
    total = np.zeros((size, size))
    if Newton.by_blas(problem):
        per_block = max(1, _BLOCK_BYTES // (8 * d))
        block = np.empty((min(per_block, n), d))
        for first in range(0, n, per_block):
            part = block[: min(per_block, n - first)]
            _scaled_rows(problem.rows, curvatures, first, part)
            total[:d, :d] += part.T @ part
    else:
        _add_outer_products(problem.rows, curvatures, total)
    if problem.fit_intercept:
        column = np.empty(d)
        problem.sum_rows_into(curvatures, column, np.empty(d))
        total[:d, d] = column
        total[d, d] = curvatures.sum()
    return total


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
    scaled = hessian * scale[:, None] * scale[None, :]
    bump = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + bump * np.eye(scale.size), lower=False, check_finite=False)
            return np.asarray(scale * scipy.linalg.cho_solve(factor, scale * gradient, check_finite=False))
        except scipy.linalg.LinAlgError:
            bump = max(1e-14, 100.0 * bump)


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def curvatures_into(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i = s_i φ''(z_i + b; y_i)."""
    for i in range(z.size):
        out[i] = s[i] * loss_curvature(loss, z[i] + b, y[i]) if s[i] > 0.0 else 0.0


@kernel
def _loss_sum_along(loss: Any, z: Any, along: Any, t: float, b: float, y: Any, s: Any) -> float:
    """Return Σ s_i φ(z_i + t along_i + b; y_i)."""
    total = 0.0
    for i in range(z.size):
        if s[i] > 0.0:
            total += s[i] * loss_value(loss, z[i] + t * along[i] + b, y[i])
    return total


@kernel
def _dual_into(loss: Any, z: Any, b: float, y: Any, s: Any, alpha: Any) -> None:
    """α_i = −s_i φ'(z_i + b; y_i)."""
    loss_slopes(loss, z, b, y, s, alpha)
    for i in range(alpha.size):
        alpha[i] = -alpha[i]


@kernel
def _scaled_rows(rows: Any, curvatures: Any, first: int, block: Any) -> None:
    """Row k of `block` = √(curvature) x_{first + k}, dense."""
    block[:] = 0.0
    for k in range(block.shape[0]):
        if curvatures[first + k] > 0.0:
            _rows.row_add(rows, first + k, np.sqrt(curvatures[first + k]), block[k])


@kernel
def _add_outer_products(rows: Any, curvatures: Any, hessian: Any) -> None:
    """hessian += Σ curvature_i x_i x_iᵀ, upper triangle: row j of x_i adds x_ij x_i to row j of the matrix.

    The indices of a row are sorted, so that only the entries from j on are needed.
    """
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            _rows.row_outer_add(rows, i, curvatures[i], hessian)


@kernel
def _hessian_times(rows: Any, curvatures: Any, vector: Any, intercept: bool, n: int, out: Any) -> None:
    """out = (1/n) Σ curvature_i x_i (x_i·vector) in one pass; with `intercept`, x_i ends in a 1."""
    out[:] = 0.0
    constant = vector[-1] if intercept else 0.0
    total = 0.0
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            factor = curvatures[i] / n * (_rows.row_dot(rows, i, vector) + constant)
            _rows.row_add(rows, i, factor, out)
            total += factor
    if intercept:
        out[-1] = total


@kernel
def _hessian_diagonal(rows: Any, curvatures: Any, intercept: bool, lam: float, n: int, out: Any) -> None:
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
