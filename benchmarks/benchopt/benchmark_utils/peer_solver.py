"""What all solver files share: a peer of the comparison, asked for one tolerance after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.repository import peers
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

_WARM_UP_TOL = 1e-2
_LOOSEST, _TIGHTEST = 1.0, 1e-14
_STEP = 10**0.5  # between two tolerances, as in the comparison
_PATIENCE = 8  # loose tolerances often give one and the same point; that is not the end


class PeerSolver(BaseSolver):
    """A solver file names its package and the peers' names; `skip` leaves out what a peer does not solve."""

    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(patience=_PATIENCE, strategy="tolerance")

    @staticmethod
    def get_next(tol: float) -> float:
        return min(_LOOSEST, max(tol / _STEP, _TIGHTEST))

    @property
    def peer_name(self) -> str:
        """The name in `benchmarks/peers`."""
        return f"{self.name} {self.solver}"

    def skip(self, X: Any, y: np.ndarray, loss: str, lam: float, fit_intercept: bool) -> tuple[bool, str | None]:
        task = peers.Task(X, y, loss, lam, fit_intercept)
        try:
            takes = peers.peer_named(self.peer_name, loss).takes(task)
        except LookupError as error:
            return True, str(error)
        return (False, None) if takes else (True, f"{self.peer_name} does not solve this problem")

    def set_objective(self, X: Any, y: np.ndarray, loss: str, lam: float, fit_intercept: bool) -> None:
        self.task = peers.Task(X, y, loss, lam, fit_intercept)
        self.fit = peers.peer_named(self.peer_name, loss).fit

    def warm_up(self) -> None:
        self.run_once(_WARM_UP_TOL)

    def run(self, tol: float) -> None:
        self.answer = self.fit(self.task, tol)

    def get_result(self) -> dict[str, Any]:
        return {"w": self.answer.w, "intercept": self.answer.intercept}
