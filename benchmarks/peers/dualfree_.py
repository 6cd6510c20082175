"""dualfree itself, with its default solver; the certificate is computed inside the time."""

from __future__ import annotations

import dualfree as df

from .base import MAX_ITER, Answer, Peer, Task


def fit(task: Task, tol: float) -> Answer:
    problem = df.Problem(task.X, task.y, loss=task.loss, lam=task.lam, fit_intercept=task.fit_intercept)
    result = df.solve(problem, tol=tol, max_epochs=MAX_ITER, random_state=0, n_threads=task.threads)
    return Answer(result.w, result.intercept, result.status is df.Status.CONVERGED)


PEERS = [Peer("dualfree", ("logistic", "squared_hinge", "squared"), fit, "dualfree", intercept=True)]
