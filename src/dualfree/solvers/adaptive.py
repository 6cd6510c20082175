"""Exact steps, with visits in proportion to the residuals: the lemma's probabilities, fresh at the start of each epoch.

The lemma wants p_i ∝ c_i |κ_i|. A scan in the order of the rows finds all residuals at a fifth of the cost of an epoch,
whose visits are in random order and wait for one another. So each epoch ends with a scan, which does three things: it says how
often each row is visited in the next epoch, it says about how large the gap is, and rows whose residual is zero
(most of them, with the squared hinge) are not visited at all.

Each epoch has n visits. Half of them are shared out in proportion to c_i|κ_i|, half are the same for all rows whose residual is
not zero: by the lemma alone rows that are nearly solved wait until they are not, and where most rows matter a plain
permutation would be faster. A row gets at most 40 visits; more of the same row in one epoch are wasted. Shares are rounded to
whole visits by systematic sampling (one uniform number an epoch, expectation exact) and shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import kernel
from ..losses.calls import loss_curvatures, loss_fenchel_young, loss_slopes
from ..problem import Problem
from ..sampling.adaptive import lemma_scales
from ..sampling.permutation import shuffle
from ..team import own_rows
from ..vector_math import AT_A_TIME, wide_vectors
from .base import RandomNumbers
from .exact_steps import ExactSteps
from .line_search import misfit

_MOST = 40.0


class Adaptive(ExactSteps):
    """Adaptive visits from a scan an epoch; not offered by name, `auto` turns to it."""

    name = "adaptive"
    exactly = False

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        _, self.c = lemma_scales(problem, self.extra)
        self.shares = np.empty(problem.n)
        self.order = np.empty(problem.n, dtype=np.int32 if problem.n < 2**31 else np.int64)

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin with a scan."""
        super().start(alpha, intercept)
        self._scan()

    def take_over(self, other: ExactSteps) -> None:
        """Begin with a scan."""
        super().take_over(other)
        self._scan()

    def _scan(self) -> None:
        problem = self.problem
        point = (self.w, float(self.offset[0]), self.c, self.alpha, self.shares)
        targets = (problem.loss.compiled, problem.y, problem.sample_weight)
        total = float(self.team.say(_scan, problem.rows, *targets, *point)[0])
        self.gap_estimate = total / problem.n
        self.rows_touched += problem.n

    def begin_epoch(self) -> None:
        """Share out n visits."""
        super().begin_epoch()
        self.filled = _share_out(self.shares, self.rng.random(), self.order)
        shuffle(self.order[: self.filled], self.rng)
        self.position = 0

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        order = self.order[self.position : min(self.filled, self.position + count)]
        self.position += count
        self._make_steps(order)

    def end_epoch(self) -> None:
        """Scan the residuals."""
        super().end_epoch()
        self._scan()


@kernel
def _scan(
    own: int,
    cuts: Any,
    said: Any,
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    w: Any,
    b: float,
    c: Any,
    alpha: Any,
    shares: Any,
) -> None:
    """shares_i = c_i |κ_i|; say about Σ FY_i."""
    wide_vectors()
    slopes, curvatures = np.empty(AT_A_TIME), np.empty(AT_A_TIME)
    mine = own_rows(own, cuts)
    rows = _rows.rows_between(rows, mine)
    y, s, c, alpha, shares = y[mine], s[mine], c[mine], alpha[mine], shares[mine]
    total = 0.0
    for first in range(0, y.size, AT_A_TIME):
        last = min(first + AT_A_TIME, y.size)
        size = last - first
        z = shares[first:last]
        for k in range(size):
            z[k] = _rows.row_dot(rows, first + k, w)
        loss_slopes(loss, z, b, y[first:last], s[first:last], slopes[:size])
        loss_curvatures(loss, z, b, y[first:last], s[first:last], slopes[:size], curvatures[:size])
        here, flat = misfit(slopes[:size], curvatures[:size], alpha[first:last])
        total += here
        for k in range(size if flat else 0):
            i = first + k
            if curvatures[k] == 0.0 and s[i] > 0.0 and slopes[k] + alpha[i] != 0.0:
                total += s[i] * loss_fenchel_young(loss, z[k] + b, y[i], alpha[i] / s[i])[0]
        for k in range(size):
            z[k] = c[first + k] * abs(slopes[k] + alpha[first + k])
    said[own, 0] = total


@kernel
def _share_out(shares: Any, offset: float, order: Any) -> int:
    """Fill `order` with about n visits, row by row; return how many there are.

    Half of them go to all rows alike that have a share.
    """
    n = shares.size
    total, sharing = 0.0, 0
    for i in range(n):
        total += shares[i]
        sharing += shares[i] > 0.0
    if total == 0.0:
        return 0
    alike, most = total / sharing, 2.0 * _MOST * total / n
    given = 0.0
    for i in range(n):
        if shares[i] > 0.0:
            given += min(most, shares[i] + alike)
    per_share = n / given
    mark, filled = offset, 0
    for i in range(n):
        if shares[i] > 0.0:
            mark += per_share * min(most, shares[i] + alike)
        while mark >= 1.0 and filled < n:
            order[filled] = i
            filled += 1
            mark -= 1.0
    return filled
