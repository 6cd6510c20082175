"""LIBLINEAR through its own package, liblinear-official.

Its objective is ½‖w‖² + C Σ φ, without the ½ of the squared losses. The primal solvers can leave the intercept out of
the penalty (-B 1 -R); the dual ones cannot, so they take no part where there is an intercept.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse
from liblinear.liblinearutil import parameter, problem, train

from .base import Answer, Peer, Task, answer


def fit(task: Task, tol: float, solver: int) -> Answer:
    cost = 1 / task.lam_n if task.loss == "logistic" else 0.5 / task.lam_n
    options = f"-s {solver} -c {cost!r} -e {tol!r} -q"
    if task.loss == "squared":
        options += " -p 0"  # squared ε-insensitive with ε = 0
    if task.fit_intercept:
        options += " -B 1 -R"
    # From a dense array the package builds its rows in a Python loop; through CSR it is far faster.
    model = train(problem(task.y, scipy.sparse.csr_matrix(task.X)), parameter(options))
    d = task.X.shape[1]
    w = np.array(model.w[: d + task.fit_intercept])
    if task.loss != "squared" and model.label[0] < 0:
        w = -w  # scores are for the class of the first row
    return answer(w[:d], w[d] if task.fit_intercept else 0.0)


_PACKAGE = "liblinear-official"
PEERS = [
    *(
        Peer("liblinear newton", (loss,), partial(fit, solver=solver), _PACKAGE, intercept=True)
        for loss, solver in (("logistic", 0), ("squared_hinge", 2), ("squared", 11))
    ),
    *(
        Peer("liblinear dual", (loss,), partial(fit, solver=solver), _PACKAGE)
        for loss, solver in (("logistic", 7), ("squared_hinge", 1), ("squared", 12))
    ),
]
