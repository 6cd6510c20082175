"""The one loop that runs every solver: epochs, certificates, stopping.

    start from α⁽⁰⁾
    repeat
        one epoch of the solver
        when it is due: project α, form w(α), find b, bound the gap; keep the best point
    until gap ≤ tol · P(0), or something else says stop

Solving and evaluating are timed apart. When to evaluate is decided from the gaps alone, never from the clock: the same
seed gives the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from ..certificate import Certificate, bound_gap, certify
from ..dual_domain import Balance, project
from ..problem import Problem
from ..result import Result
from ..status import Status
from ..trace import Trace, TraceEntry, residual_quantiles
from .base import Solver
from .schedule import next_evaluation, stalled

# A run that may diverge is given up when its gap has grown by this factor over the best one.
_DIVERGED = 1e4


@dataclass(frozen=True, slots=True)
class State:
    """What a callback sees after each evaluation. Copy the arrays if you keep them.

    Attributes
    ----------
    epoch : int
        Epochs run.
    passes : float
        Rows touched, divided by n.
    seconds : float
        Time spent solving, without evaluations.
    certificate : Certificate
        Of this point.
    w, intercept, alpha
        The point evaluated.
    trace : Trace
        The history so far.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> problem = df.Problem(np.eye(3), [1.0, 2.0, 3.0], loss="squared", lam=1.0)
    >>> def enough(state: df.State) -> bool:
    ...     return state.certificate.gap < 0.1
    >>> df.solve(problem, tol=0.0, callback=enough, random_state=0).certificate.gap < 0.1
    True
    """

    epoch: int
    passes: float
    seconds: float
    certificate: Certificate
    w: Array
    intercept: float
    alpha: Array
    trace: Trace


@dataclass(frozen=True, slots=True)
class _Point:
    w: Array
    intercept: float
    alpha: Array
    certificate: Certificate


class Run:
    """One solve."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        *,
        tol: float,
        max_epochs: int,
        max_time: float | None,
        callback: Callable[[State], Any] | None,
        evaluate_every: int | None,
    ) -> None:
        self.problem, self.solver = problem, solver
        self.target = tol * problem.at_zero
        self.max_epochs, self.callback, self.evaluate_every = max_epochs, callback, evaluate_every
        self.began = time.perf_counter()
        self.deadline = math.inf if max_time is None else self.began + max_time
        self.seconds = self.evaluation_seconds = 0.0
        self.epoch = 0
        self.trace = Trace()
        self.best: _Point | None = None
        self.evaluated = False  # whether the solver's point is the one that was evaluated last
        self.guess_b = 0.0
        self.outcome: tuple[Status, str] | None = None
        n, d = problem.n, problem.d
        self.spare = (np.empty(n), np.empty(d))
        self.z, self.sums, self.scratch = np.empty(n), np.empty(d), np.empty(d)

    def go(self, alpha: Array, intercept: float) -> Result:
        """Run from a starting point until something says stop."""
        pressed = False
        try:
            self.begin(alpha, intercept)
            while not self.step():
                pass
        except KeyboardInterrupt:
            pressed = True
        while True:
            try:
                return self.finish()
            except KeyboardInterrupt:
                # The first Ctrl-C keeps the best point even when it comes this late; the second ends the run at once.
                if pressed or self.best is None:
                    raise
                pressed = True

    def begin(self, alpha: Array, intercept: float) -> None:
        """Take the starting point and evaluate it."""
        self.solver.start(alpha, intercept)
        self.guess_b = intercept
        self.outcome = self._evaluate()
        self.due = self._next_evaluation()

    def step(self) -> bool:
        """Run one epoch, and an evaluation where it is due; True when the run has ended."""
        if self.outcome is None:
            if self.epoch >= self.max_epochs:
                self.outcome = Status.MAX_EPOCHS, ""
            elif not self._one_epoch():
                self.outcome = Status.MAX_TIME, ""
            elif self.epoch >= self.due or self.epoch >= self.max_epochs:
                self.outcome = self._evaluate()
                self.due = self._next_evaluation()
        return self.outcome is not None

    # --- one epoch --------------------------------------------------------------------------------------------------

    def _one_epoch(self) -> bool:
        """Run one epoch; False when time ran out inside it."""
        began = time.perf_counter()
        solver, left = self.solver, self.problem.n
        self.evaluated = False
        solver.begin_epoch()
        in_time = True
        while left > 0:
            count = min(left, solver.visits_per_call)
            solver.visit(count)
            left -= count
            if time.perf_counter() > self.deadline:
                in_time = False
                break
        if left == 0:
            solver.end_epoch()
            self.epoch += 1
        self.seconds += time.perf_counter() - began
        return in_time

    # --- one evaluation ---------------------------------------------------------------------------------------------

    def _evaluate(self, quietly: bool = False) -> tuple[Status, str] | None:
        """Certify the current point; return how the run ends, or None when it goes on."""
        began = time.perf_counter()
        problem = self.problem
        alpha, w, b = self.solver.candidate()
        if not np.isfinite(alpha).all():
            self.evaluated = True
            return Status.DIVERGED, "The iterates are no longer finite. " + self.solver.instead
        feasible, weights = self.spare
        balance = project(problem, alpha, feasible)
        error = problem.sum_rows_into(feasible, self.sums, self.scratch)
        if w is None:
            np.divide(self.sums, problem.lam * problem.n, out=weights)
            if np.array_equal(alpha, feasible):
                self.solver.renew(weights)  # takes away the rounding errors of an epoch's additions
        else:
            weights[:] = w
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run overflows before it is stopped
            certificate, b = self._certify(weights, b, feasible, balance, error)
        quantiles = residual_quantiles(self.z)
        point = _Point(weights, b, feasible, certificate)
        self.evaluation_seconds += time.perf_counter() - began

        passes = self.solver.rows_touched / problem.n
        self.trace.append(
            TraceEntry(
                self.epoch,
                passes,
                self.seconds,
                self.evaluation_seconds,
                certificate.primal,
                certificate.dual,
                certificate.gap,
                quantiles,
                self.solver.phase,
            )
        )
        outcome = self._judge(certificate)
        if self.best is None or certificate.gap < self.best.certificate.gap:
            free = (np.empty(problem.n), np.empty(problem.d)) if self.best is None else (self.best.alpha, self.best.w)
            # In one statement: a Ctrl-C between the two would let the next evaluation overwrite the best point.
            self.best, self.spare = point, free
        self.evaluated = True
        self.solver.observe(certificate.gap, self.target)
        if self.callback is not None and not quietly:
            state = State(self.epoch, passes, self.seconds, certificate, weights, b, feasible, self.trace)
            if self.callback(state) and outcome is None:
                return Status.INTERRUPTED, "The callback asked to stop."
        if outcome is None and time.perf_counter() > self.deadline:
            return Status.MAX_TIME, ""
        return outcome

    def _certify(
        self, w: Array, b: float | None, alpha: Array, balance: Balance, error: float
    ) -> tuple[Certificate, float]:
        problem = self.problem
        _rows.margins_into(problem.rows, w, self.z)
        if b is None:
            b = problem.best_intercept(self.z, self.guess_b) if problem.fit_intercept else 0.0
        self.guess_b = b
        certificate = bound_gap(
            problem, w, b, alpha, balance, self.z, self.sums, error, self.scratch, enough=self.target
        )
        return certificate, b

    def _judge(self, certificate: Certificate) -> tuple[Status, str] | None:
        gap = certificate.gap
        if gap <= self.target:
            return Status.CONVERGED, ""
        if self.solver.may_diverge and self.best is not None and not gap < _DIVERGED * self.best.certificate.gap:
            return Status.DIVERGED, f"The gap grew to {gap:.1e}. " + self.solver.instead
        return (Status.STALLED, "") if stalled(certificate, self.trace, self.epoch) else None

    def _next_evaluation(self) -> int:
        if self.evaluate_every is not None:
            return self.epoch + self.evaluate_every
        if self.solver.evaluate_each_epoch:
            return self.epoch + 1
        return next_evaluation(self.trace, self.epoch, self.target)

    # --- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> Result:
        """Evaluate once more where visits have not been evaluated yet, and put the result together."""
        status, note = self.outcome or (Status.INTERRUPTED, "Ctrl-C was pressed.")
        if self.best is None:
            raise KeyboardInterrupt  # nothing to return yet
        if not self.evaluated:
            last = self._evaluate(quietly=True)
            if last is not None and last[0] is Status.CONVERGED:
                status, note = last
        problem, best = self.problem, self.best
        certificate = best.certificate
        if problem.fit_intercept:
            final = certify(problem, best.w, best.intercept, best.alpha)  # bounds the intercept as well
            # Balancing α once more may cost a last digit; the certificate that met tol stands.
            worse = final.gap > certificate.gap
            certificate = replace(certificate, intercept_bound=final.intercept_bound) if worse else final
        return Result(
            w=best.w,
            intercept=best.intercept,
            alpha=best.alpha,
            certificate=certificate,
            status=status,
            message=message_of(status, note, certificate),
            n_epochs=self.epoch,
            solver=self.solver.name,
            trace=self.trace,
        )


def message_of(status: Status, note: str, certificate: Certificate) -> str:
    """The status in words, and what to do about it."""
    parts = [status.sentence, note, _ADVICE.get(status, "").format(gap=certificate.relative_gap)]
    return " ".join(part.strip() for part in parts if part.strip())


_ADVICE = {
    Status.MAX_EPOCHS: "Relative gap reached: {gap:.1e}. Raise max_epochs or tol, scale the columns of X, or try 'auto'.",
    Status.MAX_TIME: "Relative gap reached: {gap:.1e}. Raise max_time or tol.",
    Status.INTERRUPTED: "Relative gap reached: {gap:.1e}.",
    Status.STALLED: "Relative gap reached: {gap:.1e}.",
    Status.DIVERGED: "Relative gap of the point returned: {gap:.1e}.",
}
