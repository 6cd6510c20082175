"""The local solver: exact steps on CoCoA+'s subproblem of one partition.

Partition k maximises, over the changes δ of its own α,

    −(1/n) Σ_i s_i φ*(−(α_i + δ_i)/s_i) − λ w·Δw − (λσ'/2) ‖Δw‖²,     Δw = (1/(λn)) Σ_i δ_i x_i.

With w_local = w + σ'Δw, the step along one coordinate is the one of Prox-SDCA with 1/(λn) replaced by σ'/(λn), in q_i and
in the update of w_local alike. So the package's kernels do it, given a problem whose λn is divided by σ' (`Part.bind`).
"""

from __future__ import annotations

import numpy as np

from .._checks import Array
from ..problem import Problem
from ..sampling.adaptive import potential_scales
from ..solvers.seen_residuals import SeenResiduals


class LocalSolver(SeenResiduals):
    """Adaptive visits from the residuals seen last, those of the round before included."""

    def __init__(self, problem: Problem, rng: np.random.Generator, extra: float, seen: Array | None) -> None:
        super().__init__(problem, rng)
        self.extra = extra
        self.scales = potential_scales(problem, extra)
        if seen is not None:
            self.seen = seen.copy()

    def improve(self, alpha: Array, w: Array, offset: float, passes: int) -> Array:
        """Change α in place; return the residuals seen, for the next round."""
        self.alpha, self.w = alpha, w.copy()
        self.offset = np.array([offset])
        self.order[:] = np.arange(self.problem.n)
        for _ in range(passes):
            self.begin_epoch()
            self.visit(self.problem.n)
        return self.seen
