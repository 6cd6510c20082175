"""From problems to results: threads, time, warm starts; from results to the coefficients that are kept."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._checks import Array
from ..certificate import Certificate, certify
from ..multinomial import MultinomialProblem, certify_multinomial, solve_multinomial
from ..path import best_scaling
from ..problem import Problem
from ..result import Result
from ..solvers import State, solve
from ..status import Status
from ._callbacks import FRAMES_OF_FIT, Progress

AnyProblem = Problem | MultinomialProblem


class Deadline:
    """The time that is left of `max_time` seconds for a whole fit."""

    def __init__(self, max_time: float | None) -> None:
        self._end = None if max_time is None else time.perf_counter() + max_time

    @property
    def left(self) -> float | None:
        """Seconds left, at least 0; None where there is no limit."""
        return None if self._end is None else max(0.0, self._end - time.perf_counter())


DEFAULT_TOL = 1e-6
SMALL = 4096


@dataclass(frozen=True)
class Settings:
    """How an estimator wants its problems solved. `tol` None stands for the default, see `tol_for`."""

    solver: str
    tol: float | None
    max_iter: int
    deadline: Deadline
    n_jobs: int | None

    def with_solver(self, solver: str) -> Settings:
        """Return the same settings with another solver."""
        return replace(self, solver=solver)

    def tol_for(self, problem: AnyProblem) -> float:
        """Return tol, by default 1e-6; for a small problem 0, because all digits take no time there."""
        if self.tol is not None:
            return self.tol
        return 0.0 if problem.nnz <= SMALL else DEFAULT_TOL

    @property
    def accepted(self) -> float:
        """The relative gap that needs no warning."""
        return DEFAULT_TOL if self.tol is None else self.tol

    def solve(self, problem: AnyProblem, seed: int, start: Any = None, watch: Any = None, threads: int = 1) -> Result:
        """Solve one problem."""
        common: dict[str, Any] = {
            "tol": self.tol_for(problem),
            "max_epochs": self.max_iter,
            "max_time": self.deadline.left,
            "warm_start": start,
            "callback": watch,
        }
        if isinstance(problem, MultinomialProblem):
            return solve_multinomial(problem, n_threads=threads, **common)
        return solve(problem, solver=self.solver, random_state=seed, n_threads=threads, **common)


def seeds(random_state: Any, count: int) -> list[int]:
    """Draw a seed for each of `count` solves."""
    drawn: list[int] = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=count).tolist()
    return drawn


def solve_all(
    problems: list[AnyProblem],
    starts: list[Any],
    settings: Settings,
    random_state: Any,
    progress: Progress,
    fitted: Callable[[State], dict[str, Any]] | None,
) -> list[Result]:
    """Solve the problems of one fit, at most `n_jobs` at a time; a single problem gets all the threads."""
    drawn = seeds(random_state, len(problems))
    single = len(problems) == 1
    threads = effective_n_jobs(settings.n_jobs) if single else 1

    def one(index: int) -> Result:
        watch = progress.watch(index, fitted if single else None)
        result = settings.solve(problems[index], drawn[index], starts[index], watch, threads)
        if watch is not None:
            watch.end()
        if result.status is Status.INTERRUPTED and not progress.stopped and not single:
            raise KeyboardInterrupt  # the other problems have no result to keep
        return result

    if single:
        return [one(0)]
    # The kernels release the GIL, so threads are enough and X is not sent around.
    results: list[Result] = Parallel(n_jobs=settings.n_jobs, prefer="threads")(
        delayed(one)(index) for index in range(len(problems))
    )
    return results


def last_point(estimator: Any, problem: AnyProblem, index: int) -> Any:
    """Where a warm start begins: the α of the last fit if it has the right length, else its w, else nowhere."""
    if not hasattr(estimator, "coef_"):
        return None
    coef = np.atleast_2d(estimator.coef_).astype(np.float64)
    intercept = np.atleast_1d(estimator.intercept_).astype(np.float64)
    alpha = np.atleast_2d(estimator.dual_coef_)
    rows = problem.K if isinstance(problem, MultinomialProblem) else max(index + 1, coef.shape[0])
    if coef.shape != (rows, problem.d):
        return None
    same_rows = alpha.shape[1] == problem.n
    if isinstance(problem, MultinomialProblem):
        start = {"w": coef, "intercept": intercept}
        return {**start, "alpha": alpha} if same_rows else start
    if not same_rows:
        return {"w": coef[index], "intercept": float(intercept[index])}
    return from_alpha(problem, alpha[index], float(intercept[index]))


def from_alpha(problem: Problem, alpha: Array, intercept: float) -> dict[str, Any]:
    """A start at the α of another λ, scaled back along its ray to where the dual is largest (w(α) grows with 1/λ)."""
    return {"alpha": alpha * best_scaling(problem, alpha, problem.lam), "intercept": intercept}


def from_result(problem: AnyProblem, result: Result) -> Any:
    """A start at the result of the same problem with another λ."""
    if isinstance(problem, MultinomialProblem):
        return result
    return from_alpha(problem, result.alpha, result.intercept)


@dataclass(frozen=True)
class Coefficients:
    """What an estimator keeps of its results: a row per problem (per class for a multinomial one)."""

    coef: Array
    intercept: Array
    alpha: Array
    certificates: list[Certificate]

    @classmethod
    def of(cls, problems: list[AnyProblem], results: list[Result]) -> Coefficients:
        """Stack the results; coefficients take the dtype of X, and the certificates are those of the rounded ones."""
        dtype = problems[0].X.dtype
        coef = [result.w.astype(dtype) for result in results]
        intercept = [np.asarray(result.intercept, dtype=dtype) for result in results]
        certificates = [result.certificate for result in results]
        if dtype != np.float64:
            certificates = [_certify(*each) for each in zip(problems, coef, intercept, results, strict=True)]
        return cls(np.vstack(coef), np.hstack(intercept), np.vstack([result.alpha for result in results]), certificates)


def _certify(problem: AnyProblem, w: Array, b: Array, result: Result) -> Certificate:
    if isinstance(problem, MultinomialProblem):
        return certify_multinomial(problem, w, b, lower_bound=result.certificate.dual)
    return certify(problem, w, float(b), result.alpha)


_REASONS = {
    Status.MAX_EPOCHS: "max_iter={max_iter} was reached",
    Status.MAX_TIME: "max_time={max_time:g} seconds were used up",
    Status.STALLED: "floating point cannot do better on these data",
    Status.INTERRUPTED: "the run was interrupted",
    Status.DIVERGED: "the iterates diverged",
}
_ADVICE = {
    Status.MAX_EPOCHS: "Increase max_iter or tol, or scale the columns of X (see sklearn.preprocessing).",
    Status.MAX_TIME: "Increase max_time or tol.",
    Status.STALLED: "Increase tol, or scale the columns of X (see sklearn.preprocessing).",
    Status.INTERRUPTED: "Fit again for a smaller gap.",
    Status.DIVERGED: "Use solver='auto'.",
}


def warn_before_tol(
    estimator: Any, settings: Settings, problems: list[AnyProblem], results: list[Result], kept: Coefficients
) -> None:
    """Issue one ConvergenceWarning for the worst problem that stopped before `tol`, stating the gap reached."""
    tol = settings.accepted
    missed = [i for i, problem in enumerate(problems) if kept.certificates[i].gap > tol * _scale(problem)]
    if not missed:
        return
    worst = max(missed, key=lambda i: kept.certificates[i].relative_gap)
    gap, status = kept.certificates[worst].relative_gap, results[worst].status
    where = f" in {len(missed)} of {len(problems)} problems" if len(problems) > 1 else ""
    if status is Status.CONVERGED:
        reason = f"coef_ is {kept.coef.dtype} like X, and rounding to that leaves more than tol"
        advice = "Increase tol, or pass X as float64."
    elif tol == 0 and status is Status.STALLED:
        return  # tol=0 asks for all that floating point can give, and here it is
    else:
        reason = _REASONS[status].format(max_iter=estimator.max_iter, max_time=estimator.max_time or 0.0)
        advice = _ADVICE[status]
    warnings.warn(
        f"{type(estimator).__name__} stopped before its tolerance{where}: {reason}. The certified gap reached is "
        f"{gap:.1e} of the objective at zero (tol={tol:g}). {advice}",
        ConvergenceWarning,
        stacklevel=3 + FRAMES_OF_FIT,
    )


def _scale(problem: AnyProblem) -> float:
    """P at w = 0 and the best intercept, what tol is relative to.

    That is zero, up to rounding, where a target is constant; what counts then is the size of the target itself.
    """
    if isinstance(problem, Problem) and problem.fit_intercept and problem.loss.task == "regression":
        return max(problem.at_zero, 1e-9 * problem.primal(np.zeros(problem.d), 0.0))
    return problem.at_zero
