"""A Newton step in two calls: where a few hundred rows are all there is, the interpreter would take most of its time.

The same step as in `newton.py`, from the same pieces; only the factorisation is done here, of matrices that are too small for
a library call to pay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from .. import rows as _rows
from .._jit import device, kernel
from ..losses.calls import loss_slopes
from ..problem import Problem
from ..team import SAID
from ..vector_math import dot
from . import hessian as hessians
from .hessian import add_outer_products, add_rows, narrow_derivatives, regularise, slopes_to_curvatures, substitute
from .line_search import LINE_STEPS, move_along, next_length, slope_along

_MOST_COLUMNS = 128  # a factorisation of more is better left to LAPACK


def suits(problem: Problem) -> bool:
    """Whether the Hessian is formed without BLAS, and is small; a user's loss would have to be compiled into the step anew."""
    return (
        problem.loss.builtin_id is not None
        and problem.d < _MOST_COLUMNS
        and (hessians.is_narrow(problem) or not hessians.by_blas(problem))
    )


@kernel
def newton_direction(
    rows: Any,
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    plain: bool,
    lam: float,
    w: Any,
    out: Any,
    gradient: Any,
    direction: Any,
) -> None:
    """Set the gradient of P, and −H⁻¹ times it; with an intercept both have one entry more than w. `out` is scratch.

    `plain` says that every s φ'' is 1.
    """
    n, d, size = y.size, w.size, gradient.size
    hessian = np.zeros((size, size))
    gradient[:] = 0.0
    _derivatives(rows, size > d, loss, z, b, y, s, plain, out, gradient, hessian)
    gradient /= n
    gradient[:d] += lam * w
    regularise(hessian, n, d, lam)
    _divide(hessian, gradient, direction)
    for j in range(size):
        direction[j] = -direction[j]


@kernel
def step_along(
    rows: Any,
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    v: Any,
    lam: float,
    w: Any,
    gradient: Any,
    direction: Any,
    out: Any,
    quadratic: bool,
) -> tuple[float, float, float, float]:
    """Go along a direction to where P is about least: move w and z, set `out` to the dual point.

    Where P is `quadratic` that is all of it. Return which part was gone, the slope of P at its beginning, and what
    `move_along` does.
    """
    n, d = y.size, w.size
    step, step_b = direction[:d], direction[d] if direction.size > d else 0.0
    all_rows, said = np.array([0, n]), np.empty((1, SAID))
    _rows.margins_into(rows, step, out)
    here, bend, pull = dot(gradient, direction, gradient.size), lam * dot(step, step, d), lam * dot(w, step, d)
    t, bracket, found = 1.0, (0.0, here, np.inf, np.inf), quadratic or not here < 0.0
    for trial in range(LINE_STEPS):
        if found:
            break
        slope_along(0, all_rows, said, loss, z, out, t, b, step_b, y, s)
        at = said[0, 0] / n + pull + t * bend
        found, t, bracket = next_length(trial, here, t, at, bracket)
    if not found:
        t = bracket[0]
    for j in range(d):
        w[j] += t * step[j]
    move_along(0, all_rows, said, loss, z, out, t, b, step_b, y, s, v)
    return t, here, said[0, 0], said[0, 1]


def _derivatives(rows: Any, intercept: bool, *given: Any) -> None:
    """As `hessian.derivatives`, added to what is there; `out` is left with s φ''."""
    raise NotImplementedError("compiled code only")


@overload(_derivatives, strict=False, jit_options={"error_model": "numpy", "nogil": True})
def _derivatives_overload(rows: Any, intercept: Any, *given: Any) -> Any:
    if _rows.is_dense(rows):
        return lambda rows, intercept, *given: _narrow_derivatives(rows[0], *given)
    return lambda rows, intercept, *given: _sparse_derivatives(rows, intercept, *given)


@device
def _narrow_derivatives(
    X: Any, loss: Any, z: Any, b: float, y: Any, s: Any, plain: bool, out: Any, gradient: Any, hessian: Any
) -> None:
    all_rows, size = np.array([0, y.size]), gradient.size
    alone = (gradient.reshape(1, size), hessian.reshape(1, size, size))
    narrow_derivatives(0, all_rows, X, loss, z, b, y, s, plain, out, alone[0], alone[1])


@device
def _sparse_derivatives(
    rows: Any,
    intercept: bool,
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    plain: bool,
    out: Any,
    gradient: Any,
    hessian: Any,
) -> None:
    loss_slopes(loss, z, b, y, s, out)
    add_rows(rows, out, gradient)
    if intercept:
        gradient[-1] += out.sum()
    slopes_to_curvatures(loss, z, b, y, s, out)
    add_outer_products(rows, out, hessian)
    if intercept:
        add_rows(rows, out, hessian[:, -1])
        hessian[-1, -1] += out.sum()


@device
def _divide(matrix: Any, right: Any, out: Any) -> None:
    """Solve matrix · out = right, as `hessian.Factor` does."""
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
    """Replace the upper triangle by U with Uᵀ U equal to it; False where it is not positive definite."""
    for j in range(matrix.shape[0]):
        line = matrix[j]
        if not line[j] > 0.0:
            return False
        root = np.sqrt(line[j])
        for k in range(j, line.size):
            line[k] /= root
        for i in range(j + 1, line.size):
            below, factor = matrix[i], line[i]
            for k in range(i, line.size):
                below[k] -= factor * line[k]
    return True
