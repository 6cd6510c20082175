"""The loop that the solvers with exact steps share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import device, kernel
from ..losses.calls import exact_step, loss_curvature_from_dual, near_step
from ..rows import (
    adds_and_multiplies_at_once,
    prefetch_item,
    row_add,
    row_add_then_dot,
    row_dot,
    row_prefetch,
)

# Rows are asked for so many visits before their turn.
_AHEAD = 5


@device
def move_intercept(alpha: Any, b: float, scale: float, extra: float, offset: Any) -> float:
    """Make the step of the intercept that ends an epoch, as `Solver.end_epoch` does; return the new b."""
    if extra > 0.0:
        constant = extra * scale * alpha.sum()
        b += constant
        offset[0] = b + constant
    return b


@kernel
def visit_rows(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    exactly: bool,
    inverse_smoothness: float,
    part_of_q: float,
    order: Any,
    alpha: Any,
    w: Any,
    offset: Any,
) -> tuple[float, float, float, float, float]:
    """Make one exact step for each row of `order`.

    Return Σ |c| ‖x_i‖, n times what D gained, at least, and about Σ FY_i, Σ |κ_i| and Σ κ_i² of what the steps met.

    A step that counts only a part ρ ≥ ½ of q_i goes beyond the top, as in successive over-relaxation: D = c − q_i δ²/2 up to a
    constant and the factor 1/n, with c concave of curvature 1/L_i at least and a slope of at least ρ q_i δ where the step
    ends. So c gains ρ q_i δ² + δ²/(2 L_i) at least, and D half of 1/L_i + (2ρ − 1) q_i times δ².

    What row i had in the gap before, FY_i, is about κ²/(2 φ''), φ'' being that of halfway, and the step makes up for
    κ = (1 + ρ q_i φ'') δ. Where the loss has a corner, nothing of the kind is known.
    """
    travelled, gained, misfit, residuals, squares = 0.0, 0.0, 0.0, 0.0, 0.0
    smoothness = 1.0 / inverse_smoothness
    last = order.size - 1
    at_once = adds_and_multiplies_at_once(rows)
    product = row_dot(rows, order[0], w) if at_once and order.size > 0 else 0.0
    for k in range(order.size):
        if k + _AHEAD < order.size:
            soon = order[k + _AHEAD]
            row_prefetch(rows, soon)
            prefetch_item(alpha, soon)
            prefetch_item(y, soon)
            prefetch_item(v, soon)
            prefetch_item(s, soon)
        i = order[k]
        z = (product if at_once else row_dot(rows, i, w)) + offset[0]
        old, q = alpha[i], scale * (v[i] + extra)
        if exactly:
            new = exact_step(loss, z, y[i], s[i], old, part_of_q * q)
        else:
            new = near_step(loss, z, y[i], s[i], old, part_of_q * q)
        delta = new - old
        if at_once:
            product = row_add_then_dot(rows, i, scale * delta, order[min(k + 1, last)], w)
        elif delta != 0.0:
            row_add(rows, i, scale * delta, w)
        if delta != 0.0:
            alpha[i] = new
            offset[0] += scale * extra * delta
            travelled += abs(scale * delta) * np.sqrt(v[i])
            if s[i] > 0.0:
                half = 0.5 * delta * delta
                gained += half * (inverse_smoothness / s[i] + (2.0 * part_of_q - 1.0) * q)
                middle = 0.5 * (old + new)
                curvature = s[i] * loss_curvature_from_dual(loss, middle if s[i] == 1.0 else middle / s[i], smoothness)
                kappa = (1.0 + part_of_q * q * curvature) * delta
                square = kappa * kappa
                misfit += 0.5 * square / curvature if curvature < np.inf else half * q
                residuals += abs(kappa)
                squares += square
    return travelled, gained, misfit, residuals, squares
