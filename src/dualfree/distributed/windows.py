"""Rounds of less than a pass, for partitions whose rows take longer to visit than a message takes.

What partitions do at the same time without knowing of one another is what makes CoCoA+ slower than one machine. So where
messages are cheap, a round is a window: a quarter or an eighth of a pass, in new random orders. Measured with 2 partitions of
ten million non-zeros, to 1e-6: 7 passes in eighths, against 6 epochs on one machine and 30 passes in whole ones.

Steps of partitions may be added up where σ' ≥ ‖Σ Δ_k‖² / Σ ‖Δ_k‖², Δ_k being what partition k adds to w: K at worst, and near 1
while partitions move in different directions. The next window takes what the last one has shown, and the last window of each
pass takes K, which puts right what overshot where all of them agree. The certificate is the judge: whenever a gap has grown, σ'
stays twice as large from then on, until it is K, with which convergence is proven.
"""

from __future__ import annotations

import math
from typing import NamedTuple

_CAUTION = 1.1
# A certificate costs nearly a pass. It is due when the activity says that tol is met, and after so many passes at any rate.
_LONGEST_WAIT = 3
# Passes after which windows must have shown how fast they are, and the most that may then be left. Wherever windows needed less
# than a hundred passes they needed fewer than accelerated rounds did; where they needed more, it was now one, now the other.
_FAIR_TRIAL, _TOO_MANY = 10, 100.0


class Window(NamedTuple):
    """Which rows to visit, `number` counting windows from the start of the fit and `of` those in a pass; and σ'."""

    number: int
    of: int
    sigma: float


class WindowTerms(NamedTuple):
    """Of one partition: Σ α_i, what was added to b + βω, ‖Δ_k‖² with the intercept's column, and the solver's activity."""

    total: float
    moved: float
    apart: float
    activity: float


class Windows:
    """Which window comes next, and when a certificate is due."""

    def __init__(self, count: int, partitions: int) -> None:
        self.count, self.partitions = count, float(partitions)
        self.number = 0
        self.sigma = self.least = 1.0
        self.activity = 0.0  # of the pass that is under way, or has just ended
        self.evaluated_pass, self.evaluated_activity, self.gap = 0, 0.0, math.inf
        self.optimism = 1.0  # by how much the estimate was too small at the last certificate

    @property
    def next(self) -> Window:
        """The window to visit."""
        last = self.number % self.count == self.count - 1
        return Window(self.number, self.count, self.partitions if last else self.sigma)

    @property
    def between_passes(self) -> bool:
        """Whether a pass has just ended."""
        return self.number % self.count == 0

    def learn(self, together: float, apart: float, activity: float) -> None:
        """Hear what the window has done: ‖Σ Δ_k‖², Σ ‖Δ_k‖² and the solver's activity."""
        if self.between_passes:
            self.activity = 0.0
        self.activity += activity
        self.number += 1
        if apart > 0.0:
            self.sigma = min(self.partitions, max(self.least, _CAUTION * together / apart))

    @property
    def estimate(self) -> float | None:
        """What the gap is about now: it shrinks as the activity does."""
        return self.gap * self.activity / self.evaluated_activity if self.evaluated_activity > 0.0 else None

    def evaluation_is_due(self, target: float) -> bool:
        """Whether to ask for a certificate."""
        if not self.between_passes:
            return False
        passes = self.number // self.count
        estimate = self.estimate
        if estimate is None or passes >= self.evaluated_pass + _LONGEST_WAIT:
            return True
        return estimate * self.optimism <= target

    def too_many(self, left: float) -> bool:
        """Whether so many windows are left that accelerated rounds of whole passes will come to the end sooner."""
        return self.number >= _FAIR_TRIAL * self.count and left > _TOO_MANY * self.count

    def heed(self, gap: float) -> None:
        """Hear of a certificate."""
        estimate = self.estimate
        if estimate:
            self.optimism = max(1.0, gap / estimate)
        if gap > self.gap:
            self.least = min(self.partitions, 2.0 * self.least)
            self.sigma = max(self.sigma, self.least)
        self.evaluated_pass, self.evaluated_activity, self.gap = self.number // self.count, self.activity, gap
