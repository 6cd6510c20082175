"""Newton steps in one call: where a few hundred rows are all there is, the interpreter would take most of their time.

The same steps as in `newton.py`, from the same pieces; only the factorisation is done here, of matrices that are too small for
a library call to pay. Several threads make them, too, where columns are few: the caller, inside the call, hands over one pass
over the rows after the other, and adds up what the threads found, in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..losses import Logistic, Squared
from ..problem import Problem
from ..row_sums import EPS
from ..team import SAID, Team, margins_piece, own_part, own_rows
from ..tiles import add_tile, add_tile_products, empty_tile, fill_tile, rows_of
from ..vector_math import copy_into, dot, wide_vectors
from ..workers import share_out
from . import hessian as hessians
from .cholesky import substitute
from .hessian import gradient_and_curvatures, narrow_derivatives, pairs, regularise
from .line_search import LINE_STEPS, move_along, next_length, slope_along

_MOST_COLUMNS = 128  # a factorisation of more is better left to LAPACK


def may_keep_curvatures(problem: Problem) -> bool:
    """Whether few rows change their curvature from step to step, and each is added by itself."""
    return not problem.is_dense and not isinstance(problem.loss, (Logistic, Squared))


def suits(problem: Problem) -> bool:
    """Whether the Hessian is formed without BLAS, and is small; a user's loss would have to be compiled into the step anew."""
    return (
        problem.loss.builtin_id is not None
        and problem.d < _MOST_COLUMNS
        and (hessians.is_narrow(problem) or not hessians.by_blas(problem))
    )


def room_for(team: Team, size: int) -> tuple[Array, Array, Array, Array]:
    """Where steps with so many variables keep the threads' gradients and Hessians, the direction, and what the threads say."""
    return team.apart(size), team.apart(size, size), np.empty(size), np.zeros((team.size, SAID))


@kernel(merge=True)
def newton_direction(
    orders: Any, cuts: Any, data: Any, plain: bool, lam: float, point: Any, b: float, room: Any, kept: Any
) -> int:
    """What the caller does to find the gradient of P, and −H⁻¹ times it; with an intercept both have one entry more than w.

    `data` are rows, loss, y, s and ‖x_i‖², `point` is z, w and scratch as long as z; `plain` says that every s φ'' is 1.
    `room` is what `room_for` returns: afterwards the first of the threads' gradients is that of P, and the direction is set.
    The vector and the matrix that are `kept`, where they are not empty, hold the curvatures c of the step before and
    Σ c_i x_i x_iᵀ, and then those of this one. Return 1 if a thread failed.
    """
    w, (gradients, totals, direction, _) = point[1], room
    n, d = data[2].size, w.size
    failed = share_out(orders, _own_derivatives, (cuts, data, plain, point, b, gradients, totals, kept))
    if not failed:
        _add_up(cuts, gradients, totals)
        gradient = gradients[0]
        for j in range(direction.size):
            gradient[j] /= n
        for j in range(d):
            gradient[j] += lam * w[j]
        _set_direction(totals[0], n, d, lam, gradient, direction)
    return failed


@kernel
def normal_equations(X: Any, y: Any, lam: float, of_targets: Any, products: Any, direction: Any) -> tuple[float, float]:
    """The direction at w = 0 and b = 0 for the squared loss without weights: Xᵀy and XᵀX is all.

    Nothing of length n is read but y, nothing is written. Sets Σ y_i x_i and Σ x_i x_iᵀ, with a 1 at the end of each x_i where
    there is an intercept; returns Σ y_i² and what rounding did to each sum, at most, in the sum of its terms' sizes.
    """
    wide_vectors()
    n, d = X.shape
    size = of_targets.size
    products[:] = 0.0
    of_targets[:] = 0.0
    squares = 0.0
    tile = empty_tile(d)
    rows = rows_of(tile)
    ones = np.ones(rows)
    for first in range(0, n, rows):
        last = min(first + rows, n)
        fill_tile(X, first, last, tile)
        targets = y[first:last]
        add_tile(tile, targets, of_targets)
        add_tile_products(tile, last - first, products)
        squares += dot(targets, targets, last - first)
        if size > d:
            add_tile(tile, ones[: last - first], products[:, d])
            of_targets[d] += dot(targets, ones, last - first)
    if size > d:
        products[d, d] = n
    for j in range(size):
        for k in range(j + 1, size):
            products[k, j] = products[j, k]
    _set_direction(products.copy(), n, d, lam, of_targets / -n, direction)
    return squares, (min(rows, n) + n / rows + 4.0) * EPS


