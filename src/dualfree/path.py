"""λ-paths: the same problem for many λ, each warm-started from the dual point of the one before.

α does not depend on λ's scale the way w does: a dual-feasible α is feasible for every λ. But w(α) grows with 1/λ, so the
old α taken as it is starts too far out. D(tα) along the ray 0 ≤ t ≤ 1 costs O(n) a trial, because w(tα) = t w(α);
the best t on it is where the next solve begins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from ._checks import Array, finite_vector
from .problem import Problem, conjugate_sum
from .result import Result
from .solvers import solve
from .status import Status


@dataclass(frozen=True, slots=True)
class Path:
    """Results for many λ, in the order in which the λ were given.

    Attributes
    ----------
    lams : array of shape (k,)
        The λ that were solved; fewer than asked for where the run was interrupted.
    results : list of Result
        One result, with its certificate, for each.
    complete : bool
        Whether every λ was solved.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> path = df.path(df.Problem(X, X[:, 0] > 0), [1.0, 0.1, 0.01], random_state=0)
    >>> path.coefs.shape, path.complete
    ((3, 4), True)
    """

    lams: Array
    results: list[Result]
    complete: bool

    @property
    def coefs(self) -> Array:
        """The weights, one row for each λ."""
        return np.array([result.w for result in self.results])

    @property
    def intercepts(self) -> Array:
        """The intercepts."""
        return np.array([result.intercept for result in self.results])

    @property
    def relative_gaps(self) -> Array:
        """The certified relative gaps."""
        return np.array([result.certificate.relative_gap for result in self.results])

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, index: int) -> Result:
        return self.results[index]


def path(problem: Problem, lams: Any, *, max_time: float | None = None, warm_start: Any = None, **options: Any) -> Path:
    """Solve a problem for several λ, from the largest to the smallest, each from where the last one ended.

    Parameters
    ----------
    problem : Problem
        Its own λ is not used.
    lams : array of shape (k,)
        The values of λ, in any order.
    max_time : float, optional
        Seconds for the whole path.
    warm_start : optional
        Where the first solve begins; see `solve`.
    **options
        Everything else that `solve` takes.

    Returns
    -------
    Path
        A result and a certificate per λ. After Ctrl-C, or when the time is up: those until then.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> problem = df.Problem(X, X @ [1.0, 0.0, 2.0, 0.0], loss="squared")
    >>> [result.status.name for result in df.path(problem, [1.0, 0.1], random_state=0)]
    ['CONVERGED', 'CONVERGED']
    """
    values = finite_vector("lams", np.atleast_1d(np.asarray(lams)))
    if values.size == 0:
        raise ValueError("lams must hold at least one λ, it is empty.")
    if values.min() <= 0:
        raise ValueError(f"lams must be positive, got {values.min():g}.")
    began = time.perf_counter()
    solved: dict[int, Result] = {}
    previous: Problem | None = None
    for index in np.argsort(-values, kind="stable").tolist():
        here = problem.with_lam(float(values[index]))
        left = None if max_time is None else max(0.0, max_time - (time.perf_counter() - began))
        result = solve(here, max_time=left, warm_start=warm_start, **options)
        solved[index] = result
        if result.status is Status.INTERRUPTED or (result.status is Status.MAX_TIME and len(solved) < values.size):
            break
        previous, warm_start = here, {"alpha": result.alpha, "intercept": result.intercept}
        if len(solved) < values.size:
            following = float(np.sort(values)[::-1][len(solved)])
            warm_start["alpha"] = result.alpha * best_scaling(previous, result.alpha, following)
    kept = sorted(solved)
    return Path(values[kept], [solved[index] for index in kept], len(kept) == values.size)


def best_scaling(problem: Problem, alpha: Array, lam: float) -> float:
    """Return the t in [0, 1] that maximises D(tα) for the new λ."""
    keeps_w = min(1.0, lam / problem.lam)
    if not (problem.loss.convex and problem.loss.has("conjugate")):
        return keeps_w
    w = problem.weights_of(alpha)
    quadratic = 0.5 * float(w @ w) * problem.lam**2 / lam  # (λ/2) ‖w(α)‖², with the new λ in both places
    loss, y, s = problem.loss.compiled, problem.y, problem.sample_weight

    def minus_dual(t: float) -> float:
        return float(conjugate_sum(loss, y, s, t * alpha)) / problem.n + t * t * quadratic

    found = scipy.optimize.minimize_scalar(minus_dual, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-3})
    return float(min((float(found.x), 1.0), key=minus_dual))
