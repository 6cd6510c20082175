"""Cyanure."""

from __future__ import annotations

from typing import Any

import numpy as np
from cyanure.estimators import Classifier, Regression

from .base import Peer


def fit(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int) -> np.ndarray:
    common = {
        "penalty": "l2",
        "lambda_1": lam,
        "fit_intercept": False,
        "tol": tol,
        "max_iter": 20_000,
        "verbose": False,
        "n_threads": threads,
    }
    model = (
        Regression(**common)
        if loss == "squared"
        else Classifier(loss={"squared_hinge": "sqhinge"}.get(loss, loss), **common)
    )
    model.fit(X, y)
    return np.asarray(model.coef_ if hasattr(model, "coef_") else model.get_weights(), dtype=np.float64).ravel()


PEERS = [Peer("cyanure", ("logistic", "squared_hinge", "squared"), fit, threads=True)]
