"""The Hessian of P, (1/n) Σ s_i φ''(z_i) x_i x_iᵀ + λ I: formed where d is small, only multiplied with where it is not.

With an intercept it has one more row and column, the last, without a penalty. A matrix here is its upper triangle; what is
below the diagonal is not to be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..certificate import Shape
from ..losses import Logistic, Squared
from ..losses.calls import loss_curvatures, loss_slopes
from ..problem import Problem
from ..rows import Kind
from ..team import Team, fetch_shared, own_part, own_rows
from ..tiles import FEW_COLUMNS, add_tile, add_tile_products, empty_tile, fill_tile, fill_tile_with, rows_of, scale_tile
from ..vector_math import AT_A_TIME, copy_into, wide_vectors
from .blas import add_square, dsyrk_address
from .cholesky import Factor, rows_of_triangle

# The Hessian may take this many bytes: d up to 2047; of dense rows, no more than they would take in float64: d up to 5792.
_HESSIAN_BYTES, _DENSE_HESSIAN_BYTES = 1 << 25, 1 << 28
_BLOCK_BYTES = 1 << 18
_MANY_COLUMNS = 100  # to set as many numbers squared to zero takes longer than to hand it over
# Nanoseconds: for a pair of columns and a row by BLAS, for an entry of the dense block, for a pair of a row's stored entries.
_PER_DENSE_PAIR, _PER_DENSE_ENTRY, _PER_PAIR = 0.012, 2.7, 0.6
_PER_NARROW_PAIR, _PER_NARROW_ENTRY = 0.022, 0.6  # the same where there are few columns
_LEAST_CURVATURE = 1e-12  # of the intercept, where no row is on a curved part of the loss
_CURVED_SHARE = 0.4  # of the rows, with losses that have flat or straight parts
_FEWER_CURVED = 0.2  # the same of sparse rows with values in a product, which come late in a run: most are texts
_MOSTLY = 0.75  # of a tile's rows: where more are not flat, to leave out the others would cost more than it saves
PER_CUBE = 0.015  # a factorisation, for d³
# A product with the Hessian, for a stored entry and for a row.
_PER_PRODUCT_ENTRY = {Kind.DENSE: 0.5, Kind.ONES: 1.2, Kind.VALUES: 1.9}
_PER_PRODUCT_ROW, _PER_PRODUCT_SPARSE_ROW = 10.0, 3.0


def fits(problem: Shape) -> bool:
    """Whether the Hessian may be held in memory."""
    limit = _HESSIAN_BYTES
    if isinstance(problem, Problem) and problem.is_dense:
        limit = max(limit, min(8 * problem.n * problem.d, _DENSE_HESSIAN_BYTES))
    return 8 * (problem.d + 1) ** 2 <= limit


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
    share = _curved_share(problem)
    if share < 1.0 and problem.kind is Kind.VALUES:
        share = _FEWER_CURVED
    return share * full_product_cost(problem)


def full_product_cost(problem: Problem) -> float:
    """The same while no row is on a flat part of the loss."""
    per_row = _PER_PRODUCT_ROW if problem.is_dense else _PER_PRODUCT_SPARSE_ROW
    return _PER_PRODUCT_ENTRY[problem.kind] * problem.nnz + per_row * problem.n


def solution_cost(problem: Problem) -> float:
    """About how many nanoseconds the Hessian and its factorisation take."""
    return cost(problem) + PER_CUBE * problem.d**3


def full_solution_cost(problem: Problem) -> float:
    """The same where every row is curved."""
    return cost(problem) / _curved_share(problem) + PER_CUBE * problem.d**3


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
    return problem.is_dense and problem.d <= FEW_COLUMNS


# --- forming it -------------------------------------------------------------------------------------------------------


def derivatives(team: Team, margins: Array, b: float, out: Array, with_hessian: bool) -> tuple[Array, Array]:
    """Return Σ s φ' x and Σ s φ'' x xᵀ (empty unless asked for); with an intercept x ends in a 1. `out` is left with s φ''."""
    problem = team.problem
    loss, y, s = problem.loss.compiled, problem.y, problem.sample_weight
    size = problem.d + problem.fit_intercept
    gradients = team.apart(size)
    if with_hessian and is_narrow(problem):
        totals = _zeros_apart(team, size)
        team.run(narrow_derivatives, problem.rows[0], loss, margins, b, y, s, plain(problem), out, gradients, totals)
        team.add_up(gradients, gradients[0])
        _add_up_matrices(team, totals)
        return gradients[0], totals[0]
    team.run(gradient_and_curvatures, problem.rows, loss, margins, b, y, s, problem.fit_intercept, out, gradients)
    team.add_up(gradients, gradients[0])
    return gradients[0], curvature_sum(team, out) if with_hessian else np.empty(0)


