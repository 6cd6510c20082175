"""The loop that the solvers with exact steps share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import kernel
from ..losses.calls import exact_step, near_step
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
    order: Any,
    alpha: Any,
    w: Any,
    offset: Any,
) -> tuple[float, float]:
    """Make one exact step for each row of `order`; return Σ |c| ‖x_i‖ and n times what D gained, at least.

    Along a coordinate D is concave with a curvature of at least (1/L_i + q_i)/n, so a step δ to its top gains half of that
    times δ².
    """
    travelled, gained = 0.0, 0.0
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
        new = exact_step(loss, z, y[i], s[i], old, q) if exactly else near_step(loss, z, y[i], s[i], old, q)
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
                gained += 0.5 * (inverse_smoothness / s[i] + q) * delta * delta
    return travelled, gained
