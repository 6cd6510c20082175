"""Exact steps, with visits in proportion to the residuals: the lemma's probabilities, fresh at the start of each epoch.

The lemma wants p_i ∝ c_i |κ_i|. A scan in the order of the rows finds all residuals at a fifth of the cost of an epoch,
whose visits are in random order and wait for one another. So each epoch ends with a scan, which does three things: it says how
often each row is visited in the next epoch, it says about how large the gap is, and rows whose residual is zero
(most of them, with the squared hinge) are not visited at all.

Where those are many, they mostly stay at zero, and a scan of all rows is in vain for them. When it finds hardly anything new
among them, the next scans leave them out: one, then three, then seven, until one of all rows finds something.

Each epoch has n visits, the last one may have fewer. Half are shared out in proportion to c_i|κ_i|, half are the same for
all rows whose residual is not zero: by the lemma alone rows that are nearly solved wait until they are not, and where most rows
matter a plain permutation would be faster. A row gets at most 40 visits; more of the same row in one epoch are wasted. Shares
are rounded to whole visits by systematic sampling (one uniform number an epoch, expectation exact) and shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..losses.calls import loss_curvatures, loss_fenchel_young, loss_slopes
from ..problem import Problem
from ..sampling.adaptive import lemma_scales
from ..sampling.layout import lay_out, round_shares
from ..sampling.permutation import shuffle, shuffle_runs
from ..team import fetch_shared
from ..vector_math import AT_A_TIME, wide_vectors
from .base import RandomNumbers
from .dealing import Visits
from .exact_steps import ExactSteps, run_length
from .line_search import misfit

_MOST = 40.0
# Scans of a part of the rows: at most so many in a row, if that part is at most so large, and the others' part of all shares
# was at most so large when it was looked at last.
_MOST_SHORT, _LARGE_PART, _HARDLY = 7, 0.5, 0.02


class Adaptive(ExactSteps):
    """Adaptive visits from a scan an epoch; not offered by name, `auto` turns to it."""

    name = "adaptive"
    exactly = False
    takes_long = True
    may_shorten = True

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        _, self.c = lemma_scales(problem, self.extra)
        self.shares = np.zeros(problem.n)
        self.everyone = np.arange(problem.n, dtype=_rows.number_type(problem.n))
        # rounding may make one visit more, and `lay_out` wants a place more than visits
        self.order = np.empty(problem.n + 2, dtype=self.everyone.dtype)
        self.sharing, self.counts = self.everyone, np.empty(problem.n, dtype=np.int32)
        self.length = run_length(problem)
        self.short_scans = self.short_scans_left = 0
        self.all_shares, self.with_share = 0.0, 0  # their sum, and how many rows have one

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin with a scan."""
        super().start(alpha, intercept)
        self._scan()

    def take_over(self, other: ExactSteps) -> None:
        """Begin with a scan."""
        super().take_over(other)
        self._scan()

    def _scan(self) -> None:
        """Scan the rows that matter, or all: from time to time, and after a short scan has said that the target is met."""
        problem = self.problem
        if self.short_scans_left > 0:
            self.gap_estimate = self._scan_rows(self.sharing)[0] / problem.n
            self.short_scans_left = self.short_scans_left - 1 if self.gap_estimate > self.target else 0
            return
        total, new = self._scan_rows(self.everyone)
        self.gap_estimate = total / problem.n
        sharing = _with_share(self.shares, self.everyone)
        few = sharing.size <= _LARGE_PART * problem.n
        self.sharing = sharing if few else self.everyone
        quiet = few and new <= _HARDLY * self.all_shares
        self.short_scans = min(2 * self.short_scans + 1, _MOST_SHORT) if quiet else 0
        self.short_scans_left = self.short_scans

    def _scan_rows(self, which: Array) -> tuple[float, float]:
        """Find the shares of some rows, others having none; return about Σ FY_i, and the shares of those that had none."""
        problem = self.problem
        point = (self.w, float(self.offset[0]), self.c, self.alpha, self.shares)
        targets = (problem.loss.compiled, problem.y, problem.sample_weight)
        said = self.team.say(_scan, which, problem.rows, *targets, *point)
        self.rows_touched += which.size
        self.all_shares, self.with_share = float(said[1]), int(said[3])
        return float(said[0]), float(said[2])

    @property
    def part_of_scans(self) -> float:
        """What part of the rows that are touched, as things are, scans touch."""
        scanned = (self.problem.n + self.short_scans * self.sharing.size) / (1 + self.short_scans)
        return scanned / (scanned + self.problem.n)

    def begin_epoch(self) -> None:
        """Share out n visits, or the part of them that is wanted."""
        super().begin_epoch()
        self.position = 0
        shared = (self.shares, self.sharing, self.all_shares, self.with_share)
        visits = self.part_wanted * self.problem.n
        self.filled = round_shares(*shared, visits, _MOST, self.rng.random(), self.counts)
        if self.threads_shuffle:
            return
        lay_out(self.sharing, self.counts, self.order)
        order = self.order[: self.filled]
        if self.length > 1:
            shuffle_runs(order.copy(), order, self.length, self.rng)
        else:
            shuffle(order, self.rng)

    def visit(self, count: int) -> None:
        """Make `count` updates."""
        if self.threads_shuffle:
            self._make_steps_together(Visits(self.sharing, self.counts, self.filled, self.length))
            return
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
    which: Any,
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
    """shares_i = c_i |κ_i| of rows `which`; say about Σ FY_i, the shares' sum, that of rows without, and how many have one."""
    wide_vectors()
    z, targets, weights, dual, slopes, curvatures = np.empty((6, AT_A_TIME))
    begin, end = _own_places(own, cuts, which)
    fetch_shared(cuts, w)
    total, all_shares, new, number = 0.0, 0.0, 0.0, 0
    for first in range(begin, end, AT_A_TIME):
        size = min(AT_A_TIME, end - first)
        for k in range(size):
            i = which[first + k]
            z[k] = _rows.row_dot(rows, i, w)
            targets[k], weights[k], dual[k] = y[i], s[i], alpha[i]
        loss_slopes(loss, z[:size], b, targets[:size], weights[:size], slopes[:size])
        loss_curvatures(loss, z[:size], b, targets[:size], weights[:size], slopes[:size], curvatures[:size])
        here, flat = misfit(slopes[:size], curvatures[:size], dual[:size])
        total += here
        for k in range(size if flat else 0):
            if curvatures[k] == 0.0 and weights[k] > 0.0 and slopes[k] + dual[k] != 0.0:
                total += weights[k] * loss_fenchel_young(loss, z[k] + b, targets[k], dual[k] / weights[k])[0]
        for k in range(size):
            i = which[first + k]
            share = c[i] * abs(slopes[k] + dual[k])
            all_shares += share
            number += share > 0.0
            new += share if shares[i] == 0.0 else 0.0
            shares[i] = share
    said[own, 0], said[own, 1], said[own, 2], said[own, 3] = total, all_shares, new, number


@device
def _own_places(own: int, cuts: Any, which: Any) -> tuple[int, int]:
    """A thread's part of a list of rows: its own rows, if that are all; else one that is as long as the others'."""
    size = cuts.size - 1
    if which.size == cuts[size]:
        return cuts[own], cuts[own + 1]
    return which.size * own // size, which.size * (own + 1) // size


@kernel
def _with_share(shares: Any, everyone: Any) -> Any:
    """Return the rows that have a share."""
    which = np.empty_like(everyone)
    found = 0
    for i in range(shares.size):
        which[found] = i
        found += shares[i] > 0.0
    return which[:found]
