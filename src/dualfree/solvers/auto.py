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
from ..problem import Problem
from .adfsdca_plus import AdfSdcaPlus
from .base import Solver
from .importance import Importance
from .interior_point import InteriorPoint
from .newton import Newton
from .prox_sdca import ProxSdca
from .seen_residuals import SeenResiduals

_NEWTON_STEPS = 12
_INTERIOR_STEPS = 20
_INTERIOR_PATIENCE = 6
_MANY_PASSES = 20
_TOO_MANY_PASSES = 100
# Nanoseconds on a 2023 server core; only their ratios matter.
PER_ENTRY, PER_ROW, _PER_OUTER, PER_BLAS_FLOP, _PER_STEP = 2.5, 30.0, 0.7, 0.08, 3e5


class Auto(Solver):
    """Choose the method from what the run shows."""

    name = "auto"
    needs_smooth = False

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        self.active: Solver = (ProxSdca if problem.loss.convex else Importance)(problem, rng)
        self.phase = self.active.name
        self.history: list[tuple[float, float]] = []
        self.first_rate = math.inf
        self.settled = not problem.loss.convex

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin the first phase."""
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

    def renew(self, w: Array) -> None:
        """Pass on to the active method."""
        self.active.renew(w)

    # --- which method next ------------------------------------------------------------------------------------------

    def observe(self, gap: float, target: float) -> None:
        """Extrapolate from the last two gaps and change the method where another one is cheaper."""
        self.history.append((self.rows_touched / self.problem.n, gap))
        if self.settled or len(self.history) < 3 or not gap > target:
            return
        (passes_before, gap_before), (passes, _) = self.history[-2:]
        rate = math.log(gap_before / gap) / max(1e-9, passes - passes_before) if gap > 0 else math.inf
        left = math.log(gap / max(target, 1e-15 * self.problem.at_zero)) / rate if rate > 0 else math.inf
        newton = Newton.suits(self.problem)
        if isinstance(self.active, InteriorPoint):
            gaps = [gap for _, gap in self.history[self.since :]]
            if min(gaps[-_INTERIOR_PATIENCE:]) > 0.9 * min(gaps[:-_INTERIOR_PATIENCE], default=math.inf):
                self._change(ProxSdca)
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
        elif isinstance(self.active, ProxSdca) and left > _MANY_PASSES:
            self.first_rate = rate
            self._change(SeenResiduals)
        elif isinstance(self.active, SeenResiduals) and rate < self.first_rate:
            self._change(AdfSdcaPlus)
        self.settled = isinstance(self.active, Newton)

    def _change(self, kind: type[Any]) -> None:
        old = self.active
        self.active = kind(self.problem, self.rng)
        self.active.start(old.alpha, old.intercept)
        self.phase = kind.name
        self.since = len(self.history)
        self.evaluate_each_epoch = self.active.evaluate_each_epoch

    def _epoch_cost(self) -> float:
        return PER_ENTRY * self.problem.nnz + PER_ROW * self.problem.n

    @cached_property
    def _newton_cost(self) -> float:
        factorisation = PER_BLAS_FLOP * self.problem.d**3
        return 3 * self._epoch_cost() + hessian_cost(self.problem) + factorisation + _PER_STEP


def hessian_cost(problem: Problem) -> float:
    """Nanoseconds, about, of forming Σ c_i x_i x_iᵀ."""
    if Newton.by_blas(problem):
        return PER_BLAS_FLOP * problem.n * problem.d**2
    lengths = np.diff(problem.rows[2]).astype(np.float64)
    return _PER_OUTER * 0.5 * float(lengths @ lengths)
