"""Solvers: one short file each, one contract (`base`), one loop that runs them all (`driver`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._checks import Array, finite_vector, one_of, real_number, whole_number
from .._threads import one_blas_thread
from ..problem import Problem
from ..result import Result
from ..team import Team
from .adfsdca import AdfSdca
from .adfsdca_plus import AdfSdcaPlus
from .auto import Auto
from .base import RandomSource, Solver
from .dfsdca import DfSdca
from .driver import Run, State
from .importance import Importance
from .prox_sdca import ProxSdca

__all__ = ["SOLVERS", "Solver", "State", "solve"]

SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (Auto, DfSdca, Importance, AdfSdca, AdfSdcaPlus, ProxSdca)
}


def solve(
    problem: Problem,
    solver: str = "auto",
    tol: float = 1e-6,
    max_epochs: int = 1000,
    max_time: float | None = None,
    random_state: int | np.random.Generator | None = None,
    warm_start: Any = None,
    callback: Callable[[State], Any] | None = None,
    n_threads: int = 1,
    evaluate_every: int | None = None,
    **solver_options: Any,
) -> Result:
    """Solve a problem to a certified gap.

    Parameters
    ----------
    problem : Problem
        What to solve.
    solver : str, default="auto"
        "auto", "dfsdca", "importance", "adfsdca", "adfsdca+" or "prox-sdca".
    tol : float, default=1e-6
        Stop when the certified gap is at most ``tol · P(0)``, P(0) being the objective at w = 0. 0 asks for all that
        floating point can give; the status is then `stalled`.
    max_epochs : int, default=1000
        Stop after that many epochs of n coordinate updates.
    max_time : float, optional
        Stop after that many seconds.
    random_state : int, Generator or None
        Seed. The same seed gives the same bits.
    warm_start : Result, array or mapping, optional
        Where to begin: a previous result, a vector α of length n, a vector w of length d, or a mapping with the keys
        "alpha", or "w" and "intercept".
    callback : callable, optional
        Called with a `State` after each evaluation; a true answer stops the run.
    n_threads : int, default=1
        Threads to use, at most. "auto" takes all its steps on several threads where the data are large enough to gain by it;
        the other solvers are sequential by nature and use them for certificates alone. The same number of threads gives the
        same bits.
    evaluate_every : int, optional
        Epochs between two certificates. By default they are evaluated where the last gaps say that `tol` may be met.
    **solver_options
        Options of the solver: ``shrink`` and ``step`` of "adfsdca+", ``order`` of "prox-sdca".

    Returns
    -------
    Result
        The best point found, also after Ctrl-C, with its certificate.

    Examples
    --------
    >>> import dualfree as df
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = df.solve(df.Problem(scale(X), y, loss="logistic", lam=1e-2), tol=1e-8, random_state=0)
    >>> result.status.name, bool(result.certificate.relative_gap <= 1e-8)
    ('CONVERGED', True)
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a dualfree.Problem, got {type(problem).__name__}.")
    kind = SOLVERS[one_of("solver", solver, SOLVERS)]
    tol = real_number("tol", tol, low=0.0)
    max_epochs = whole_number("max_epochs", max_epochs, low=0)
    if max_time is not None:
        max_time = real_number("max_time", max_time, low=0.0, finite=False)
    if evaluate_every is not None:
        evaluate_every = whole_number("evaluate_every", evaluate_every, low=1)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}.")
    n_threads = whole_number("n_threads", n_threads, low=1)
    if tol > 0 and problem.at_zero < 0:
        raise ValueError(
            f"tol is relative to P(0), which is {problem.at_zero:.3g} for {problem.loss!r}: "
            "add a constant to its value so that it is not negative, or pass tol=0."
        )
    kind.check(problem, solver_options)
    alpha, intercept, w = _starting_point(problem, warm_start)
    seed = _checked_seed(random_state)
    rng: Any = RandomSource(seed) if kind is Auto else np.random.default_rng(seed)
    instance = kind(problem, rng, **solver_options)
    run = Run(
        problem,
        instance,
        tol=tol,
        max_epochs=max_epochs,
        max_time=max_time,
        callback=callback,
        evaluate_every=evaluate_every,
    )
    with one_blas_thread(), Team(problem, instance.threads(n_threads)) as instance.team:
        return run.go(alpha, intercept, w)


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator given, or one with that seed."""
    return np.random.default_rng(_checked_seed(random_state))


def _checked_seed(random_state: Any) -> int | np.random.Generator | None:
    if random_state is None or isinstance(random_state, np.random.Generator):
        return random_state
    return whole_number("random_state", random_state, low=0)


def _starting_point(problem: Problem, warm_start: Any) -> tuple[Array | None, float, Array | None]:
    """Return (α, b) to begin with, and the w that goes with them where it is not w(α).

    α is always a fresh array, 0 where the weight is zero; None where it is zero everywhere.
    """
    if warm_start is None:
        return None, 0.0, None
    alpha, w, intercept = _parts_of(problem, warm_start)
    if w is not None:
        w = finite_vector("warm_start", w)
        if w.size != problem.d:
            raise ValueError(f"warm_start must hold w with one entry per column of X ({problem.d}), got {w.size}.")
    if alpha is not None:
        alpha = finite_vector("warm_start", alpha, problem.n).copy()
    else:
        alpha = -problem.residuals(w, np.zeros(problem.n), intercept)
    alpha[problem.sample_weight == 0] = 0.0
    return alpha, intercept if problem.fit_intercept else 0.0, w


def _parts_of(problem: Problem, warm_start: Any) -> tuple[Any, Any, float]:
    if isinstance(warm_start, Result):
        same_rows, same_columns = warm_start.alpha.size == problem.n, warm_start.w.size == problem.d
        alpha, w = warm_start.alpha if same_rows else None, warm_start.w if same_columns or not same_rows else None
        return alpha, w, warm_start.intercept
    if isinstance(warm_start, Mapping):
        unknown = set(warm_start) - {"alpha", "w", "intercept"}
        if unknown or not ("alpha" in warm_start or "w" in warm_start):
            raise ValueError(
                "warm_start must be a mapping with 'alpha' or 'w' and, if wanted, 'intercept'; "
                f"got the keys {sorted(map(str, warm_start))}."
            )
        intercept = real_number("warm_start['intercept']", warm_start.get("intercept", 0.0))
        return warm_start.get("alpha"), warm_start.get("w"), intercept
    size = np.size(warm_start)
    if size == problem.n == problem.d:
        raise ValueError(
            f"warm_start has {size} entries, which fits both α and w; say which with {{'alpha': …}} or {{'w': …}}."
        )
    if size == problem.n:
        return warm_start, None, 0.0
    if size == problem.d:
        return None, warm_start, 0.0
    raise ValueError(
        f"warm_start must be a result, α with {problem.n} entries or w with {problem.d} entries; got {size} entries."
    )