@kernel(merge=True)
def step_along(
    orders: Any, cuts: Any, data: Any, lam: float, point: Any, b: float, room: Any, quadratic: bool, is_short: bool
) -> tuple[int, float, float, float, float]:
    """Go along a direction to where P is about least: move w and z, set what was scratch to the dual point.

    Where P is `quadratic` that is all of it; where all of it `is_short`, perhaps more. Return 1 if a thread failed, which part
    was gone, the slope of P at its beginning, and what `move_along` says.
    """
    (rows, loss, y, s, v), (z, w, out), (gradients, _, direction, said) = data, point, room
    n, d, gradient = y.size, w.size, gradients[0]
    step, step_b = direction[:d], direction[d] if direction.size > d else 0.0
    failed = share_out(orders, margins_piece, (cuts, rows, step, out))
    here, bend, pull = dot(gradient, direction, gradient.size), lam * dot(step, step, d), lam * dot(w, step, d)
    t, bracket, found = 1.0, (0.0, here, np.inf, np.inf), quadratic or not here < 0.0
    for trial in range(LINE_STEPS):
        if found or failed:
            break
        failed = share_out(orders, slope_along, (cuts, said, loss, z, out, t, b, step_b, y, s))
        at = _in_all(said, 0) / n + pull + t * bend
        found, t, bracket = next_length(trial, here, t, at, bracket, is_short)
    if not found:
        t = bracket[0]
    if not failed:
        for j in range(d):
            w[j] += t * step[j]
        failed = share_out(orders, move_along, (cuts, said, loss, z, out, t, b, step_b, y, s, v))
    return failed, t, here, _in_all(said, 0), _in_all(said, 1)


@kernel
def newton_steps(
    orders: Any,
    cuts: Any,
    data: Any,
    plain: bool,
    quadratic: bool,
    is_short: bool,
    lam: float,
    point: Any,
    b: float,
    room: Any,
    kept: Any,
    primal: float,
    enough: float,
    low: float,
    most: int,
) -> tuple[int, int, float, float, float, float]:
    """Make steps until the gap is about `enough`, or P about `low`; at least one and at most so many.

    All may be known to be `quadratic`, or the first to be such that a full one `is_short`. Return 1 if a thread failed, how
    many were made, the intercept, the slope of P at the beginning of the last step, about P, and about the gap.
    """
    gradients, _, direction, _ = room
    n, d, gradient = data[2].size, point[1].size, gradients[0]
    made, slope, gap, failed = 0, 0.0, np.inf, 0
    while made < most:
        failed = newton_direction(orders, cuts, data, plain, lam, point, b, room, kept)
        if failed:
            break
        failed, t, slope, terms, cut = step_along(
            orders, cuts, data, lam, point, b, room, quadratic, is_short and made == 0
        )
        if failed:
            break
        b += t * direction[d] if direction.size > d else 0.0
        primal += 0.5 * t * slope
        made += 1
        left = abs(1.0 - t) * np.sqrt(dot(gradient, gradient, gradient.size)) + np.sqrt(cut) / n
        gap = terms / n + left * left / (2.0 * lam)
        if gap <= enough and cut > 0.0:  # what was cut off may add up
            failed = share_out(orders, _own_weights, (cuts, data[0], point[2], d, gradients))
            gap = terms / n + 0.5 * lam * _squared_distance(cuts, gradients, point[1], lam, n)
        if failed or gap <= enough or primal <= low:
            break
    return failed, made, b, slope, primal, gap


# --- what threads do, and their sums --------------------------------------------------------------------------------------


