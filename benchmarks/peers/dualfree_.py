"""dualfree itself, with its default solver; the certificate is computed inside the time."""

from __future__ import annotations

from typing import Any

import numpy as np

import dualfree as df

from .base import Peer


def fit(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int) -> np.ndarray:
    return df.solve(df.Problem(X, y, loss=loss, lam=lam), tol=tol, max_epochs=20_000, random_state=0).w


PEERS = [Peer("dualfree", ("logistic", "squared_hinge", "squared"), fit)]
