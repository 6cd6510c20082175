"""The Hessian of P, (1/n) Σ s_i φ''(z_i) x_i x_iᵀ + λ I: formed where d is small, only multiplied with where it is not.

With an intercept it has one more row and column, the last, without a penalty. A matrix here is its upper triangle; what is
below the diagonal is not to be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..certificate import Shape
from ..losses import Logistic, Squared
from ..losses.calls import loss_curvatures, loss_slopes
from ..problem import Problem, slopes_into
from ..team import Part, Team
from ..tiles import add_tile, add_tile_products, empty_tile, fill_tile, rows_of, scale_tile
from ..vector_math import AT_A_TIME, wide_vectors
from .symmetric_product import add_square

# The Hessian may take this many bytes; d up to 2047.
_HESSIAN_BYTES = 1 << 25
_BLOCK_BYTES = 1 << 18
# Up to so many columns, dense rows are summed up in tiles; more columns pay for a symmetric product by BLAS.
_NARROW = 64
# Nanoseconds: for a pair of columns and a row by BLAS, for an entry of the dense block, for a pair of a row's stored entries.
_PER_DENSE_PAIR, _PER_DENSE_ENTRY, _PER_PAIR = 0.012, 2.7, 0.6
_PER_NARROW_PAIR, _PER_NARROW_ENTRY = 0.05, 0.5  # the same where there are few columns
_LEAST_CURVATURE = 1e-12  # of the intercept, where no row is on a curved part of the loss
_CURVED_SHARE = 0.4  # of the rows, with losses that have flat or straight parts
# A factorisation, for d³; a product with the Hessian, for a stored entry (in a dense row, in a sparse one) and for a row.
PER_CUBE = 0.015
_PER_PRODUCT_ENTRY, _PER_PRODUCT_SPARSE_ENTRY, _PER_PRODUCT_ROW = 0.5, 0.8, 10.0


def fits(problem: Shape) -> bool:
    """Whether the Hessian fits in memory."""
    return 8 * (problem.d + 1) ** 2 <= _HESSIAN_BYTES


def cost(problem: Problem) -> float:
    """About how many nanoseconds a Hessian takes; rows where the loss is flat take no part."""
    return _curved_share(problem) * (_dense_cost(problem) if by_blas(problem) else _PER_PAIR * problem.pairs)


def plain(problem: Problem) -> bool:
    """Whether every s φ'' is 1."""
    return isinstance(problem.loss, Squared) and problem.unit_weights


def _curved_share(problem: Problem) -> float:
    return 1.0 if problem.loss.builtin_id is None or isinstance(problem.loss, (Logistic, Squared)) else _CURVED_SHARE


def product_cost(problem: Problem) -> float:
    """About how many nanoseconds a product of the Hessian with a vector takes."""
    per_entry = _PER_PRODUCT_ENTRY if problem.is_dense else _PER_PRODUCT_SPARSE_ENTRY
    return _curved_share(problem) * (per_entry * problem.nnz + _PER_PRODUCT_ROW * problem.n)


def solution_cost(problem: Problem) -> float:
    """About how many nanoseconds the Hessian and its factorisation take."""
    return cost(problem) + PER_CUBE * problem.d**3


def in_products(problem: Problem) -> float:
    """How many products take as long as the Hessian and its factorisation."""
    return solution_cost(problem) / product_cost(problem)


def _dense_cost(problem: Problem) -> float:
    per_pair, per_entry = (
        (_PER_NARROW_PAIR, _PER_NARROW_ENTRY) if is_narrow(problem) else (_PER_DENSE_PAIR, _PER_DENSE_ENTRY)
    )
    return problem.n * problem.d * (per_pair * problem.d + per_entry)


def by_blas(problem: Problem) -> bool:
    """Whether the rows are full enough to be multiplied as dense blocks."""
    return problem.is_dense or _dense_cost(problem) < _PER_PAIR * problem.pairs


def is_narrow(problem: Problem) -> bool:
    return problem.is_dense and problem.d <= _NARROW


# --- forming it -------------------------------------------------------------------------------------------------------


def derivatives(problem: Problem, margins: Array, b: float, out: Array, with_hessian: bool) -> tuple[Array, Array]:
    """Return Σ s φ' x and Σ s φ'' x xᵀ (empty unless asked for); with an intercept x ends in a 1. `out` is left with s φ''."""
    d, loss, y, s = problem.d, problem.loss.compiled, problem.y, problem.sample_weight
    gradient = np.zeros(d + problem.fit_intercept)
    if with_hessian and is_narrow(problem):
        total = np.zeros((gradient.size, gradient.size))
        narrow_derivatives(problem.rows[0], loss, margins, b, y, s, plain(problem), out, gradient, total)
        return gradient, total
    slopes_into(loss, margins, b, y, s, out)
    add_rows(problem.rows, out, gradient[:d])
    if problem.fit_intercept:
        gradient[d] = out.sum()
    slopes_to_curvatures(loss, margins, b, y, s, out)
    return gradient, curvature_sum(problem, out) if with_hessian else np.empty(0)


