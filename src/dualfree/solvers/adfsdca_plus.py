"""adfSDCA+ (Algorithm 1, heuristic = True): residuals and probabilities once an epoch, then p_i shrinks with each visit.

κ_i is the residual of the row as it is visited; the probabilities come from the scan at the start of the epoch. As
printed, the step θ/p_i divides by a p_i that is out of date and that shrinking makes smaller still, and the method
diverges (``step="paper"`` shows it). Two remedies: cap the ratio at the safe r_i (``step="safe"``), or maximise the dual
exactly along the coordinate (``step="exact"``, the default for convex losses, and faster).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import one_of, real_number
from .._jit import kernel
from ..losses.calls import exact_step, residual
from ..problem import Problem
from ..rows import row_add, row_dot
from ..sampling.adaptive import lemma_pair, potential_scales
from ..sampling.sum_tree import build, draw, new_tree, refresh
from .base import RandomNumbers, Solver

_STEPS = {"safe": 0, "exact": 1, "paper": 2}
_SAFE, _EXACT = 0, 1


class AdfSdcaPlus(Solver):
    """Probabilities from one residual scan an epoch, divided by `shrink` after each visit."""

    name = "adfsdca+"
    needs_smooth = False
    instead = 'Use step="safe" or step="exact": the ratio θ/p_i of the printed algorithm divides by a stale p_i.'

    def __init__(self, problem: Problem, rng: RandomNumbers, *, shrink: float = 10.0, step: str | None = None) -> None:
        super().__init__(problem, rng)
        self.shrink = real_number("shrink", shrink, low=1.0)
        if step is None:
            step = "exact" if problem.loss.convex else "safe"
        self.step = one_of("step", step, _STEPS)
        if self.step == "exact" and not problem.loss.convex:
            raise ValueError(f"step='exact' needs a convex loss, and {problem.loss!r} is not. Use step='safe'.")
        if self.step != "exact" and not np.isfinite(problem.loss.smoothness):
            raise ValueError(f"step={step!r} needs a smooth loss, and {problem.loss!r} is not. Use step='exact'.")
        self.may_diverge = self.step == "paper"
        self.scales = potential_scales(problem, self.extra)
        self.nodes, self.levels = new_tree(problem.n)

    def begin_epoch(self) -> None:
        """Lines 5–7: residuals of all rows, p from the lemma."""
        squares = _scan(*self.data, self.scales, self.alpha, self.w, self.offset, self.nodes)
        build(self.nodes, self.levels)
        total = float(self.nodes[-1])
        self.theta_total = squares / total if total > 0 else 0.0  # θ Σ c_i |κ_i|, with θ = Θ* of the lemma
        self.rows_touched += self.problem.n

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        uniforms = self.rng.random(count)
        _visit(
            *self.data,
            self.scales,
            uniforms,
            _STEPS[self.step],
            self.theta_total,
            self.shrink,
            self.nodes,
            self.levels,
            self.alpha,
            self.w,
            self.offset,
        )
        self.rows_touched += count


@kernel
def _scan(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    scales: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    nodes: Any,
) -> float:
    """Leaf i = c_i |κ_i|, the lemma's p_i before normalisation; return Σ a_i κ_i²."""
    squares = 0.0
    for i in range(alpha.size):
        kappa = residual(loss, row_dot(rows, i, w) + offset[0], y[i], s[i], alpha[i])  # line 6
        a, c = lemma_pair(s[i], v[i] + extra, scales)
        nodes[i] = c * abs(kappa)  # line 7
        squares += a * kappa * kappa
    return squares


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
    uniforms: Any,
    step: int,
    theta_total: float,
    shrink: float,
    nodes: Any,
    levels: Any,
    alpha: Any,
    w: Any,
    offset: Any,
) -> None:
    for u in uniforms:
        i = draw(nodes, levels, u)  # line 12
        if i < 0:
            return  # every residual is zero
        z = row_dot(rows, i, w) + offset[0]
        if step == _EXACT:
            delta = exact_step(loss, z, y[i], s[i], alpha[i], scale * (v[i] + extra)) - alpha[i]
        else:
            ratio = theta_total / nodes[i]  # θ/p_i, as p_i = nodes[i] / total
            if step == _SAFE:
                a, c = lemma_pair(s[i], v[i] + extra, scales)
                ratio = min(ratio, a / (c * c))
            delta = -ratio * residual(loss, z, y[i], s[i], alpha[i])
        alpha[i] += delta  # line 13
        row_add(rows, i, scale * delta, w)  # line 14
        offset[0] += scale * extra * delta
        nodes[i] /= shrink  # line 15
        refresh(nodes, levels, i)
