"""What a peer is: something that minimises (1/n) Σ φ(x_i·w + b; y_i) + (λ/2) ‖w‖² and can be asked for more accuracy.

Every peer solves exactly this problem; its own scaling is translated in its file. One file for each package; to add a
package, add a file with `PEERS` and its name to `FILES` in `__init__`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

# From loose to tight, √10 apart. The choice of a tolerance visits every second one first.
TOLERANCES = tuple(10.0 ** (1 - k / 2) for k in range(31))
# So many that a tolerance ends a fit, or the patience of the program.
MAX_ITER = 100_000


@dataclass(frozen=True)
class Task:
    """One problem: X (C-order array or CSR matrix), y (±1 for classification), and what a peer must respect."""

    X: Any
    y: np.ndarray
    loss: str
    lam: float
    fit_intercept: bool = False
    threads: int = 1

    @property
    def lam_n(self) -> float:
        """λn, what most packages call the strength of the penalty."""
        return self.lam * self.X.shape[0]


@dataclass(frozen=True)
class Answer:
    """Where a fit ended. `converged` is what the package says about it; None where it says nothing."""

    w: np.ndarray
    intercept: float = 0.0
    converged: bool | None = None


@dataclass(frozen=True)
class Peer:
    """A solver of some package.

    `fit(task, tol)` does all that a user waits for, conversions included. `tolerances` go from loose to tight; one entry
    where there is nothing to set. `intercept` says that the solver has an intercept and does not penalise it.
    """

    name: str
    losses: tuple[str, ...]
    fit: Callable[[Task, float], Answer]
    package: str
    tolerances: tuple[float, ...] = TOLERANCES
    intercept: bool = False
    max_features: int | None = None
    dense_only: bool = False
    dense_intercept_only: bool = False

    def takes(self, task: Task) -> bool:
        """Whether the solver can be asked for this problem at all."""
        return (
            task.loss in self.losses
            and (self.intercept or not task.fit_intercept)
            and (self.max_features is None or task.X.shape[1] <= self.max_features)
            and not (scipy.sparse.issparse(task.X) and self._only_dense(task))
        )

    def _only_dense(self, task: Task) -> bool:
        return self.dense_only or (self.dense_intercept_only and task.fit_intercept)


def answer(coef: Any, intercept: Any, converged: bool | None = None) -> Answer:
    """Return an `Answer` from the arrays of whatever shape and precision that a package keeps."""
    return Answer(np.asarray(coef, dtype=np.float64).ravel(), float(np.ravel(intercept)[0]), converged)