def derivatives_and_diagonal(team: Team, margins: Array, b: float, out: Array) -> tuple[Array, Array]:
    """Return Σ s φ' x and the diagonal of the Hessian of P, found in the same pass; `out` is left with s φ''."""
    problem = team.problem
    size = problem.d + problem.fit_intercept
    totals = team.apart(2 * size)
    data = problem.rows, problem.loss.compiled, margins, b, problem.y, problem.sample_weight, problem.fit_intercept
    team.run(_gradient_and_squares, *data, out, totals)
    team.add_up(totals, totals[0])
    diagonal = totals[0, 1::2] / problem.n
    diagonal += problem.lam  # for the intercept, too: none of it may be zero
    return totals[0, ::2].copy(), diagonal


def curvature_sum(team: Team, curvatures: Array) -> Array:
    """Return Σ c_i x_i x_iᵀ; with an intercept each x_i ends in a 1."""
    problem = team.problem
    size = problem.d + problem.fit_intercept
    totals = _zeros_apart(team, size)
    if is_narrow(problem):
        team.run(_narrow_curvatures, problem.rows[0], curvatures, totals)
    elif by_blas(problem):
        per_block = max(1, _BLOCK_BYTES // (8 * problem.d), problem.d // 2)
        team.run(_blocks, problem.rows, curvatures, problem.d, per_block, dsyrk_address(), totals)
    else:
        team.run(pairs, problem.rows, curvatures, problem.d, totals)
    _add_up_matrices(team, totals)
    return np.asarray(totals[0])


def _zeros_apart(team: Team, size: int) -> Array:
    """A matrix of zeros for each thread; each sets its own, where that is worth handing over."""
    if team.size == 1 or size < _MANY_COLUMNS:
        return team.apart(size, size)
    totals = np.empty((team.size, size, size))
    team.run(_clear, totals)
    return totals


def _add_up_matrices(team: Team, totals: Array) -> None:
    """totals[0] = the sum of all: their upper triangles."""
    if team.size > 1:
        team.run(_add_triangles, totals)


# --- using it ---------------------------------------------------------------------------------------------------------


def factorised(total: Array, problem: Shape, team: Team | None = None) -> Factor:
    """Factorise the Hessian of P, given Σ c_i x_i x_iᵀ over all rows as `curvature_sum` forms it, which is changed.

    Where several threads have formed it, the factor takes the place of a second one's part: fresh memory costs time.
    """
    regularise(total, problem.n, problem.d, problem.lam)
    parts = total.base
    spare = parts[1] if isinstance(parts, np.ndarray) and parts.ndim == 3 and len(parts) > 1 else np.empty_like(total)
    return Factor(total, problem.n, team, spare)


def hessian_product(team: Team, curvatures: Array, vector: Array, margins: Array | None = None) -> Array:
    """Return the Hessian of P times a vector; where wanted, set margins_i = x_i · vector, without an intercept's part."""
    problem = team.problem
    product = np.empty(vector.size)
    totals, _ = team.totals(product, product)
    given = problem.rows, curvatures, vector, problem.fit_intercept, problem.n
    if margins is None:
        team.run(part_of_product, *given, totals)
    else:
        team.run(_product_and_margins, *given, margins, totals)
    team.add_up(totals, product)
    product[: problem.d] += problem.lam * vector[: problem.d]
    if problem.fit_intercept and not curvatures.any():
        product[problem.d] = _LEAST_CURVATURE * vector[problem.d]
    return product


def hessian_diagonal(team: Team, curvatures: Array) -> Array:
    """Return the diagonal of the Hessian of P, without zeros."""
    problem = team.problem
    diagonal = np.empty(problem.d + problem.fit_intercept)
    totals, _ = team.totals(diagonal, diagonal)
    team.run(_squares, problem.rows, curvatures, problem.fit_intercept, problem.n, totals)
    team.add_up(totals, diagonal)
    diagonal += problem.lam
    return diagonal


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _clear(own: int, cuts: Any, totals: Any) -> None:
    total = own_part(own, cuts, totals)
    total[:] = 0.0


@kernel
def _add_triangles(own: int, cuts: Any, totals: Any) -> None:
    """The first matrix += all others, for a thread's rows of the upper triangle."""
    threads = cuts.size - 1
    out = own_part(0, cuts, totals)
    first, last = rows_of_triangle(own, threads, out.shape[0])
    for other in range(1, threads):
        total = own_part(other, cuts, totals)
        for j in range(first, last):
            for k in range(j, out.shape[0]):
                out[j, k] += total[j, k]


@kernel
def regularise(total: Any, n: int, d: int, lam: float) -> None:
    """Turn Σ c_i x_i x_iᵀ into n times the Hessian of P: nλ is added to its diagonal, but for an intercept."""
    if total.shape[0] > d:
        total[d, d] = max(total[d, d], _LEAST_CURVATURE * n)
    for j in range(d):
        total[j, j] += n * lam


@kernel
def slopes_to_curvatures(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i, which is s_i φ'(z_i + b; y_i), becomes s_i φ''."""
    wide_vectors()
    curvatures = np.empty(AT_A_TIME)
    for first in range(0, z.size, AT_A_TIME):
        last = min(first + AT_A_TIME, z.size)
        here, part = curvatures[: last - first], out[first:last]
        loss_curvatures(loss, z[first:last], b, y[first:last], s[first:last], part, here)
        copy_into(here, part)


@kernel
def gradient_and_curvatures(
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
    """A thread's gradient += Σ s φ' x, and out = s φ''."""
    wide_vectors()
    mine, gradient = own_rows(own, cuts), own_part(own, cuts, gradients)
    rows = _rows.rows_between(rows, mine)
    z, y, s, out = z[mine], y[mine], s[mine], out[mine]
    sums = gradient[:-1] if intercept else gradient
    curvatures = np.empty(AT_A_TIME)
    for first in range(0, z.size, AT_A_TIME):
        last = min(first + AT_A_TIME, z.size)
        part, here = out[first:last], curvatures[: last - first]
        loss_slopes(loss, z[first:last], b, y[first:last], s[first:last], part)
        _rows.rows_add(rows, out, first, last, sums)
        if intercept:
            gradient[-1] += part.sum()
        loss_curvatures(loss, z[first:last], b, y[first:last], s[first:last], part, here)
        copy_into(here, part)


@kernel
def _gradient_and_squares(
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
    totals: Any,
) -> None:
    """A thread's total += Σ s φ' x and, in turn with its entries, those of Σ s φ'' x²; out = s φ''.

    Next to each other the two sums share cache lines, and each index is read once: 1.7 times as fast as one after the other.
    """
    wide_vectors()
    mine, total = own_rows(own, cuts), own_part(own, cuts, totals)
    rows = _rows.rows_between(rows, mine)
    z, y, s, out = z[mine], y[mine], s[mine], out[mine]
    slopes, curvatures = np.empty(AT_A_TIME), np.empty(AT_A_TIME)
    for first in range(0, z.size, AT_A_TIME):
        last = min(first + AT_A_TIME, z.size)
        size = last - first
        loss_slopes(loss, z[first:last], b, y[first:last], s[first:last], slopes[:size])
        loss_curvatures(loss, z[first:last], b, y[first:last], s[first:last], slopes[:size], curvatures[:size])
        for k in range(size):
            if slopes[k] != 0.0 or curvatures[k] != 0.0:
                _rows.row_add_with_squares(rows, first + k, slopes[k], curvatures[k], total)
        if intercept:
            total[-2] += slopes[:size].sum()
            total[-1] += curvatures[:size].sum()
        copy_into(curvatures, out[first:last])


@kernel
def add_rows(rows: Any, factors: Any, out: Any) -> None:
    _rows.rows_add(rows, factors, 0, factors.size, out)


@kernel
def narrow_derivatives(
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
    """`derivatives` of dense rows with few columns, for a thread's rows; `plain` says that every s φ'' is 1.

    Rows on a flat part of the loss have no share in them. Where there are many, the others wait until they fill a tile.
    """
    wide_vectors()
    mine = own_rows(own, cuts)
    gradient, total = own_part(own, cuts, gradients), own_part(own, cuts, totals)
    X, z, y, s, out = X[mine], z[mine], y[mine], s[mine], out[mine]
    tile = empty_tile(X.shape[1])
    rows = rows_of(tile)
    chosen = np.empty(2 * rows, np.uint64)
    slopes, curvatures, spare = np.empty(2 * rows), np.empty(2 * rows), np.empty(rows)
    used = 0
    for first in range(0, z.size, rows):
        last = min(first + rows, z.size)
        part, here = out[first:last], spare[: last - first]
        loss_slopes(loss, z[first:last], b, y[first:last], s[first:last], part)
        if plain:
            here[:] = 1.0
        else:
            loss_curvatures(loss, z[first:last], b, y[first:last], s[first:last], part, here)
        if plain or _number_not_flat(part, here) > _MOSTLY * here.size:
            fill_tile(X, first, last, tile)
            _add_derivatives(tile, part, here, plain, gradient, total)
        else:
            for i in range(here.size):  # without a branch: many would be foretold wrongly
                chosen[used], slopes[used], curvatures[used] = first + i, part[i], here[i]
                used += _is_not_flat(part[i], here[i])
        copy_into(here, part)
        if used >= rows:
            fill_tile_with(X, chosen[:rows], tile)
            _add_derivatives(tile, slopes[:rows], curvatures[:rows], plain, gradient, total)
            used -= rows
            for k in range(used):
                chosen[k], slopes[k], curvatures[k] = chosen[rows + k], slopes[rows + k], curvatures[rows + k]
    fill_tile_with(X, chosen[:used], tile)
    _add_derivatives(tile, slopes[:used], curvatures[:used], plain, gradient, total)


@device
def _is_not_flat(slope: float, curvature: float) -> int:
    return int(slope != 0.0) | int(curvature > 0.0)


@device
def _number_not_flat(slopes: Any, curvatures: Any) -> int:
    number = 0
    for i in range(slopes.size):
        number += _is_not_flat(slopes[i], curvatures[i])
    return number


@kernel
def _narrow_curvatures(own: int, cuts: Any, X: Any, curvatures: Any, totals: Any) -> None:
    """A thread's total += Σ c_i x_i x_iᵀ of dense rows with few columns."""
    wide_vectors()
    mine, total = own_rows(own, cuts), own_part(own, cuts, totals)
    X, curvatures = X[mine], curvatures[mine]
    tile = empty_tile(X.shape[1])
    rows = rows_of(tile)
    curved = np.flatnonzero(curvatures > 0.0)
    for first in range(0, curved.size, rows):
        chosen = curved[first : first + rows]
        fill_tile_with(X, chosen, tile)
        _add_curvatures(tile, curvatures[chosen], False, total)


@device
def _add_derivatives(tile: Any, slopes: Any, curvatures: Any, plain: bool, gradient: Any, total: Any) -> None:
    """gradient += Σ slope_i x_i, and `_add_curvatures`."""
    d = tile.shape[0]
    add_tile(tile, slopes, gradient)
    if gradient.size > d:
        gradient[d] += slopes.sum()
    _add_curvatures(tile, curvatures, plain, total)


@device
def _add_curvatures(tile: Any, curvatures: Any, plain: bool, total: Any) -> None:
    """total += Σ c_i x_i x_iᵀ; where it has one column more than the tile, each x_i ends in a 1. The tile is scaled."""
    d = tile.shape[0]
    if total.shape[0] > d:
        add_tile(tile, curvatures, total[:, d])
        total[d, d] += curvatures.sum()
    if not plain:
        roots = np.empty(curvatures.size)
        for i in range(roots.size):
            roots[i] = np.sqrt(curvatures[i]) if curvatures[i] > 0.0 else 0.0
        scale_tile(tile, roots)
    add_tile_products(tile, curvatures.size, total)


@kernel
def _blocks(own: int, cuts: Any, rows: Any, curvatures: Any, d: int, per_block: int, dsyrk: int, totals: Any) -> None:
    """A thread's total += Σ c_i x_i x_iᵀ by BLAS, a block of rows that stays in the cache at a time."""
    mine, total = own_rows(own, cuts), own_part(own, cuts, totals)
    rows, curvatures = _rows.rows_between(rows, mine), curvatures[mine]
    n = curvatures.size
    block = np.empty((min(per_block, n), d))
    for first in range(0, n, per_block):
        used = _scaled_rows(rows, curvatures, first, min(per_block, n - first), block)
        add_square(dsyrk, block[:used], total)
    _add_intercept(rows, curvatures, d, total)


@device
def _add_intercept(rows: Any, curvatures: Any, d: int, total: Any) -> None:
    """Where the matrix has a column more than there are columns, add what a 1 at the end of each row adds to it."""
    if total.shape[0] > d:
        column = np.zeros(d)
        _rows.rows_add(rows, curvatures, 0, curvatures.size, column)
        for j in range(d):
            total[j, d] += column[j]
        total[d, d] += curvatures.sum()


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
def pairs(own: int, cuts: Any, rows: Any, curvatures: Any, d: int, totals: Any) -> None:
    """A thread's total += Σ c_i x_i x_iᵀ, upper triangle: row j of x_i adds x_ij x_i to row j of the matrix.

    The indices of a row are sorted, so that only the entries from j on are needed.
    """
    mine, total = own_rows(own, cuts), own_part(own, cuts, totals)
    rows, curvatures = _rows.rows_between(rows, mine), curvatures[mine]
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            _rows.row_outer_add(rows, i, curvatures[i], total)
    _add_intercept(rows, curvatures, d, total)


@kernel
def part_of_product(
    own: int, cuts: Any, rows: Any, curvatures: Any, vector: Any, intercept: bool, n: int, totals: Any
) -> None:
    """A thread's total = (1/n) Σ curvature_i x_i (x_i·vector) in one pass; with `intercept`, x_i ends in a 1."""
    out = own_part(own, cuts, totals)
    fetch_shared(cuts, vector)
    out[:] = 0.0
    mine = own_rows(own, cuts)
    constant = vector[-1] if intercept else 0.0
    total = _rows.rows_add_products(_rows.rows_between(rows, mine), curvatures[mine], vector, constant, out)
    if intercept:
        out[-1] += total
    out /= n


@kernel
def _product_and_margins(
    own: int, cuts: Any, rows: Any, curvatures: Any, vector: Any, intercept: bool, n: int, margins: Any, totals: Any
) -> None:
    """The same, and the margins of all rows, of those without curvature, too."""
    out = own_part(own, cuts, totals)
    fetch_shared(cuts, vector)
    out[:] = 0.0
    mine = own_rows(own, cuts)
    rows, curvatures, margins = _rows.rows_between(rows, mine), curvatures[mine], margins[mine]
    constant = vector[-1] if intercept else 0.0
    total = 0.0
    for i in range(curvatures.size):
        margin = _rows.row_dot(rows, i, vector)
        margins[i] = margin
        if curvatures[i] > 0.0:
            change = curvatures[i] * (margin + constant)
            _rows.row_add(rows, i, change, out)
            total += change
    if intercept:
        out[-1] += total
    out /= n


@kernel
def _squares(own: int, cuts: Any, rows: Any, curvatures: Any, intercept: bool, n: int, totals: Any) -> None:
    """A thread's total = (1/n) Σ curvature_i x_i², entry by entry."""
    out = own_part(own, cuts, totals)
    out[:] = 0.0
    total = 0.0
    mine = own_rows(own, cuts)
    rows, curvatures = _rows.rows_between(rows, mine), curvatures[mine]
    for i in range(curvatures.size):
        if curvatures[i] > 0.0:
            _rows.row_add_squares(rows, i, curvatures[i] / n, out)
            total += curvatures[i] / n
    if intercept:
        out[-1] = total
