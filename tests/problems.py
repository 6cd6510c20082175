"""Small problems in every form that the engine meets: dense and CSR, float32 and float64, weights, shapes, intercepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

import dualfree as df
from dualfree.losses import LOSSES as _KINDS

SMOOTH = ["squared", "logistic", "squared_hinge", "smoothed_hinge", "huber", "squared_epsilon_insensitive"]
CORNERED = ["hinge", "epsilon_insensitive"]
LOSSES = SMOOTH + CORNERED
SOLVERS = ["dfsdca", "importance", "adfsdca", "adfsdca+", "prox-sdca"]
EXACT_SOLVERS = ["adfsdca+", "prox-sdca"]
FORMS = ["dense64", "csr64", "dense32", "csr32-int64"]
WEIGHTS = ["none", "random", "zeros", "whole", "wide"]


def solvers_of(loss: str) -> list[str]:
    """The solvers that take this loss."""
    return EXACT_SOLVERS if loss in CORNERED else SOLVERS


def formed(X: np.ndarray, form: str) -> Any:
    """The matrix in one of the forms."""
    if form.startswith("dense"):
        return np.ascontiguousarray(X, dtype=np.float32 if form == "dense32" else np.float64)
    matrix = scipy.sparse.csr_matrix(X.astype(np.float32 if "32-" in form else np.float64))
    if form.endswith("int64"):  # scipy would choose 32 bits
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def weights_of_kind(kind: str, n: int, rng: np.random.Generator) -> np.ndarray | None:
    """Sample weights; at least one is positive."""
    if kind == "none":
        return None
    weights = {
        "random": lambda: rng.random(n) + 0.05,
        "zeros": lambda: rng.random(n) * (rng.random(n) < 0.6),
        "whole": lambda: rng.integers(0, 4, size=n).astype(float),
        "wide": lambda: 10.0 ** rng.uniform(-3, 3, size=n),
    }[kind]()
    weights[:2] = 1.0  # one row of each class, see below
    return weights


def make_problem(
    loss: str | df.Loss = "logistic",
    *,
    n: int = 30,
    d: int = 4,
    lam: float = 0.02,
    fit_intercept: bool = False,
    weights: str = "none",
    form: str = "dense64",
    seed: int = 0,
    scale: float = 1.0,
    y_scale: float = 1.0,
    empty_row: bool = False,
    equal_rows: bool = False,
    lone_positive: bool = False,
) -> df.Problem:
    """A random problem; about a third of the entries of X are zero, the first two rows are of different classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    if equal_rows and n > 3:
        X[3] = X[2]
    if empty_row:
        X[n // 2] = 0.0
    signal = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 0.3
    task = loss.task if isinstance(loss, df.Loss) else _KINDS[loss].task
    if task == "classification":
        y = np.where(signal > 0.3, 1.0, -1.0)
        if lone_positive:
            y[:] = -1.0
        y[:2] = 1.0, -1.0
    else:
        y = signal * y_scale
    return df.Problem(
        formed(X * scale, form),
        y,
        loss,
        lam,
        sample_weight=weights_of_kind(weights, n, rng),
        fit_intercept=fit_intercept,
    )


def dense(problem: df.Problem) -> np.ndarray:
    """X of a problem as a float64 array."""
    X = problem.X.toarray() if scipy.sparse.issparse(problem.X) else problem.X
    return np.asarray(X, dtype=np.float64)
