"""Newton's method for the multinomial problem, with a certificate at every step.

    repeat
        the best intercepts of W, the gradient, the certificate; keep the best point
        solve H (V, c) = −∇P (exactly, or by conjugate gradients: see linear_systems.py)
        walk along (V, c) until P has decreased enough
    until gap ≤ tol · P(0), or something else says stop

The walk needs no pass over the data: scores are linear in the step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._checks import Array, real_number, whole_number
from .._threads import one_blas_thread
from ..result import Result
from ..solvers import State
from ..status import Status
from ..trace import QUANTILES, Trace, TraceEntry
from .certificate import MultinomialCertificate, bound_gap
from .linear_systems import choose_method
from .passes import Passes
from .problem import MultinomialProblem

_EPS = 2.0**-52
_STALL_RELATIVE_GAP = 1e-8


def solve_multinomial(
    problem: MultinomialProblem,
    tol: float = 1e-6,
    max_epochs: int = 1000,
    max_time: float | None = None,
    warm_start: Any = None,
    callback: Callable[[State], Any] | None = None,
    n_threads: int = 1,
) -> Result:
    """Solve a multinomial problem to a certified gap.

    Parameters
    ----------
    problem : MultinomialProblem
        What to solve.
    tol : float, default=1e-6
        Stop when the certified gap is at most ``tol · P(0)``. 0 asks for all that floating point can give.
    max_epochs : int, default=1000
        Stop after that many Newton steps.
    max_time : float, optional
        Stop after that many seconds.
    warm_start : Result or mapping, optional
        Where to begin: a previous result, or a mapping with the keys "w" and "intercept", or "alpha" of shape (K, n), or
        all three. The better one of the points that they describe is taken.
    callback : callable, optional
        Called with a `State` after each evaluation; a true answer stops the run.
    n_threads : int, default=1
        Threads that share each pass over the data. The same number gives the same bits.

    Returns
    -------
    Result
        With `w` of shape (K, d), `intercept` of shape (K,), `alpha` of shape (K, n).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualfree.multinomial import MultinomialProblem, solve_multinomial
    >>> X, y = load_iris(return_X_y=True)
    >>> result = solve_multinomial(MultinomialProblem(X, y, lam=0.01, fit_intercept=True), tol=1e-10)
    >>> result.status.name, result.w.shape
    ('CONVERGED', (3, 4))
    """
    if not isinstance(problem, MultinomialProblem):
        raise TypeError(f"problem must be a MultinomialProblem, got {type(problem).__name__}.")
    if max_time is not None:
        max_time = real_number("max_time", max_time, low=0.0, finite=False)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}.")
    run = _Run(
        problem,
        Passes(problem, whole_number("n_threads", n_threads, low=1)),
        real_number("tol", tol, low=0.0),
        whole_number("max_epochs", max_epochs, low=0),
        math.inf if max_time is None else time.perf_counter() + max_time,
        callback,
    )
    try:
        with one_blas_thread():  # the threads share passes over the data, not products of matrices
            return run.go(warm_start)
    finally:
        run.passes.close()


class _Point:
    """Where the run is: (W, b), its scores and residuals, the gradient, the certificate."""

    def __init__(self, run: _Run, W: Array, b: Array) -> None:
        problem, passes = run.problem, run.passes
        self.W = W
        self.Z = passes.scores(W)
        self.R = np.empty_like(self.Z)
        self.b = problem.best_intercept(passes, self.Z, b, self.R) if problem.fit_intercept else b
        self.loss, self.slope = passes.residuals(self.Z, self.b, self.R)
        self.gradient = passes.gradient(self.R) / problem.n + problem.lam * W
        self.certificate = self.certify(run)

    def certify(self, run: _Run, final: bool = False) -> MultinomialCertificate:
        return bound_gap(
            run.problem, run.passes, self.W, self.b, self.Z, self.R, self.loss, self.slope, self.gradient, final=final
        )

    def alpha(self, problem: MultinomialProblem) -> Array:
        return np.ascontiguousarray(-(problem.sample_weight[:, None] * self.R).T)


class _Run:
    """One solve."""

    def __init__(
        self,
        problem: MultinomialProblem,
        passes: Passes,
        tol: float,
        max_epochs: int,
        deadline: float,
        callback: Callable[[State], Any] | None,
    ) -> None:
        self.problem, self.passes = problem, passes
        self.target, self.max_epochs = tol * problem.at_zero, max_epochs
        self.deadline, self.callback = deadline, callback
        self.seconds = self.evaluation_seconds = 0.0
        self.epoch = 0
        self.trace = Trace()
        self.best: _Point | None = None
        self.phase = "newton"

    def out_of_time(self) -> bool:
        return time.perf_counter() > self.deadline

    def go(self, warm_start: Any) -> Result:
        status, note = Status.INTERRUPTED, "Ctrl-C was pressed."
        try:
            point, outcome = self._evaluate(*self._starting_point(warm_start))
            method = choose_method(self.problem, self.passes) if outcome is None and self.max_epochs > 0 else None
            while outcome is None:
                if method is None or self.epoch >= self.max_epochs:
                    outcome = Status.MAX_EPOCHS, ""
                    break
                self.phase = method.name
                began = time.perf_counter()
                V, c = method.solve(point.R, point.gradient, point.slope / self.problem.n, self.out_of_time)
                length = self._walk(point, V, c)
                self.epoch += 1
                self.seconds += time.perf_counter() - began
                if length == 0.0:
                    outcome = Status.STALLED, ""
                    break
                point, outcome = self._evaluate(point.W + length * V, point.b + length * c)
            status, note = outcome
        except KeyboardInterrupt:
            pass
        return self._result(status, note)

    # --- where to begin -------------------------------------------------------------------------------------------------

    def _starting_point(self, warm_start: Any) -> tuple[Array, Array]:
        """Return the best one of zero and what the warm start describes."""
        problem = self.problem
        starts = [(np.zeros((problem.K, problem.d)), problem.zero_intercept)]
        if warm_start is not None:
            starts += self._described(warm_start)
        if len(starts) == 1:
            return starts[0]
        return min(starts, key=lambda start: problem.primal(*start))

    def _described(self, warm_start: Any) -> list[tuple[Array, Array]]:
        problem = self.problem
        if isinstance(warm_start, Result):
            given = {"w": warm_start.w, "intercept": warm_start.intercept, "alpha": warm_start.alpha}
            if warm_start.alpha.shape != (problem.K, problem.n):
                del given["alpha"]
        elif isinstance(warm_start, Mapping) and set(warm_start) <= {"w", "intercept", "alpha"} and warm_start:
            given = dict(warm_start)
        else:
            raise ValueError(
                "warm_start must be a result, or a mapping with some of the keys 'w', 'intercept', 'alpha'."
            )
        b = np.zeros(problem.K)
        if problem.fit_intercept:
            b = np.asarray(given.get("intercept", problem.zero_intercept), dtype=np.float64)
            b = b - b.mean()
        starts = []
        if "w" in given:
            starts.append(problem.checked_point(given["w"], b))
        if "alpha" in given:
            alpha = np.asarray(given["alpha"], dtype=np.float64)
            if alpha.shape != (problem.K, problem.n):
                raise ValueError(f"warm_start['alpha'] must have shape ({problem.K}, {problem.n}), got {alpha.shape}.")
            weights = np.divide(1.0, problem.sample_weight, where=problem.sample_weight > 0, out=np.zeros(problem.n))
            W = self.passes.gradient(np.ascontiguousarray((alpha * weights).T)) / (problem.lam * problem.n)
            starts.append(problem.checked_point(W, b))
        return starts

    # --- one evaluation -------------------------------------------------------------------------------------------------

    def _evaluate(self, W: Array, b: Array) -> tuple[_Point, tuple[Status, str] | None]:
        began = time.perf_counter()
        point = _Point(self, W, b)
        self.evaluation_seconds += time.perf_counter() - began
        certificate = point.certificate
        self.trace.append(
            TraceEntry(
                epoch=self.epoch,
                passes=self.passes.count,
                seconds=self.seconds,
                evaluation_seconds=self.evaluation_seconds,
                primal=certificate.primal,
                dual=certificate.dual,
                gap=certificate.gap,
                residual_quantiles=(0.0,) * len(QUANTILES),  # α follows from the scores, so κ = 0
                phase=self.phase,
            )
        )
        outcome = self._judge(certificate)
        if self.best is None or _better(certificate, self.best.certificate):
            self.best = point
        if self.callback is not None:
            state = State(
                self.epoch,
                self.passes.count,
                self.seconds,
                certificate,
                W,
                point.b,  # type: ignore[arg-type]
                point.alpha(self.problem),
                self.trace,
            )
            if self.callback(state) and outcome is None:
                outcome = Status.INTERRUPTED, "The callback asked to stop."
        if outcome is None and self.out_of_time():
            outcome = Status.MAX_TIME, ""
        return point, outcome

    def _judge(self, certificate: MultinomialCertificate) -> tuple[Status, str] | None:
        if certificate.gap <= self.target:
            return Status.CONVERGED, ""
        if self.best is not None:
            # Newton's method is quick to the end: what no longer shrinks tenfold is rounding error.
            before = self.best.certificate
            limited = certificate.rounding >= 0.5 * certificate.gap or certificate.relative_gap < _STALL_RELATIVE_GAP
            if limited and _measured(certificate) > 0.1 * _measured(before) and certificate.gap > 0.5 * before.gap:
                return Status.STALLED, ""
        return None

    def _walk(self, point: _Point, V: Array, c: Array) -> float:
        """Return a step length with enough decrease; 0 where there is none.

        Where P's decrease drowns in rounding its slope decides instead (the approximate Wolfe condition of Hager and
        Zhang).
        """
        problem, passes = self.problem, self.passes
        along = passes.scores(V)
        R = np.empty_like(point.R)
        weighted = problem.sample_weight[:, None] * (along + c)
        straight, curved = float(np.vdot(point.W, V)), float(np.vdot(V, V))
        slope = float(np.vdot(weighted, point.R)) / problem.n + problem.lam * straight
        if not slope < 0.0:
            return 0.0
        value = point.loss / problem.n
        noise = 8.0 * _EPS * (abs(value) + 0.5 * problem.lam * float(np.vdot(point.W, point.W)))
        length = 1.0
        for _ in range(60):
            loss, _ = passes.residuals(point.Z + length * along, point.b + length * c, R)
            change = loss / problem.n - value + problem.lam * (length * straight + 0.5 * length**2 * curved)
            if change <= 1e-4 * length * slope:
                return length
            if change <= noise:
                new_slope = float(np.vdot(weighted, R)) / problem.n + problem.lam * (straight + length * curved)
                if new_slope <= -0.8 * slope:
                    return length
            length *= 0.5
        return 0.0

    # --- the end --------------------------------------------------------------------------------------------------------

    def _result(self, status: Status, note: str) -> Result:
        point = self.best
        if point is None:
            raise KeyboardInterrupt  # before the first evaluation there is nothing to return
        certificate = point.certify(self, final=True)
        reached = "" if status is Status.CONVERGED else f"Relative gap reached: {certificate.relative_gap:.1e}."
        return Result(
            w=point.W,
            intercept=point.b,  # type: ignore[arg-type]
            alpha=point.alpha(self.problem),
            certificate=certificate,
            status=status,
            message=" ".join(part for part in (status.sentence, note, reached) if part),
            n_epochs=self.epoch,
            solver="newton",
            trace=self.trace,
        )


def _measured(certificate: MultinomialCertificate) -> float:
    """The gap without the part that stands for rounding errors."""
    return certificate.gap - certificate.rounding


def _better(new: MultinomialCertificate, old: MultinomialCertificate) -> bool:
    """Whether to prefer `new`; where both gaps are rounding errors, by what was measured."""
    if new.gap <= 1.01 * old.gap and new.rounding >= 0.5 * new.gap and old.rounding >= 0.5 * old.gap:
        return _measured(new) < _measured(old)
    return new.gap < old.gap
