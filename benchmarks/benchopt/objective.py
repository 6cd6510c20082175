"""The problem of this benchmark for benchopt: L2-regularised empirical risk."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseObjective

import dualfree as df


class Objective(BaseObjective):
    """(1/n) Σ φ(x_i·w + b; y_i) + (λ/2) ‖w‖², with an intercept that is never penalised, or none."""

    name = "L2-regularised linear model"
    min_benchopt_version = "1.8"
    requirements = ["pip::dualfree"]
    sampling_strategy = "tolerance"
    parameters = {
        "loss": ["logistic", "squared_hinge", "squared"],
        "lam_n": [1.0],
        "fit_intercept": [False],
    }

    def skip(self, X: Any, y: np.ndarray | None, task: str) -> tuple[bool, str | None]:
        if X is None:
            return True, 'name a data file, as in -d "file[path=data/a9a.npz]"'
        if (task == "regression") != (self.loss == "squared"):
            return True, f"the {self.loss} loss is not for a {task} problem"
        return False, None

    def set_data(self, X: Any, y: np.ndarray, task: str) -> None:
        self.X, self.y = X, y
        self.lam = self.lam_n / X.shape[0]
        self.problem = df.Problem(X, y, loss=self.loss, lam=self.lam, fit_intercept=self.fit_intercept)

    def get_objective(self) -> dict[str, Any]:
        return {"X": self.X, "y": self.y, "loss": self.loss, "lam": self.lam, "fit_intercept": self.fit_intercept}

    def evaluate_result(self, w: np.ndarray, intercept: float) -> dict[str, float]:
        certificate = df.certify(self.problem, w, intercept)
        return {"value": certificate.primal, "certified_gap": certificate.relative_gap}

    def get_one_result(self) -> dict[str, Any]:
        return {"w": np.zeros(self.X.shape[1]), "intercept": 0.0}
