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

from .._checks import Array
from ..certificate import Certificate, KnownWeights, at_zero_weights, bound_gap, certify, with_intercept_bound
from ..dual_domain import Balance, Projection, project
from ..least_squares import certify_least_squares, suits
from ..moments import certify_from_moments, saves_time, sharpened
from ..problem import Problem
from ..result import Result
from ..row_sums import residuals_at_zero
from ..status import Status
from ..trace import QUANTILES, Trace, TraceEntry, quantile_step, quantiles_of, residual_quantiles
from .base import AT_ROUNDING, Solver
from .guesses import first_is_due, part_of_epoch
from .schedule import next_evaluation, stalled

# A run that may diverge is given up when its gap has grown by this factor over the best one.
_DIVERGED = 1e4
# What not summing w(α) anew may add to the gap, as a part of it.
_DRIFT_SHARE = 1e-3
# So many epochs without a certificate are reason enough for one; or as many as there have been, where that is more.
_LONGEST_WAIT = 10
_LOOSE = 0.02  # of P(0): a tolerance that one epoch may meet
_SURE = 0.85  # what a guess should be, in the target, to be believed


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
        self.epoch = self.due = 0
        self.activity: float | None = None  # the solver's at the last evaluation
        self.first_activity: float | None = None  # the same after the last epoch, until the first evaluation
        self.rate = 0.0  # what an epoch takes from the logarithm of the gap, by the last one; 0 if that is not known
        self.trace = Trace()
        self.best: _Point | None = None
        self.evaluated = False  # whether the solver's point is the one that was evaluated last
        self.guess_b = 0.0
        # a point (α, w, b) to begin with, until it is certified
        self.given: tuple[Array, Array | None, float | None] | None = None
        self.outcome: tuple[Status, str] | None = None
        n, d = problem.n, problem.d
        self.spare = (np.zeros(n), np.zeros(d))
        self.z, self.sums, self.scratch = np.empty(n), np.empty(d), np.empty(d)

    def go(self, alpha: Array | None, intercept: float, w: Array | None = None) -> Result:
        """Run from a starting point until something says stop; `w` goes with α where it is not w(α). Without α, from zero."""
        pressed = False
        try:
            self.begin(alpha, intercept, w)
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

    def begin(self, alpha: Array | None, intercept: float, w: Array | None = None) -> None:
        """Take the starting point and evaluate it."""
        self.solver.begins_at_zero = alpha is None
        if alpha is None:
            alpha = np.zeros(self.problem.n)
        if w is not None or not self.solver.is_zero(alpha):
            # a solver may move at once; the point given is certified as it is
            self.given = alpha.copy(), w, None if w is None else intercept
        self.solver.given_w, self.solver.target = w, self.target
        self.solver.start(alpha, intercept)
        self.guess_b = intercept
        self.outcome = self._evaluate()
        self.given = None

    def step(self) -> bool:
        """Run one epoch, and an evaluation where it is due; True when the run has ended."""
        if self.outcome is None:
            if self.epoch >= self.max_epochs:
                self.outcome = Status.MAX_EPOCHS, ""
            elif not self._one_epoch():
                self.outcome = Status.MAX_TIME, ""
            elif self.epoch >= self.max_epochs or self._evaluation_is_due():
                self.outcome = self._evaluate()
        return self.outcome is not None

    # --- one epoch --------------------------------------------------------------------------------------------------

    def _one_epoch(self) -> bool:
        """Run one epoch; False when time ran out inside it."""
        began = time.perf_counter()
        solver, left = self.solver, self.problem.n
        self.evaluated = False
        if self.evaluate_every is None:
            soon = self.trace[-1].epoch + _LONGEST_WAIT
            solver.epochs_allowed = max(1, min(self.max_epochs, soon) - self.epoch)
            solver.enough_activity, solver.enough_guessed = self._enough_activity(), self._enough_guessed()
            solver.part_wanted = self._part_wanted() if solver.may_shorten else 1.0
        before = self._measure, solver.phase
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
            self.epoch += solver.epochs_made
            self.rate = self._rate_since(*before) / solver.part_wanted
        self.seconds += time.perf_counter() - began
        return in_time

    @property
    def _measure(self) -> float | None:
        """What shrinks as the gap does."""
        return self.solver.activity if self.solver.gap_estimate is None else self.solver.gap_estimate

    def _rate_since(self, before: float | None, phase: str) -> float:
        """What the last epoch took from the logarithm of that; 0 where it is not known."""
        now, solver = self._measure, self.solver
        if solver.epochs_made > 1:
            before = solver.activity_before
        if not before or not now or solver.phase != phase:
            return 0.0
        return max(0.0, math.log(before / now))

    def _part_wanted(self) -> float:
        """What part of an epoch should be enough to meet tol."""
        estimate, enough = self._estimate(), self._enough
        if not self.rate or not estimate or not 0.0 < enough < math.inf:
            return 1.0
        return part_of_epoch(estimate, enough, self.rate)

    # --- one evaluation ---------------------------------------------------------------------------------------------

    def _evaluate(self, quietly: bool = False) -> tuple[Status, str] | None:
        """Certify the current point; return how the run ends, or None when it goes on."""
        began = time.perf_counter()
        problem = self.problem
        feasible, weights = self.spare
        if not self.trace and self.given is None and problem.loss.builtin_id is not None:  # both are zero
            b = problem.intercept_at_zero if problem.fit_intercept else 0.0
            certificate = at_zero_weights(problem)
            targets = (problem.loss.compiled, b, problem.y, problem.sample_weight)
            alike = problem.unit_weights and problem.loss.task == "classification"
            quantiles = quantiles_of(*residuals_at_zero(*targets, alike, quantile_step(problem.n)))
        elif (found := self._certify_least_squares(feasible, weights)) is not None:
            certificate, b = found
            quantiles = (0.0,) * len(QUANTILES)  # κ = 0
        else:
            alpha, w, given_b = self.given or self.solver.candidate()
            projection = project(self.solver.team, alpha, feasible)
            if not projection.is_finite:
                return self._no_longer_finite()
            certificate, b = self._certify_candidate(projection, w, given_b, feasible, weights)
            if self._or_none and certificate.gap >= certificate.primal:
                feasible[:] = 0.0
            self.solver.residuals = self.z
            quantiles = residual_quantiles(self.z)
        if self.solver.moments is not None and certificate.gap > self.target:
            with np.errstate(over="ignore", invalid="ignore"):
                certificate = sharpened(problem, certificate, self.solver.moments, weights, b)
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
        self.due = self._next_evaluation()
        self.activity, estimate = self.solver.activity, self.solver.gap_estimate
        # The first evaluation is of the point given, and a method may have moved on from there at once.
        self.solver.optimism = max(1.0, certificate.gap / estimate) if estimate and len(self.trace) > 1 else 1.0
        if not quietly:  # the run has ended
            self.solver.observe(certificate.gap, self.target)
        if self.callback is not None and not quietly:
            state = State(self.epoch, passes, self.seconds, certificate, weights, b, feasible, self.trace)
            if self.callback(state) and outcome is None:
                return Status.INTERRUPTED, "The callback asked to stop."
        if outcome is None and time.perf_counter() > self.deadline:
            return Status.MAX_TIME, ""
        return outcome

    def _no_longer_finite(self) -> tuple[Status, str]:
        self.evaluated = True
        return Status.DIVERGED, "The iterates are no longer finite. " + self.solver.instead

    def _certify_least_squares(self, alpha: Array, weights: Array) -> tuple[Certificate, float] | None:
        """Certify a point whose α follows from w and b, and form that α; None where there is no short way."""
        problem, solver = self.problem, self.solver
        if self.given is not None or not solver.dual_follows:
            return None
        weights[:], self.guess_b = solver.w, solver.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            if solver.moments is not None and saves_time(problem):
                certificate = certify_from_moments(problem, solver.moments, weights, self.guess_b, alpha, self.target)
                if certificate is not None:
                    return certificate, self.guess_b
            if not suits(problem) or not np.isfinite(weights).all():
                return None
            given = problem, weights, alpha, self.sums, self.scratch, self.z, self.target, solver.team
            return certify_least_squares(*given), 0.0

    def _certify_candidate(
        self, projection: Projection, w: Array | None, b: float | None, feasible: Array, weights: Array
    ) -> tuple[Certificate, float]:
        """Form or take the weights that go with α, and bound the gap; fills `weights`."""
        problem, unchanged = self.problem, projection.is_unchanged
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run overflows before it is stopped
            if unchanged and self._drift_is_small():
                weights[:] = self.solver.w
                known, has_margins = KnownWeights(None, self.solver.drift or 0.0), False
            else:
                team, has_margins = self.solver.team, w is not None
                if w is not None:
                    weights[:] = w
                    error = team.margins_and_sum_into(weights, feasible, self.z, self.sums, self.scratch)
                else:
                    error = team.sum_rows_into(feasible, self.sums, self.scratch)
                known = KnownWeights(self.sums, error)
                if w is None:
                    np.divide(self.sums, problem.lam * problem.n, out=weights)
                    if unchanged and self.given is None:
                        self.solver.renew(weights, error)  # takes away the rounding errors of an epoch's additions
            if not has_margins:
                self.solver.team.margins_into(weights, self.z)
            return self._certify(weights, b, feasible, projection.balance, known)

    def _best_intercept(self) -> float:
        """The best b for the margins in z."""
        return self.problem.best_intercept(self.z, self.guess_b) if self.problem.fit_intercept else 0.0

    @property
    def trusts_dual(self) -> bool:
        """Whether the solver's α is good (not one that only follows from given weights) and the loss can judge it."""
        loss = self.problem.loss
        follows = self.given is not None and self.given[1] is not None
        return self.solver.trusts_dual and not follows and (loss.has("conjugate") or loss.has("fenchel_young"))

    @property
    def _or_none(self) -> bool:
        """Whether α = 0 may take the place of the solver's: of losses that are known not to be negative."""
        return self.solver.may_be_worse_than_none and self.problem.loss.builtin_id is not None

    def _drift_is_small(self) -> bool:
        """Whether the running w is so near w(α) that w(α) need not be summed."""
        drift = self.solver.drift
        if drift is None or self.problem.fit_intercept or not self.trace or not self.trusts_dual:
            return False
        return 0.5 * self.problem.lam * drift * drift <= _DRIFT_SHARE * min(
            self._estimate() or math.inf, self.trace[-1].gap
        )

    def _certify(
        self, w: Array, b: float | None, alpha: Array, balance: Balance, known: KnownWeights
    ) -> tuple[Certificate, float]:
        problem = self.problem
        if b is None:
            b = self._best_intercept()
        self.guess_b = b
        certificate = bound_gap(
            problem,
            w,
            b,
            alpha,
            balance,
            self.z,
            known,
            self.scratch,
            enough=self.target,
            trusts_dual=self.trusts_dual,
            or_none=self._or_none,
            team=self.solver.team,
        )
        return certificate, b

    def _judge(self, certificate: Certificate) -> tuple[Status, str] | None:
        gap = certificate.gap
        if gap <= self.target:
            return Status.CONVERGED, ""
        if self.solver.may_diverge and self.best is not None and not gap < _DIVERGED * self.best.certificate.gap:
            return Status.DIVERGED, f"The gap grew to {gap:.1e}. " + self.solver.instead
        return (Status.STALLED, "") if stalled(certificate, self.trace, self.epoch) else None

    def _estimate(self) -> float | None:
        """What the gap is about now, without a certificate: the solver's estimate, or the last gap, grown with its activity."""
        solver = self.solver
        if solver.gap_estimate is not None:
            return solver.gap_estimate
        if solver.activity is None or not self.activity:
            return solver.guess if len(self.trace) == 1 else None
        return self.trace[-1].gap * solver.activity / self.activity

    @property
    def _guesses(self) -> bool:
        """Whether the estimate is a guess, and not what the method knows."""
        return self.solver.gap_estimate is None

    @property
    def _enough(self) -> float:
        """The estimate with which a certificate is due."""
        if self._guesses:
            return _SURE * self.target
        return max(self.target / self.solver.optimism, AT_ROUNDING * self.problem.at_zero)

    def _enough_activity(self) -> float:
        """The activity that makes `_estimate` say that tol is met; until there is a gap to begin with, any."""
        if not self.activity or not self._guesses:
            return math.inf
        return self.activity * self._enough / self.trace[-1].gap

    def _enough_guessed(self) -> float:
        """The guess that makes the first certificate due; 0 where there has been one, or one epoch may be enough for it."""
        waits = len(self.trace) == 1 and self._guesses and self.target < _LOOSE * self.problem.at_zero
        return self._enough if waits else 0.0

    def _evaluation_is_due(self) -> bool:
        """Whether the estimate says that tol is met; without one, whether the epoch has come that the last gaps foretold."""
        if self.evaluate_every is not None:
            return self.epoch >= self.due
        if self.solver.evaluate_each_epoch:
            return True
        if self._guesses and self.solver.part_wanted < 1.0:
            return True  # it was to be enough
        if self._guesses and self.solver.activity is not None and len(self.trace) == 1:
            return self._first_is_due(self.solver.activity)
        estimate = self._estimate()
        if estimate is None:
            return self.epoch >= self.due
        if (
            estimate <= self._enough
            or self.epoch >= max(self.due, self.trace[-1].epoch + max(_LONGEST_WAIT, self.trace[-1].epoch))
            or (estimate <= self.target and self.epoch >= self.trace[-1].epoch + 3)
        ):
            return True
        self.solver.foresee(estimate, self.target)
        return False

    def _first_is_due(self, activity: float) -> bool:
        """Whether to evaluate for the first time since the start. One epoch alone rarely goes far enough."""
        before, self.first_activity = self.first_activity, activity
        if self.solver.epochs_made > 1:
            before = self.solver.activity_before
        if before is None:
            return self.target >= _LOOSE * self.problem.at_zero
        guess = self.solver.guess
        if guess is None or self.epoch >= _LONGEST_WAIT:
            return True
        rate = math.log(before / activity) if 0.0 < activity < before else 0.0
        if not first_is_due(guess, self._enough, rate, self.solver.even):
            return False
        return guess <= self._enough or not self.solver.judges_by_guess(guess, self.target)

    def _next_evaluation(self) -> int:
        if self.evaluate_every is not None:
            return self.epoch + self.evaluate_every
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
        if status not in (Status.CONVERGED, Status.DIVERGED):
            self._try_without_dual()
        problem, best = self.problem, self.best
        certificate = best.certificate
        if problem.fit_intercept and not math.isfinite(certificate.intercept_bound):
            with np.errstate(over="ignore", invalid="ignore"):
                certificate = with_intercept_bound(problem, best.w, best.intercept, best.alpha, certificate)
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

    def _try_without_dual(self) -> None:
        """A run that is stopped far from the optimum: its w may be good, and its α worse than none (Newton's first steps).

        Losses are not negative, so α = 0 says that P* ≥ 0: at the last w the gap is P at most, less than where the run began.
        """
        last, best = self.trace[-1], self.best
        if best is None or not (last.primal < best.certificate.primal and last.gap > best.certificate.gap):
            return
        w, nothing = self.spare[1].copy(), np.zeros(self.problem.n)
        if not np.isfinite(w).all():
            return
        certificate = certify(self.problem, w, self.guess_b, nothing)
        if certificate.gap < best.certificate.gap:
            self.best = _Point(w, self.guess_b, nothing, certificate)
            self.trace.append(replace(last, dual=certificate.dual, gap=certificate.gap))


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
