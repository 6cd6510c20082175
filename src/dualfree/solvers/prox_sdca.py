"""Prox-SDCA (Shalev-Shwartz and Zhang 2014): maximise the dual exactly along one coordinate after another.

Rows are visited in a new random permutation each epoch (``order="permutation"``, the stronger choice in practice) or drawn
independently (``order="uniform"``, as in the paper's experiments).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import one_of
from .._jit import kernel
from ..losses.calls import exact_step
from ..problem import Problem
from ..rows import row_add, row_dot
from .base import Solver


class ProxSdca(Solver):
    """Exact coordinate steps of the dual."""

    name = "prox-sdca"
    needs_smooth = False
    needs_convex = True

    def __init__(self, problem: Problem, rng: np.random.Generator, *, order: str = "permutation") -> None:
        super().__init__(problem, rng)
        self.order = one_of("order", order, ("permutation", "uniform"))
        if self.order == "permutation":
            kind = np.int32 if problem.n < 2**31 else np.int64
            self.permutation = np.arange(problem.n, dtype=kind)

    def begin_epoch(self) -> None:
        """Shuffle the rows."""
        self.position = 0
        if self.order == "permutation":
            self.rng.shuffle(self.permutation)

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        if self.order == "permutation":
            order = self.permutation[self.position : self.position + count]
            self.position += count
        else:
            order = self.rng.integers(self.problem.n, size=count, dtype=np.int32)
        _visit(*self.data, order, self.alpha, self.w, self.offset)
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
    alpha: Any,
    w: Any,
    offset: Any,
) -> None:
    for i in order:
        z = row_dot(rows, i, w) + offset[0]
        new = exact_step(loss, z, y[i], s[i], alpha[i], scale * (v[i] + extra))
        delta = new - alpha[i]
        if delta != 0.0:
            alpha[i] = new
            row_add(rows, i, scale * delta, w)
            offset[0] += scale * extra * delta
