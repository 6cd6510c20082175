"""Cyanure. Its objective is ours, and its intercept is not penalised."""

from __future__ import annotations

import numpy as np
from cyanure.estimators import Classifier, Regression

from .base import MAX_ITER, Answer, Peer, Task, answer


def fit(task: Task, tol: float) -> Answer:
    common = {
        "penalty": "l2",
        "lambda_1": task.lam,
        "fit_intercept": task.fit_intercept,
        "tol": tol,
        "max_iter": MAX_ITER,
        "verbose": False,
        "n_threads": task.threads,
    }
    if task.loss == "squared":
        model = Regression(**common)
    else:
        model = Classifier(loss={"squared_hinge": "sqhinge"}.get(task.loss, task.loss), **common)
    model.fit(task.X, task.y)
    intercept = model.intercept_ if task.fit_intercept else 0.0
    return answer(model.coef_, intercept, bool(np.max(model.n_iter_) < MAX_ITER))


PEERS = [Peer("cyanure", ("logistic", "squared_hinge", "squared"), fit, "cyanure", intercept=True)]