@kernel
def _own_derivatives(
    own: int, cuts: Any, data: Any, plain: bool, point: Any, b: float, gradients: Any, totals: Any, kept: Any
) -> None:
    """As `hessian.derivatives`, of a thread's rows; the scratch is left with s φ''."""
    (rows, loss, y, s, _), (z, w, out) = data, point
    gradient, total = own_part(own, cuts, gradients), own_part(own, cuts, totals)
    gradient[:], total[:] = 0.0, 0.0
    _derivatives(rows, w.size, own, cuts, kept, loss, z, b, y, s, plain, out, gradients, totals)


@kernel
def _own_weights(own: int, cuts: Any, rows: Any, alpha: Any, d: int, sums: Any) -> None:
    """Σ α_i x_i, of a thread's rows."""
    mine, out = own_rows(own, cuts), own_part(own, cuts, sums)[:d]
    out[:] = 0.0
    alpha = alpha[mine]
    _rows.rows_add(_rows.rows_between(rows, mine), alpha, 0, alpha.size, out)


@device
def _add_up(cuts: Any, gradients: Any, totals: Any) -> None:
    """Add to the first gradient and to the first matrix all others, in their order."""
    gradient, total = gradients[0], totals[0]
    for other in range(1, cuts.size - 1):
        more, others = own_part(other, cuts, gradients), own_part(other, cuts, totals)
        for j in range(gradient.size):
            gradient[j] += more[j]
            for k in range(j, gradient.size):
                total[j, k] += others[j, k]


@device
def _in_all(said: Any, which: int) -> float:
    """The sum of what the threads said, in their order."""
    total = said[0, which]
    for own in range(1, said.shape[0]):
        total += said[own, which]
    return total


@device
def _squared_distance(cuts: Any, sums: Any, w: Any, lam: float, n: int) -> float:
    """‖w − w(α)‖², given the threads' sums of α_i x_i; the first of them is changed."""
    apart = sums[0]
    for other in range(1, cuts.size - 1):
        more = own_part(other, cuts, sums)
        for j in range(w.size):
            apart[j] += more[j]
    for j in range(w.size):
        apart[j] = w[j] - apart[j] / (lam * n)
    return dot(apart, apart, w.size)


def _derivatives(rows: Any, d: int, own: int, cuts: Any, kept: Any, *given: Any) -> None:
    """Add a thread's derivatives to its sums."""
    raise NotImplementedError("compiled code only")


@overload(_derivatives, strict=False, jit_options={"error_model": "numpy", "nogil": True})
def _derivatives_overload(rows: Any, d: Any, own: Any, cuts: Any, kept: Any, *given: Any) -> Any:
    if _rows.is_dense(rows):
        return lambda rows, d, own, cuts, kept, *given: narrow_derivatives(own, cuts, rows[0], *given)
    return lambda rows, d, own, cuts, kept, *given: _sparse_derivatives(rows, d, own, cuts, kept, *given)


