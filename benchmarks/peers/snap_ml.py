"""Snap ML. Its objective is Σ φ + (regularizer/2) ‖w‖², without the ½ of the squared hinge.

It has a dual and a primal solver. Its intercept is one more column of X, penalised: it takes no part where there is one.
It computes in float32 whatever it is given.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from snapml import LinearRegression, LogisticRegression, SupportVectorMachine

from .base import MAX_ITER, Answer, Peer, Task, answer


def fit(task: Task, tol: float, **options: Any) -> Answer:
    kind = {"logistic": LogisticRegression, "squared_hinge": SupportVectorMachine, "squared": LinearRegression}[
        task.loss
    ]
    strength = 2 * task.lam_n if task.loss == "squared_hinge" else task.lam_n
    model = kind(
        regularizer=strength,
        tol=tol,
        max_iter=MAX_ITER,
        n_jobs=task.threads,
        fit_intercept=False,
        random_state=0,
        **options,
    )
    return answer(model.fit(task.X, task.y).coef_, 0.0)


PEERS = [
    Peer("snapml dual", ("logistic", "squared"), partial(fit, dual=True), "snapml"),
    Peer("snapml dual", ("squared_hinge",), partial(fit, loss="squared_hinge"), "snapml"),
    Peer("snapml primal", ("logistic", "squared"), partial(fit, dual=False), "snapml"),
]
