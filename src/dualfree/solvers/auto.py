"""`auto`, the default: begin with Prox-SDCA, then go on with whatever the run itself shows to be cheaper.

Phases, each warm-started from the point that the one before reached:

- ``prox-sdca`` with permutations. Most of the way on easy problems.
- ``newton``, where the Hessian is affordable and the epochs that are left, extrapolated from the last gaps, would cost
  more than a dozen Newton steps. Where d is too large for that, truncated Newton when even adaptive sampling would need
  a hundred passes more.
- ``interior-point``, under the same condition, for losses with a corner (hinge, ε-insensitive). Should it end before tol,
  rounding being in its way, Prox-SDCA goes on from its α.
- ``seen-residuals``, where the Hessian is not to be had: exact steps on rows chosen by the residuals of their last visits. It
  pays where few rows still matter. Where it contracts the gap more slowly per pass than the permutations did (residuals
  out of date too soon), ``adfsdca+`` takes over, which scans them afresh each epoch.

Average-convex losses have no exact steps; they are solved by ``importance`` sampling.

Every decision is a function of sizes and gaps, never of the clock, so a seed gives the same bits on every machine.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from .._checks import Array
from ..losses import Logistic, Squared
from ..problem import Problem
from .adaptive import Adaptive
from .base import Solver
from .conjugate_gradients import ConjugateGradients
from .importance import Importance
from .interior_point import InteriorPoint
from .newton import Newton
from .prox_sdca import Permutations

# How many steps each second-order method is expected to need from where it begins, and how many passes are many.
_NEWTON_STEPS, _INTERIOR_STEPS, _INTERIOR_PATIENCE = 4, 20, 6
_FEW_EPOCHS = 8
_MANY_PASSES = 7
_TOO_MANY_PASSES = 100
# Nanoseconds on a 2023 server core; only their ratios matter. An epoch: for a row (more where the step needs an exponential)
# and for an entry. A pass in the order of the rows: for an entry. A Newton step: besides the Hessian.
PER_ROW, _PER_EXPONENTIAL, PER_ENTRY = 30.0, 40.0, 3.5
_PER_ENTRY_IN_ORDER = 1.0
_PER_STEP, _PER_STEP_ROW, PER_CUBE = 3e5, 25.0, 0.03


class Auto(Solver):
    """Choose the method from what the run shows."""

    name = "auto"
    needs_smooth = False

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        self.active: Solver = self._first_method()(problem, rng)
        self.phase = self.active.name
        self.history: list[tuple[float, float]] = []
        self.settled = isinstance(self.active, (Importance, Newton, ConjugateGradients))

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin the first phase."""
        self.active.team = self.team
        self.active.start(alpha, intercept)

    def begin_epoch(self) -> None:
        """Pass on to the active method."""
        self.active.begin_epoch()
        self._count()

    def visit(self, count: int) -> None:
        """Pass on to the active method."""
        self.active.visit(count)
        self._count()

    def _count(self) -> None:
        self.rows_touched += self.active.rows_touched
        self.active.rows_touched = 0.0

    def end_epoch(self) -> None:
        """Pass on to the active method."""
        self.active.end_epoch()

    @property
    def visits_per_call(self) -> int:
        """Pass on to the active method."""
        return self.active.visits_per_call

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Pass on to the active method."""
        return self.active.candidate()

    def renew(self, w: Array, error: float) -> None:
        """Pass on to the active method."""
        self.active.renew(w, error)

    # What the driver asks about the point that the active method has reached.
    w: Array = property(lambda self: self.active.w)  # type: ignore[assignment]
    drift = property(lambda self: self.active.drift)
    activity = property(lambda self: self.active.activity)
    gap_estimate = property(lambda self: self.active.gap_estimate)
    trusts_dual = property(lambda self: self.active.trusts_dual)
    evaluate_each_epoch = property(lambda self: self.active.evaluate_each_epoch)

    # --- which method first -----------------------------------------------------------------------------------------

    def _first_method(self) -> type[Solver]:
        problem = self.problem
        if not problem.loss.convex:
            return Importance
        if Newton.suits(problem) and Newton.direct(problem):
            steps = 1 if isinstance(problem.loss, Squared) else _NEWTON_STEPS
            if steps * self._newton_cost < _FEW_EPOCHS * self._epoch_cost():
                return Newton
        if ConjugateGradients.suits(problem) and not Newton.direct(problem):
            return ConjugateGradients
        return Permutations

    # --- which method next ------------------------------------------------------------------------------------------

    def observe(self, gap: float, target: float) -> None:
        """Extrapolate from the gaps of the last half of the run and change the method where another one is cheaper."""
        passes = self.rows_touched / self.problem.n
        self.history.append((passes, gap))
        if self.settled or len(self.history) < 3 or not gap > target:
            return
        # The first gap of all says nothing of the rate: one epoch takes most of it away.
        passes_before, gap_before = next(entry for entry in self.history[1:] if entry[0] >= 0.5 * passes)
        rate = math.log(gap_before / gap) / max(1e-9, passes - passes_before) if passes > passes_before else 0.0
        left = math.log(gap / max(target, 1e-15 * self.problem.at_zero)) / rate if rate > 0 else math.inf
        newton = Newton.suits(self.problem)
        if isinstance(self.active, InteriorPoint):
            gaps = [gap for _, gap in self.history[self.since :]]
            if min(gaps[-_INTERIOR_PATIENCE:]) > 0.9 * min(gaps[:-_INTERIOR_PATIENCE], default=math.inf):
                self._change(Permutations)
                self.settled = True
            return
        if InteriorPoint.suits(self.problem) and left * self._epoch_cost() > _INTERIOR_STEPS * self._newton_cost:
            self._change(InteriorPoint)
            return
        if newton and Newton.direct(self.problem):
            if left * self._epoch_cost() > _NEWTON_STEPS * self._newton_cost:
                self._change(Newton)
        elif newton and left > _TOO_MANY_PASSES and passes > _TOO_MANY_PASSES / 4:
            self._change(Newton)
        elif isinstance(self.active, Permutations) and left > _MANY_PASSES:
            self._change(Adaptive)
        self.settled = isinstance(self.active, Newton)

    def _change(self, kind: type[Any]) -> None:
        old = self.active
        self.active = kind(self.problem, self.rng)
        self.active.team = self.team
        self.active.start(old.alpha, old.intercept)
        self.phase = kind.name
        self.since = len(self.history)

    def _epoch_cost(self) -> float:
        problem = self.problem
        per_row = PER_ROW + (_PER_EXPONENTIAL if isinstance(problem.loss, Logistic) else 0.0)
        return PER_ENTRY * problem.nnz + per_row * problem.n

    @cached_property
    def _newton_cost(self) -> float:
        problem = self.problem
        passes = 3.0 * _PER_ENTRY_IN_ORDER * problem.nnz + _PER_STEP_ROW * problem.n
        return passes + Newton.hessian_cost(problem) + PER_CUBE * problem.d**3 + _PER_STEP
