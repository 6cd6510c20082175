"""scikit-learn: LogisticRegression, LinearSVC (LIBLINEAR inside) and Ridge.

LogisticRegression and LinearSVC minimise ½‖w‖² + C Σ φ, LinearSVC without the ½ of the squared hinge; Ridge minimises
Σ (z − y)² + alpha ‖w‖². LinearSVC penalises the intercept and takes no part where there is one.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from .base import MAX_ITER, Answer, Peer, Task, answer

warnings.filterwarnings("ignore", module="sklearn")  # fits that end early are meant to

_COMMON = {"max_iter": MAX_ITER, "random_state": 0}
_LARGEST_HESSIAN = 5_000  # columns: 200 MB
_LARGEST_GRAM = 10_000  # columns: 800 MB, factorised once


def logistic(task: Task, tol: float, solver: str) -> Answer:
    model = LogisticRegression(
        C=1 / task.lam_n, fit_intercept=task.fit_intercept, solver=solver, tol=tol, **_COMMON
    ).fit(task.X, task.y)
    return answer(model.coef_, model.intercept_, bool(np.max(model.n_iter_) < MAX_ITER))


def svc(task: Task, tol: float, dual: bool) -> Answer:
    model = LinearSVC(C=0.5 / task.lam_n, fit_intercept=False, dual=dual, tol=tol, **_COMMON).fit(task.X, task.y)
    return answer(model.coef_, 0.0, bool(model.n_iter_ < MAX_ITER))


def ridge(task: Task, tol: float, solver: str) -> Answer:
    model = Ridge(alpha=task.lam_n, fit_intercept=task.fit_intercept, solver=solver, tol=tol, **_COMMON)
    model.fit(task.X, task.y)
    return answer(
        model.coef_, model.intercept_, None if model.n_iter_ is None else bool(np.max(model.n_iter_) < MAX_ITER)
    )


_PACKAGE = "scikit-learn"
_DIRECT = (1e-12,)  # solves a linear system: there is no tolerance to choose

PEERS = [
    Peer(
        "sklearn newton-cholesky",
        ("logistic",),
        partial(logistic, solver="newton-cholesky"),
        _PACKAGE,
        intercept=True,
        max_features=_LARGEST_HESSIAN,
    ),
    *(
        Peer(f"sklearn {solver}", ("logistic",), partial(logistic, solver=solver), _PACKAGE, intercept=True)
        for solver in ("lbfgs", "newton-cg", "saga", "sag")
    ),
    Peer("sklearn LinearSVC dual", ("squared_hinge",), partial(svc, dual=True), _PACKAGE),
    Peer("sklearn LinearSVC primal", ("squared_hinge",), partial(svc, dual=False), _PACKAGE),
    Peer(
        "sklearn Ridge cholesky",
        ("squared",),
        partial(ridge, solver="cholesky"),
        _PACKAGE,
        tolerances=_DIRECT,
        intercept=True,
        max_features=_LARGEST_GRAM,
        dense_intercept_only=True,
    ),
    Peer(
        "sklearn Ridge svd",
        ("squared",),
        partial(ridge, solver="svd"),
        _PACKAGE,
        tolerances=_DIRECT,
        intercept=True,
        max_features=_LARGEST_HESSIAN,
        dense_only=True,
    ),
    *(
        Peer(f"sklearn Ridge {solver}", ("squared",), partial(ridge, solver=solver), _PACKAGE, intercept=True)
        for solver in ("auto", "sparse_cg", "lsqr", "sag")
    ),
    Peer(
        "sklearn Ridge saga",
        ("squared",),
        partial(ridge, solver="saga"),
        _PACKAGE,
        intercept=True,
        dense_intercept_only=True,
    ),
]
