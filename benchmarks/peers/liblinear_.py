"""LIBLINEAR through its own package, liblinear-official."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from liblinear.liblinearutil import parameter, problem, train

from .base import Peer


def fit(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int, solver: int) -> np.ndarray:
    cost = 1 / (lam * X.shape[0])
    if loss != "logistic":
        cost *= 0.5  # no ½ in LIBLINEAR's squared losses
    options = f"-s {solver} -c {cost!r} -e {tol!r} -q"
    if loss == "squared":
        options += " -p 0"  # squared ε-insensitive with ε = 0
    model = train(problem(y, scipy.sparse.csr_matrix(X)), parameter(options))
    w = np.array(model.w[: X.shape[1]])
    return w if loss == "squared" or model.label[0] > 0 else -w


PEERS = [
    Peer("liblinear newton", ("logistic",), partial(fit, solver=0)),
    Peer("liblinear dual", ("logistic",), partial(fit, solver=7)),
    Peer("liblinear newton", ("squared_hinge",), partial(fit, solver=2)),
    Peer("liblinear dual", ("squared_hinge",), partial(fit, solver=1)),
    Peer("liblinear newton", ("squared",), partial(fit, solver=11)),
    Peer("liblinear dual", ("squared",), partial(fit, solver=12)),
]
