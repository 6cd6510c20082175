"""Exact steps, with visits in proportion to the residuals *already seen*: adaptive sampling without a scan.

The lemma wants p_i ∝ c_i |κ_i| with the residuals of this moment. An epoch sees every κ_i anyway, a little earlier: the
residual found at a visit, before the step, is kept and decides how often the row is visited in the next epoch. That
costs nothing, and it is what shrinking heuristics are after: rows that no longer matter are visited less often, never left out.

Each epoch has n visits. Row i gets its share n c_i|κ_i| / Σ c_j|κ_j|, clipped to [0.1, 4] so that a residual that has
changed since is found out soon; shares are rounded to whole visits by systematic sampling (one uniform number an
epoch, expectation exact), and the visits are shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Array
from .._jit import kernel
from ..losses.calls import near_step
from ..problem import Problem
from ..rows import row_add, row_dot, row_prefetch
from ..sampling.adaptive import lemma_pair, potential_scales
from ..sampling.permutation import shuffle
from .exact_steps import ExactSteps

_LEAST, _MOST = 0.1, 4.0
_AHEAD = 3


class SeenResiduals(ExactSteps):
    """Adaptive visits from the residuals of the last visits; not offered by name, `auto` turns to it."""

    name = "seen-residuals"

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        self.scales = potential_scales(problem, self.extra)
        self.seen = np.full(problem.n, np.inf, dtype=np.float32)  # infinite: not seen yet
        self.order = np.empty(problem.n, dtype=np.int32 if problem.n < 2**31 else np.int64)

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin with one visit to each row."""
        super().start(alpha, intercept)
        self.order[:] = np.arange(self.problem.n)

    def begin_epoch(self) -> None:
        """Share out n visits."""
        super().begin_epoch()
        if np.isfinite(self.seen[0]):
            _share_out(self.seen, self.rng.random(), self.order)
        shuffle(self.order, self.rng)
        self.position = 0

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        order = self.order[self.position : self.position + count]
        self.position += count
        moved = _visit(*self.data, self.scales, order, self.seen, self.alpha, self.w, self.offset)
        self._account(count, *moved)


@kernel
def _share_out(seen: Any, offset: float, order: Any) -> None:
    n = seen.size
    mean = 0.0
    for i in range(n):
        mean += seen[i]
    mean /= n
    if mean == 0.0:
        mean = 1.0
    total = 0.0
    for i in range(n):
        total += min(_MOST, max(_LEAST, seen[i] / mean))
    per_unit = n / total
    mark, filled = offset, 0
    for i in range(n):
        mark += per_unit * min(_MOST, max(_LEAST, seen[i] / mean))
        while mark >= 1.0 and filled < n:
            order[filled] = i
            filled += 1
            mark -= 1.0
    while filled < n:
        order[filled] = n - 1
        filled += 1


@kernel
def _visit(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    scales: Any,
    order: Any,
    seen: Any,
    alpha: Any,
    w: Any,
    offset: Any,
) -> tuple[float, float]:
    """Make one exact step for each row of `order`; return Σ |c| ‖x_i‖ and Σ (α_i⁺ − α_i)²."""
    travelled, squares = 0.0, 0.0
    for k in range(order.size):
        if k + _AHEAD < order.size:
            row_prefetch(rows, order[k + _AHEAD])
        i = order[k]
        z = row_dot(rows, i, w) + offset[0]
        _, c = lemma_pair(s[i], v[i] + extra, scales)
        new, kappa = near_step(loss, z, y[i], s[i], alpha[i], scale * (v[i] + extra))
        seen[i] = c * abs(kappa)
        delta = new - alpha[i]
        if delta != 0.0:
            alpha[i] = new
            row_add(rows, i, scale * delta, w)
            offset[0] += scale * extra * delta
            travelled += abs(scale * delta) * np.sqrt(v[i])
            squares += delta * delta
    return travelled, squares
