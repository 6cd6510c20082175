"""Snap ML. Its objective is Σ φ + (regularizer/2) ‖w‖²."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from snapml import LinearRegression, LogisticRegression

from .base import Peer


def logistic(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int) -> np.ndarray:
    X = X.astype(np.float32)  # what it converts to; the conversion is part of the time
    model = LogisticRegression(
        regularizer=lam * X.shape[0], tol=tol, max_iter=20_000, n_jobs=threads, fit_intercept=False, random_state=0
    )
    return np.asarray(model.fit(X, y).coef_, dtype=np.float64).ravel()


def squared(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int) -> np.ndarray:
    X = scipy.sparse.csr_matrix(X, dtype=np.float32) if scipy.sparse.issparse(X) else X.astype(np.float32)
    model = LinearRegression(
        regularizer=lam * X.shape[0], tol=tol, max_iter=20_000, n_jobs=threads, fit_intercept=False, random_state=0
    )
    return np.asarray(model.fit(X, y).coef_, dtype=np.float64).ravel()


PEERS = [
    Peer("snapml", ("logistic",), logistic, threads=True),
    Peer("snapml", ("squared",), squared, threads=True),
]
