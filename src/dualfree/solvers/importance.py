"""Importance sampling with fixed probabilities p_i ∝ nλ + L_i v_i (Csiba and Richtárik; Zhao and Zhang).

For these p, Θ(κ, p) is the same for every κ and θ/p_i is exactly the safe ratio r_i = nλ/(nλ + L_i v_i).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import kernel
from ..losses.calls import residual
from ..problem import Problem
from ..rows import row_add, row_dot
from ..sampling.adaptive import lemma_pair, potential_scales, safe_ratios
from .base import RandomNumbers, Solver


class Importance(Solver):
    """Fixed probabilities p_i ∝ 1/r_i with the step ratio r_i."""

    name = "importance"

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.scales = potential_scales(problem, self.extra)
        ratios = safe_ratios(problem, self.extra)
        self.cumulative = np.cumsum(np.divide(1.0, ratios, out=np.zeros(problem.n), where=ratios > 0))

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        marks = self.rng.random(count) * self.cumulative[-1]
        order = np.searchsorted(self.cumulative, marks, side="right")
        np.minimum(order, self.problem.n - 1, out=order)
        _visit(*self.data, order, self.scales, self.alpha, self.w, self.offset)
        self.rows_touched += count


@kernel
def _visit(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    order: Any,
    scales: Any,
    alpha: Any,
    w: Any,
    offset: Any,
) -> None:
    for i in order:  # line 12
        kappa = residual(loss, row_dot(rows, i, w) + offset[0], y[i], s[i], alpha[i])
        a, c = lemma_pair(s[i], v[i] + extra, scales)
        delta = -(a / (c * c)) * kappa if c > 0.0 else 0.0  # line 13, θ/p_i = r_i
        alpha[i] += delta
        row_add(rows, i, scale * delta, w)  # line 14
        offset[0] += scale * extra * delta