def curvature_sum(problem: Problem, curvatures: Array) -> Array:
    """Return Σ c_i x_i x_iᵀ; with an intercept each x_i ends in a 1."""
    d = problem.d
    size = d + 1 if problem.fit_intercept else d
    total = np.zeros((size, size))
    if is_narrow(problem):
        _narrow_curvatures(problem.rows[0], curvatures, total)
        return total
    if by_blas(problem):
        _add_blocks(problem, curvatures, total[:d, :d])
    else:
        add_outer_products(problem.rows, curvatures, total)
    if problem.fit_intercept:
        column = np.zeros(d)
        add_rows(problem.rows, curvatures, column)
        total[:d, d] = column
        total[d, d] = curvatures.sum()
    return total


def _add_blocks(problem: Problem, curvatures: Array, hessian: Array) -> None:
    """hessian += Σ curvature_i x_i x_iᵀ by BLAS, a block of rows that stays in the cache at a time."""
    n, d = problem.n, problem.d
    total = np.zeros((d, d), order="F")  # its lower triangle, column by column, is the upper one row by row
    per_block = max(1, _BLOCK_BYTES // (8 * d), d // 2)
    block = np.empty((min(per_block, n), d))
    for first in range(0, n, per_block):
        used = _scaled_rows(problem.rows, curvatures, first, min(per_block, n - first), block)
        add_square(block[:used], total)
    hessian += total.T


def sum_in_order(parts: list[Array]) -> Array:
    """Add up what the threads found, into the first."""
    for other in parts[1:]:
        parts[0] += other
    return parts[0]


# --- using it ---------------------------------------------------------------------------------------------------------


def regularised(total: Array, problem: Shape) -> Array:
    """Turn Σ c_i x_i x_iᵀ over all rows into the Hessian of P, in place."""
    regularise(total, problem.n, problem.d, problem.lam)
    return total


class Factor:
    """A Cholesky factor of a Hessian, scaled to a unit diagonal; a little is added to it where rounding made it indefinite."""

    def __init__(self, hessian: Array) -> None:
        self.scale = 1.0 / np.sqrt(np.diagonal(hessian))
        scaled = hessian * self.scale[:, None]
        scaled *= self.scale
        diagonal = np.einsum("ii->i", scaled)  # a view
        bump, trouble = 0.0, 1
        while trouble:
            diagonal[:] = 1.0 + bump
            # the upper triangle, row by row, is the lower one of the transpose, column by column: nothing is copied
            self.factor, trouble = scipy.linalg.lapack.dpotrf(scaled.T, lower=1, clean=0)
            bump = max(1e-14, 100.0 * bump)

    def divided(self, right: Array) -> Array:
        """Solve H x = right."""
        solution, _ = scipy.linalg.lapack.dpotrs(self.factor, self.scale * right, lower=1)
        return np.asarray(self.scale * solution)


def solve_positive(hessian: Array, right: Array) -> Array:
    """Solve H x = right."""
    return Factor(hessian).divided(right)


def hessian_product(team: Team, curvatures: Array, vector: Array) -> Array:
    """Return the Hessian of P times a vector."""
    problem = team.problem

    def one(part: Part, out: Array) -> None:
        hessian_times(part.problem.rows, curvatures[part.where], vector, problem.fit_intercept, problem.n, out)

    product = team.add_up(vector.size, one)
    product[: problem.d] += problem.lam * vector[: problem.d]
    if problem.fit_intercept and not curvatures.any():
        product[problem.d] = _LEAST_CURVATURE * vector[problem.d]
    return product


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def regularise(total: Any, n: int, d: int, lam: float) -> None:
    """Divide Σ c_i x_i x_iᵀ by n and add λ to its diagonal, but for an intercept."""
    if total.shape[0] > d:
        total[d, d] = max(total[d, d], _LEAST_CURVATURE * n)
    total /= n
    for j in range(d):
        total[j, j] += lam


@kernel
def slopes_to_curvatures(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i, which is s_i φ'(z_i + b; y_i), becomes s_i φ''."""
    wide_vectors()
    curvatures = np.empty(AT_A_TIME)
    for first in range(0, z.size, AT_A_TIME):
        last = min(first + AT_A_TIME, z.size)
        here, part = curvatures[: last - first], out[first:last]
        loss_curvatures(loss, z[first:last], b, y[first:last], s[first:last], part, here)
        part[:] = here


@kernel
def add_rows(rows: Any, factors: Any, out: Any) -> None:
    _rows.rows_add(rows, factors, 0, factors.size, out)


@kernel
def narrow_derivatives(
    X: Any, loss: Any, z: Any, b: float, y: Any, s: Any, plain: bool, out: Any, gradient: Any, total: Any
) -> None:
    """`derivatives` of dense rows with few columns; `plain` says that every s φ'' is 1."""
    wide_vectors()
    n, d = X.shape
    tile = empty_tile(d)
    rows = rows_of(tile)
    spare = np.empty(rows)
    for first in range(0, n, rows):
        last = min(first + rows, n)
        fill_tile(X, first, last, tile)
        part, here = out[first:last], spare[: last - first]
        loss_slopes(loss, z[first:last], b, y[first:last], s[first:last], part)
        add_tile(tile, part, gradient)
        if gradient.size > d:
            gradient[d] += part.sum()
        if plain:
            part[:] = 1.0
        else:
            loss_curvatures(loss, z[first:last], b, y[first:last], s[first:last], part, here)
            part[:] = here
        _add_curvatures(tile, part, plain, here, total)


@kernel
def _narrow_curvatures(X: Any, curvatures: Any, total: Any) -> None:
    """total += Σ c_i x_i x_iᵀ of dense rows with few columns."""
    wide_vectors()
    n, d = X.shape
    tile = empty_tile(d)
    rows = rows_of(tile)
    roots = np.empty(rows)
    for first in range(0, n, rows):
        last = min(first + rows, n)
        fill_tile(X, first, last, tile)
        _add_curvatures(tile, curvatures[first:last], False, roots[: last - first], total)


@device
def _add_curvatures(tile: Any, curvatures: Any, plain: bool, roots: Any, total: Any) -> None:
    """total += Σ c_i x_i x_iᵀ; where it has one column more than the tile, each x_i ends in a 1. The tile is scaled."""
    d = tile.shape[0]
    if total.shape[0] > d:
        add_tile(tile, curvatures, total[:, d])
        total[d, d] += curvatures.sum()
    if not plain:
        for i in range(roots.size):
            roots[i] = np.sqrt(curvatures[i]) if curvatures[i] > 0.0 else 0.0
        scale_tile(tile, roots)
    add_tile_products(tile, roots.size, total)


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
def add_outer_products(rows: Any, curvatures: Any, hessian: Any) -> None:
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
