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
from ..team import Team, add_up
from ..tiles import add_tile, add_tile_products, empty_tile, fill_tile, rows_of, scale_tile
from ..vector_math import AT_A_TIME, wide_vectors
from ..workers import share_out
from .symmetric_product import add_square, dsyrk_address

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


def derivatives(team: Team, margins: Array, b: float, out: Array, with_hessian: bool) -> tuple[Array, Array]:
    """Return Σ s φ' x and Σ s φ'' x xᵀ (empty unless asked for); with an intercept x ends in a 1. `out` is left with s φ''."""
    problem = team.problem
    loss, y, s = problem.loss.compiled, problem.y, problem.sample_weight
    size = problem.d + problem.fit_intercept
    gradients = np.zeros((team.size, size))
    if with_hessian and is_narrow(problem):
        totals = np.zeros((team.size, size, size))
        _all_narrow_derivatives(
            team.threads, problem.rows[0], loss, margins, b, y, s, plain(problem), out, gradients, totals
        )
        return gradients[0], totals[0]
    _all_gradients(team.threads, problem.rows, loss, margins, b, y, s, problem.fit_intercept, out, gradients)
    return gradients[0], curvature_sum(team, out) if with_hessian else np.empty(0)


def curvature_sum(team: Team, curvatures: Array) -> Array:
    """Return Σ c_i x_i x_iᵀ; with an intercept each x_i ends in a 1."""
    problem = team.problem
    size = problem.d + problem.fit_intercept
    totals = np.zeros((team.size, size, size))
    if is_narrow(problem):
        _all_narrow_curvatures(team.threads, problem.rows[0], curvatures, totals)
    elif by_blas(problem):
        per_block = max(1, _BLOCK_BYTES // (8 * problem.d), problem.d // 2)
        _all_blocks(team.threads, problem.rows, curvatures, problem.d, per_block, dsyrk_address(), totals)
    else:
        _all_pairs(team.threads, problem.rows, curvatures, problem.d, totals)
    return np.asarray(totals[0])


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
    product = np.empty(vector.size)
    totals, _ = team.totals(product, product)
    _all_products(
        team.threads, problem.rows, curvatures, vector, problem.fit_intercept, problem.lam, problem.n, totals, product
    )
    if problem.fit_intercept and not curvatures.any():
        product[problem.d] = _LEAST_CURVATURE * vector[problem.d]
    return product


def hessian_diagonal(team: Team, curvatures: Array) -> Array:
    """Return the diagonal of the Hessian of P, without zeros."""
    problem = team.problem
    diagonal = np.empty(problem.d + problem.fit_intercept)
    totals, _ = team.totals(diagonal, diagonal)
    _all_squares(team.threads, problem.rows, curvatures, problem.fit_intercept, problem.n, totals, diagonal)
    diagonal += problem.lam
    return diagonal


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
def _all_gradients(
    threads: Any, rows: Any, loss: Any, z: Any, b: float, y: Any, s: Any, intercept: bool, out: Any, gradients: Any
) -> None:
    """gradients[0] = Σ s φ' x, and out = s φ''."""
    share_out(threads[0], _gradient_of_part, (threads[1], rows, loss, z, b, y, s, intercept, out, gradients))
    add_up(threads[0], gradients, gradients[0])


@device
def _gradient_of_part(
    own: int,
    cuts: Any,
    rows: Any,
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    intercept: bool,
    out: Any,
    gradients: Any,
) -> None:
    first, last = cuts[own], cuts[own + 1]
    z_part, y_part, s_part, part, gradient = (
        z[first:last],
        y[first:last],
        s[first:last],
        out[first:last],
        gradients[own],
    )
    slopes_into(loss, z_part, b, y_part, s_part, part)
    add_rows(_rows.rows_between(rows, first, last), part, gradient[:-1] if intercept else gradient)
    if intercept:
        gradient[-1] = part.sum()
    slopes_to_curvatures(loss, z_part, b, y_part, s_part, part)


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
def _all_narrow_derivatives(
    threads: Any,
    X: Any,
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    plain: bool,
    out: Any,
    gradients: Any,
    totals: Any,
) -> None:
    """`derivatives` of dense rows with few columns, into gradients[0] and totals[0]."""
    orders, cuts = threads
    share_out(orders, _narrow_derivatives_of_part, (cuts, X, loss, z, b, y, s, plain, out, gradients, totals))
    add_up(orders, gradients, gradients[0])
    _add_up_matrices(orders, totals)


@device
def _narrow_derivatives_of_part(
    own: int,
    cuts: Any,
    X: Any,
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    plain: bool,
    out: Any,
    gradients: Any,
    totals: Any,
) -> None:
    first, last = cuts[own], cuts[own + 1]
    narrow_derivatives(
        X[first:last],
        loss,
        z[first:last],
        b,
        y[first:last],
        s[first:last],
        plain,
        out[first:last],
        gradients[own],
        totals[own],
    )


@device
def _add_up_matrices(orders: Any, totals: Any) -> None:
    """totals[0] = the sum of all."""
    flat = totals.reshape(totals.shape[0], totals.shape[1] * totals.shape[2])
    add_up(orders, flat, flat[0])


@kernel
def _all_narrow_curvatures(threads: Any, X: Any, curvatures: Any, totals: Any) -> None:
    """totals[0] = Σ c_i x_i x_iᵀ of dense rows with few columns."""
    share_out(threads[0], _narrow_curvatures_of_part, (threads[1], X, curvatures, totals))
    _add_up_matrices(threads[0], totals)


@device
def _narrow_curvatures_of_part(own: int, cuts: Any, X: Any, curvatures: Any, totals: Any) -> None:
    first, last = cuts[own], cuts[own + 1]
    _narrow_curvatures(X[first:last], curvatures[first:last], totals[own])


@device
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
def _all_blocks(threads: Any, rows: Any, curvatures: Any, d: int, per_block: int, dsyrk: int, totals: Any) -> None:
    """totals[0] = Σ c_i x_i x_iᵀ by BLAS, a block of rows that stays in the cache at a time."""
    share_out(threads[0], _blocks_of_part, (threads[1], rows, curvatures, d, per_block, dsyrk, totals))
    _add_up_matrices(threads[0], totals)


@device
def _blocks_of_part(
    own: int, cuts: Any, rows: Any, curvatures: Any, d: int, per_block: int, dsyrk: int, totals: Any
) -> None:
    end, total = cuts[own + 1], totals[own]
    block = np.empty((min(per_block, end - cuts[own]), d))
    for first in range(cuts[own], end, per_block):
        used = _scaled_rows(rows, curvatures, first, min(per_block, end - first), block)
        add_square(dsyrk, block[:used], total)
    _add_intercept(rows, curvatures, cuts[own], end, d, total)


@device
def _add_intercept(rows: Any, curvatures: Any, first: int, last: int, d: int, total: Any) -> None:
    """Where the matrix has a column more than there are columns, add what a 1 at the end of each row adds to it."""
    if total.shape[0] > d:
        column = np.zeros(d)
        _rows.rows_add(rows, curvatures, first, last, column)
        total[:d, d] += column
        total[d, d] += curvatures[first:last].sum()


@device
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
def _all_pairs(threads: Any, rows: Any, curvatures: Any, d: int, totals: Any) -> None:
    """totals[0] = Σ c_i x_i x_iᵀ, pair by pair of a row's stored entries."""
    share_out(threads[0], _pairs_of_part, (threads[1], rows, curvatures, d, totals))
    _add_up_matrices(threads[0], totals)


@device
def _pairs_of_part(own: int, cuts: Any, rows: Any, curvatures: Any, d: int, totals: Any) -> None:
    first, last = cuts[own], cuts[own + 1]
    add_outer_products(_rows.rows_between(rows, first, last), curvatures[first:last], totals[own])
    _add_intercept(rows, curvatures, first, last, d, totals[own])


@kernel
def add_outer_products(rows: Any, curvatures: Any, hessian: Any) -> None:
    """hessian += Σ curvature_i x_i x_iᵀ, upper triangle: row j of x_i adds x_ij x_i to row j of the matrix.

    The indices of a row are sorted, so that only the entries from j on are needed.
    """
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            _rows.row_outer_add(rows, i, curvatures[i], hessian)


@kernel
def _all_products(
    threads: Any,
    rows: Any,
    curvatures: Any,
    vector: Any,
    intercept: bool,
    lam: float,
    n: int,
    totals: Any,
    product: Any,
) -> None:
    """product = the Hessian times a vector."""
    share_out(threads[0], _product_of_part, (threads[1], rows, curvatures, vector, intercept, n, totals))
    add_up(threads[0], totals, product)
    for j in range(vector.size - 1 if intercept else vector.size):
        product[j] += lam * vector[j]


@device
def _product_of_part(
    own: int, cuts: Any, rows: Any, curvatures: Any, vector: Any, intercept: bool, n: int, totals: Any
) -> None:
    """(1/n) Σ curvature_i x_i (x_i·vector) in one pass; with `intercept`, x_i ends in a 1."""
    out = totals[own]
    out[:] = 0.0
    constant = vector[-1] if intercept else 0.0
    total = 0.0
    for i in range(cuts[own], cuts[own + 1]):
        if curvatures[i] > 0.0:
            factor = curvatures[i] / n * (_rows.row_dot(rows, i, vector) + constant)
            _rows.row_add(rows, i, factor, out)
            total += factor
    if intercept:
        out[-1] += total


@kernel
def _all_squares(threads: Any, rows: Any, curvatures: Any, intercept: bool, n: int, totals: Any, diagonal: Any) -> None:
    """diagonal = (1/n) Σ curvature_i x_i², entry by entry."""
    share_out(threads[0], _squares_of_part, (threads[1], rows, curvatures, intercept, n, totals))
    add_up(threads[0], totals, diagonal)


@device
def _squares_of_part(own: int, cuts: Any, rows: Any, curvatures: Any, intercept: bool, n: int, totals: Any) -> None:
    out = totals[own]
    out[:] = 0.0
    total = 0.0
    for i in range(cuts[own], cuts[own + 1]):
        if curvatures[i] > 0.0:
            _rows.row_add_squares(rows, i, curvatures[i] / n, out)
            total += curvatures[i] / n
    if intercept:
        out[-1] = total