@device
def _sparse_derivatives(
    rows: Any,
    d: int,
    own: int,
    cuts: Any,
    kept: Any,
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
    gradient_and_curvatures(own, cuts, rows, loss, z, b, y, s, gradients.shape[1] > d, out, gradients)
    curvatures, total = kept
    if curvatures.size > 0:  # there is but one thread
        _add_changes(rows, out, d, curvatures, total)
        for j in range(total.shape[0]):
            copy_into(total[j], totals[0, j])
    else:
        pairs(own, cuts, rows, out, d, totals)


@device
def _add_changes(rows: Any, curvatures: Any, d: int, kept: Any, total: Any) -> None:
    """Make total = Σ c_i x_i x_iᵀ, which is so for other curvatures, `kept`: only rows that have another one now are added.

    Where a loss is made of parabolas and lines, fewer and fewer rows change from step to step.
    """
    changed, curved = 0, 0
    for i in range(kept.size):
        changed += curvatures[i] != kept[i]
        curved += curvatures[i] != 0.0
    if changed > curved:
        kept[:], total[:] = 0.0, 0.0
    column = total[:, -1]  # that of the intercept, where there is one
    for i in range(kept.size):
        change = curvatures[i] - kept[i]
        if change != 0.0:
            kept[i] = curvatures[i]
            _rows.row_outer_add(rows, i, change, total)
            if column.size > d:
                _rows.row_add(rows, i, change, column)
                column[d] += change


@device
def _set_direction(total: Any, n: int, d: int, lam: float, gradient: Any, direction: Any) -> None:
    """Turn Σ c_i x_i x_iᵀ into n times the Hessian H of P, in place, and set direction = −H⁻¹ gradient."""
    regularise(total, n, d, lam)
    _divide(total, gradient, direction)
    for j in range(direction.size):
        direction[j] *= -n


@device
def _divide(matrix: Any, right: Any, out: Any) -> None:
    """Solve matrix · out = right, as `cholesky.Factor` does."""
    size = right.size
    scale, factor = np.empty(size), np.empty((size, size))
    for j in range(size):
        scale[j] = 1.0 / np.sqrt(matrix[j, j])
    bump = 0.0
    while bump < np.inf:
        for j in range(size):
            for k in range(j, size):
                factor[j, k] = scale[j] * matrix[j, k] * scale[k]
            factor[j, j] = 1.0 + bump
        if _factorise(factor):
            break
        bump = max(1e-14, 100.0 * bump)
    for j in range(size):
        out[j] = scale[j] * right[j]
    substitute(factor, out)
    for j in range(size):
        out[j] *= scale[j]


@device
def _factorise(matrix: Any) -> bool:
    """Replace the upper triangle by U with Uᵀ U equal to it; False where it is not positive definite. The rest is scratch.

    Four lines of U at a time are finished and taken away from all others, four of which share what is read of them.
    """
    size = matrix.shape[0]
    for first in range(0, size, 4):
        last = min(first + 4, size)
        for j in range(first, last):
            if not _finish_line(matrix, first, j):
                return False
        i = last
        while i + 4 <= size:
            _take_from_four(matrix, first, i)
            i += 4
        while i < size:
            _take_from_one(matrix, first, i)
            i += 1
    return True


@device(contract=True)
def _finish_line(matrix: Any, first: int, j: int) -> bool:
    """Take the lines from `first` on away from line j, and scale it."""
    wide_vectors()
    size = matrix.shape[0]
    for i in range(first, j):
        factor = matrix[i, j]
        for k in range(j, size):
            matrix[j, k] -= factor * matrix[i, k]
    if not matrix[j, j] > 0.0:
        return False
    scale = 1.0 / np.sqrt(matrix[j, j])
    for k in range(j, size):
        matrix[j, k] *= scale
    return True


@device(contract=True)
def _take_from_one(matrix: Any, j: int, i: int) -> None:
    """Take four lines of U, from j on, away from line i."""
    wide_vectors()
    a, b, c, d = matrix[j, i], matrix[j + 1, i], matrix[j + 2, i], matrix[j + 3, i]
    for k in range(i, matrix.shape[0]):
        p, q, r, s = matrix[j, k], matrix[j + 1, k], matrix[j + 2, k], matrix[j + 3, k]
        matrix[i, k] -= (a * p + b * q) + (c * r + d * s)


@device(contract=True)
def _take_from_four(matrix: Any, j: int, i: int) -> None:
    """The same of the four lines from i on, and of a few numbers below the diagonal, which nobody reads."""
    wide_vectors()
    a, b, c, d = matrix[j, i], matrix[j + 1, i], matrix[j + 2, i], matrix[j + 3, i]
    e, f, g, h = matrix[j, i + 1], matrix[j + 1, i + 1], matrix[j + 2, i + 1], matrix[j + 3, i + 1]
    t, u, v, w = matrix[j, i + 2], matrix[j + 1, i + 2], matrix[j + 2, i + 2], matrix[j + 3, i + 2]
    m, n, x, y = matrix[j, i + 3], matrix[j + 1, i + 3], matrix[j + 2, i + 3], matrix[j + 3, i + 3]
    for k in range(i, matrix.shape[0]):
        p, q, r, s = matrix[j, k], matrix[j + 1, k], matrix[j + 2, k], matrix[j + 3, k]
        matrix[i, k] -= (a * p + b * q) + (c * r + d * s)
        matrix[i + 1, k] -= (e * p + f * q) + (g * r + h * s)
        matrix[i + 2, k] -= (t * p + u * q) + (v * r + w * s)
        matrix[i + 3, k] -= (m * p + n * q) + (x * r + y * s)
