"""Prox-SDCA (Shalev-Shwartz and Zhang 2014): maximise the dual exactly along one coordinate after another.

Rows are visited in a new random permutation each epoch (``order="permutation"``, the stronger choice in practice) or drawn
independently (``order="uniform"``, as in the paper's experiments).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import one_of
from .._jit import kernel
from ..losses.calls import exact_step, near_step
from ..problem import Problem
from ..rows import row_add, row_dot, row_prefetch
from ..sampling.permutation import shuffle
from .exact_steps import ExactSteps

# Rows are asked for so many visits before their turn.
_AHEAD = 3


class ProxSdca(ExactSteps):
    """Exact coordinate steps of the dual."""

    name = "prox-sdca"
    exactly = True

    def __init__(self, problem: Problem, rng: np.random.Generator, *, order: str = "permutation") -> None:
        super().__init__(problem, rng)
        self.order = one_of("order", order, ("permutation", "uniform"))
        if self.order == "permutation":
            kind = np.int32 if problem.n < 2**31 else np.int64
            self.permutation = np.arange(problem.n, dtype=kind)

    def begin_epoch(self) -> None:
        """Shuffle the rows."""
        super().begin_epoch()
        self.position = 0
        if self.order == "permutation":
            shuffle(self.permutation, self.rng)

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        if self.order == "permutation":
            order = self.permutation[self.position : self.position + count]
            self.position += count
        else:
            order = self.rng.integers(self.problem.n, size=count, dtype=np.int32)
        self._account(count, *visit_rows(*self.data, self.exactly, order, self.alpha, self.w, self.offset))


class Permutations(ProxSdca):
    """Prox-SDCA for `auto`: steps may be a little short of exact where that saves time."""

    exactly = False


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
    order: Any,
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
        q = scale * (v[i] + extra)
        if exactly:
            new = exact_step(loss, z, y[i], s[i], alpha[i], q)
        else:
            new, _ = near_step(loss, z, y[i], s[i], alpha[i], q)
        delta = new - alpha[i]
        if delta != 0.0:
            alpha[i] = new
            row_add(rows, i, scale * delta, w)
            offset[0] += scale * extra * delta
            travelled += abs(scale * delta) * np.sqrt(v[i])
            squares += delta * delta
    return travelled, squares
