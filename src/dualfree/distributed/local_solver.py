"""The local solver: exact steps on CoCoA+'s subproblem of one partition.

Partition k maximises, over the changes δ of its own α,

    −(1/n) Σ_i s_i φ*(−(α_i + δ_i)/s_i) − λ w·Δw − (λσ'/2) ‖Δw‖²,     Δw = (1/(λn)) Σ_i δ_i x_i.

With w_local = w + σ'Δw, the step along one coordinate is the one of Prox-SDCA with 1/(λn) replaced by σ'/(λn), in q_i and
in the update of w_local alike. So the package's kernels do it, given a problem whose λn is divided by σ' (`Part.bind`).

Rows are visited in random orders that are the same in every round. A round is then a fixed, continuous map of α and w, and
that is what its acceleration needs (`anderson`): with new orders each round, or with visits that follow the residuals, the
noise of a solution that is not exact drowns the differences between rounds. Measured on rcv1_subsets with 8 partitions
at λ = 1/n, rounds to 1e-6: 67 plain, 19 accelerated with two passes in fixed orders, 50 and more with adaptive visits.
"""

from __future__ import annotations

import numpy as np

from .._checks import Array
from ..problem import Problem
from ..solvers.prox_sdca import ProxSdca


class LocalSolver(ProxSdca):
    """Passes over the rows of a partition; the same `rng` gives the same orders."""

    def __init__(self, problem: Problem, rng: np.random.Generator, extra: float) -> None:
        super().__init__(problem, rng)
        self.extra = extra

    def improve(self, alpha: Array, w: Array, offset: float, passes: int) -> None:
        """Change α in place; w and the offset are those of the start and stay as they are."""
        self.alpha, self.w, self.farthest = alpha, w.copy(), 0.0  # w(α) is summed anew: no account is kept of its drift
        self.offset = np.array([offset])
        for _ in range(passes):
            self.begin_epoch()
            self.visit(self.problem.n)
