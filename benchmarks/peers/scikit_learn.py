"""scikit-learn: LogisticRegression, LinearSVC (LIBLINEAR inside) and Ridge."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from .base import Peer

warnings.filterwarnings("ignore", module="sklearn")


def logistic(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int, solver: str) -> np.ndarray:
    model = LogisticRegression(
        C=1 / (lam * X.shape[0]), fit_intercept=False, solver=solver, tol=tol, max_iter=20_000, random_state=0
    )
    return model.fit(X, y).coef_[0]


def svc(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int, dual: bool) -> np.ndarray:
    # no ½ in LIBLINEAR's squared hinge
    model = LinearSVC(
        C=0.5 / (lam * X.shape[0]), fit_intercept=False, dual=dual, tol=tol, max_iter=20_000, random_state=0
    )
    return model.fit(X, y).coef_[0]


def ridge(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int, solver: str) -> np.ndarray:
    model = Ridge(alpha=lam * X.shape[0], fit_intercept=False, solver=solver, tol=tol, max_iter=20_000, random_state=0)
    return model.fit(X, y).coef_


PEERS = [
    *(
        Peer(f"sklearn {solver}", ("logistic",), partial(logistic, solver=solver))
        for solver in ("lbfgs", "newton-cg", "sag", "saga")
    ),
    Peer("sklearn newton-cholesky", ("logistic",), partial(logistic, solver="newton-cholesky"), max_features=4000),
    Peer("sklearn LinearSVC dual", ("squared_hinge",), partial(svc, dual=True)),
    Peer("sklearn LinearSVC primal", ("squared_hinge",), partial(svc, dual=False)),
    *(Peer(f"sklearn Ridge {s}", ("squared",), partial(ridge, solver=s)) for s in ("sparse_cg", "lsqr", "sag", "saga")),
    Peer("sklearn Ridge auto", ("squared",), partial(ridge, solver="auto"), tolerances=(1e-12,)),
]
