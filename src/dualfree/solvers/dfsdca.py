"""dfSDCA: dual-free SDCA with uniform probabilities (Shalev-Shwartz 2015), the method that the paper extends.

p_i = 1/n and θ = min_i r_i / n, the lower bound of Θ(κ, 1/n) that holds for every κ: Θ itself would need all residuals at
every step. θ/p_i is then the same number for all rows.
"""

from __future__ import annotations

from typing import Any

from .._jit import kernel
from ..losses.calls import residual
from ..problem import Problem
from ..rows import row_add, row_dot
from ..sampling import smallest_safe_ratio
from .base import RandomNumbers, Solver


class DfSdca(Solver):
    """Uniform sampling with one step ratio θ/p = min_i nλ/(nλ + L_i v_i)."""

    name = "dfsdca"

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.ratio = smallest_safe_ratio(problem, self.extra)

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        order = self.rng.integers(self.problem.n, size=count)
        _visit(*self.data, order, self.ratio, self.alpha, self.w, self.offset)
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
    ratio: float,
    alpha: Any,
    w: Any,
    offset: Any,
) -> None:
    for i in order:  # line 12
        kappa = residual(loss, row_dot(rows, i, w) + offset[0], y[i], s[i], alpha[i])
        delta = -ratio * kappa  # line 13, θ/p_i = ratio
        alpha[i] += delta
        row_add(rows, i, scale * delta, w)  # line 14
        offset[0] += scale * extra * delta
