"""The local solver: exact steps on CoCoA+'s subproblem of one partition.

Partition k maximises, over the changes δ of its own α,

    −(1/n) Σ_i s_i φ*(−(α_i + δ_i)/s_i) − λ w·Δw − (λσ'/2) ‖Δw‖²,     Δw = (1/(λn)) Σ_i δ_i x_i.

With w_local = w + σ'Δw, the step along one coordinate is the one of Prox-SDCA with 1/(λn) replaced by σ'/(λn), in q_i and
in the update of w_local alike. So the package's kernels do it.

In rounds of whole passes, rows are visited in random orders that are the same in every round. A round is then a fixed,
continuous map of α and w, and that is what its acceleration needs (`anderson`): with new orders each round, or with visits
that follow the residuals, the noise of a solution that is not exact drowns the differences between rounds. Measured on
rcv1_subsets with 8 partitions at λ = 1/n, rounds to 1e-6: 67 plain, 19 accelerated with two passes in fixed orders, 50 and
more with adaptive visits. Windows (`windows`) are not accelerated, and new orders are better there.
"""

from __future__ import annotations

import numpy as np

from .._checks import Array
from ..problem import Problem
from ..solvers.prox_sdca import ProxSdca
from .spec import Spec
from .windows import Window


class LocalSolver(ProxSdca):
    """Visits to the rows of a partition, numbered `k`; `orders` names the random orders."""

    def __init__(self, problem: Problem, spec: Spec, k: int, sigma: float, *orders: int) -> None:
        super().__init__(problem, np.random.default_rng([spec.seed, k, *orders]))
        self.scale, self.extra = sigma * spec.scale, spec.extra

    def improve(self, alpha: Array, w: Array, offset: float, passes: int) -> None:
        """Change α in place by so many passes; w and the offset are those of the start and stay as they are."""
        self._begin(alpha, w, offset)
        for _ in range(passes):
            self.begin_epoch()
            self.visit(self.problem.n)

    def visit_window(self, alpha: Array, w: Array, offset: float, window: Window) -> tuple[Array, float, float]:
        """Change α in place by the visits of one window; return Δw, what it adds to the offset, and the activity."""
        self._begin(alpha, w, offset)
        self.begin_epoch()
        first, last = (
            self.problem.n * j // window.of for j in (window.number % window.of, window.number % window.of + 1)
        )
        self.position = first
        self.visit(last - first)
        self.w -= w
        self.w /= window.sigma
        return self.w, (self.offset[0] - offset) / window.sigma, self.gain

    def _begin(self, alpha: Array, w: Array, offset: float) -> None:
        self.alpha, self.w, self.farthest = alpha, w.copy(), 0.0  # no account is kept of how far w drifts from w(α)
        self.offset = np.array([offset])
