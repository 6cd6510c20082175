"""The loop of a distributed fit: rounds, certificates, stopping.

    start from α = 0, or from a checkpoint's w
    repeat
        every partition improves its own α, w is their sum (one stage)
        when it is due: bound the gap from sums over the partitions (one stage, two with an intercept)
        mix the last rounds into the point from which the next one starts
    until gap ≤ tol · P(0), or something else says stop

The client holds w and a few vectors of its length. When to evaluate is decided from the gaps alone, never from the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._checks import Array
from ..certificate import Certificate, KnownWeights, bound_from_sums, bound_intercept, norm_of
from ..solvers.newton import Newton
from ..solvers.schedule import next_evaluation
from ..status import Status
from ..trace import TraceEntry
from . import tasks, work
from .anderson import Anderson, Output, Start
from .cluster import Cluster, total_of
from .cluster_sums import ClusterSums
from .fit import Best, Fit, Outcome
from .newton_steps import NewtonSteps
from .reply import Reply
from .residual_histogram import quantiles
from .result import DistributedResult
from .spec import Spec
from .summary import Summary
from .tasks import Point, Round
from .windows import Window, Windows

_MUCH_WORSE = 100.0
_LOST = ((-1, 1.0),)  # a recipe that no worker can follow: α is rebuilt from w


class Rounds(Fit):
    """A fit with at least two partitions."""

    def __init__(
        self, cluster: Cluster, spec: Spec, summary: Summary, *, passes: float, depth: int, **settings: Any
    ) -> None:
        super().__init__(cluster, spec, **settings)
        self.summary, self.passes = summary, passes
        self.windows = None if passes >= 1 else Windows(round(1 / passes), spec.partitions)
        self.whole_passes = int(passes) if passes >= 1 else work.WHOLE_PASSES
        self.visited = 0.0  # passes over the rows
        self.mixing = Anderson(depth)
        self.phase = "cocoa+"
        self.newton: NewtonSteps | None = None
        self.seq = self.evaluations = self.due = 0
        self.seconds = self.evaluation_seconds = 0.0
        self.pending: tuple[Array, float, int] | None = None  # a point that has not been evaluated yet

    def go(self) -> DistributedResult:
        """Run until something says stop."""
        outcome: Outcome | None
        pressed = False
        try:
            self._begin()
            outcome = self._evaluate()
            while outcome is None:
                if self.round >= self.max_rounds:
                    outcome = Status.MAX_EPOCHS, ""
                elif time.monotonic() > self.deadline:
                    outcome = Status.MAX_TIME, ""
                elif self.newton is not None:
                    outcome = self._one_newton_step(self.newton)
                else:
                    self._one_round()
                    if self._evaluation_is_due():
                        outcome = self._evaluate()
                        self._choose_method()
                        self.cluster.spread()
        except KeyboardInterrupt:
            pressed = True
            outcome = self._interrupted()
        while True:
            try:
                return self._finish(outcome)
            except KeyboardInterrupt:  # the first one keeps the best point even when it comes this late
                if pressed:
                    raise
                pressed = True

    # --- one round --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        saved = self.saved()
        if saved is None:
            self.start = Start((), np.zeros(self.spec.d), self.spec.intercept_at_zero, 0.0)
        else:
            self.start = Start(_LOST, saved.w, saved.b, 0.0)
        self._restore()

    def _restore(self) -> None:
        """Make α and w agree: w = w(α), with α rebuilt from w where it was lost.

        Far from the optimum, w(α̂) is much farther from it than w is, by 1/λ times the gradient. Where the rebuilt point turns
        out to be worse than the start of all, the lost blocks begin with α = 0 again.
        """
        empty = False
        while True:
            reply, request = self._ask("rebuild", tasks.restore, 0, empty)
            w, total = total_of(reply) * self.spec.scale, math.fsum(reply.terms)
            self.mixing.restart()
            self.start = Start(((request.seq, 1.0),), w, self.start.b, total)
            self.pending = w, self.start.b, request.seq
            if not reply.rebuilt or self._certify(*self.pending)[0].gap <= self.spec.at_zero:
                return
            empty = True

    def _one_round(self) -> None:
        began = time.monotonic()
        to_do = self.whole_passes if self.windows is None else self.windows.next
        reply, request = self._ask("round", tasks.advance, to_do)
        if reply.rebuilt:
            self._restore()
        elif self.windows is None:
            w, total = total_of(reply) * self.spec.scale, math.fsum(reply.terms)
            step_b = self.spec.extra * self.spec.scale * total  # the multiplier step of the intercept
            b = self.start.b + step_b
            change = w - self.start.w
            if self.spec.fit_intercept:
                change = np.append(change, step_b / math.sqrt(self.spec.extra))
            self.pending = w, b, request.seq
            self.start = self.mixing.next_start(Output(request.seq, w, b, total, change))
            self.round += 1
            self.visited += self.whole_passes
        else:
            self._add_window(self.windows, reply, request)
        self.seconds += time.monotonic() - began

    def _add_window(self, windows: Windows, reply: Reply, request: Round) -> None:
        change = total_of(reply)
        total, moved, apart, activity = (math.fsum(column) for column in zip(*reply.terms, strict=True))
        together = float(change @ change) + (moved * moved / self.spec.extra if self.spec.fit_intercept else 0.0)
        windows.learn(together, apart, activity)
        w, b = self.start.w + change, self.start.b
        if windows.between_passes:
            b += self.spec.extra * self.spec.scale * total
        self.pending = w, b, request.seq
        self.start = Start(((request.seq, 1.0),), w, b, total)
        self.round += 1
        self.visited += 1.0 / windows.count

    def _ask(self, name: str, task: Callable[..., Any], work: int | Window, *more: Any) -> tuple[Reply, Round]:
        def once() -> tuple[Reply, Round]:
            self.seq += 1  # a new name for each attempt: a task that was given up may still write under the old one
            start = self.start
            request = Round(self.seq, start.recipe, start.b, start.total, work)
            return self.cluster.stage(name, task, self.spec, request, *more, w=start.w), request

        answer: tuple[Reply, Round] = self.cluster.patiently(once)
        return answer

    # --- Newton's method, where d is small ----------------------------------------------------------------------------

    def _choose_method(self) -> None:
        """Turn to Newton's method where the rounds that are left would cost more."""
        spec, best = self.spec, self.best
        if len(self.trace) < 3 or not (Newton.suits(spec) and Newton.direct(spec)) or best is None:
            return
        left = work.rounds_left(self.trace, self.target)
        passes = self.whole_passes if self.windows is None else 1.0 / self.windows.count
        if work.newton_pays(self.summary, spec.partitions, passes, left):
            self.newton = NewtonSteps(self.cluster, spec, self._certify, best.w, best.b)
            self.phase = Newton.name

    def _one_newton_step(self, newton: NewtonSteps) -> Outcome | None:
        began = time.monotonic()
        certificate, sums = newton.step()
        self.round += 1
        self.seconds += time.monotonic() - began
        return self._record(newton.w, newton.b, certificate, sums)

    # --- one evaluation ---------------------------------------------------------------------------------------------

    def _evaluate(self, quietly: bool = False) -> Outcome | None:
        """Certify the last point; return how the run ends, or None when it goes on."""
        assert self.pending is not None
        began = time.monotonic()
        w, b, seq = self.pending
        certificate, b, sums = self._certify(w, b, seq)
        self.pending = None
        self.evaluation_seconds += time.monotonic() - began
        if self.best is not None and certificate.gap > _MUCH_WORSE * self.best.certificate.gap:
            self.mixing.give_up()
        if self.windows is not None:
            self.windows.heed(certificate.gap)
        outcome = self._record(w, b, certificate, sums, quietly)
        if self.windows is not None and self.windows.too_many(work.rounds_left(self.trace, self.target)):
            self.windows = None
        self.due = next_evaluation(self.trace, self.round, self.target, farthest=0.5)
        return outcome

    def _record(
        self, w: Array, b: float, certificate: Certificate, sums: ClusterSums, quietly: bool = False
    ) -> Outcome | None:
        """Enter an evaluation into the history and judge it."""
        entry = TraceEntry(
            self.round,
            self.visited,
            self.seconds,
            self.evaluation_seconds,
            certificate.primal,
            certificate.dual,
            certificate.gap,
            quantiles(sums.residuals),
            self.phase,
        )
        return self.enter(w, b, certificate, [entry], quietly)

    def _certify(self, w: Array, b: float, seq: int | None) -> tuple[Certificate, float, ClusterSums]:
        """Bound the gap at (w, b) with the α of a round, or with α̂; b is improved on the way."""
        answer: tuple[Certificate, float, ClusterSums] = self.cluster.patiently(lambda: self._certify_once(w, b, seq))
        return answer

    def _certify_once(self, w: Array, b: float, seq: int | None) -> tuple[Certificate, float, ClusterSums]:
        self.evaluations += 1
        sums = ClusterSums(self.cluster, self.spec, Point(self.evaluations, b, seq), w)
        sums.evaluate()
        # The gradient bound is asked for only where there is no other: it costs a stage and a vector from each partition.
        enough = math.inf if self._has_dual_bound else self.target
        certificate = bound_from_sums(
            self.spec,
            sums,
            w,
            sums.point.b,
            KnownWeights(sums.sums, sums.sums_error),
            np.empty(self.spec.d),
            enough=enough,
        )
        return certificate, sums.point.b, sums

    @property
    def _has_dual_bound(self) -> bool:
        loss = self.spec.loss
        return loss.convex and (loss.has("conjugate") or loss.has("fenchel_young"))

    def _evaluation_is_due(self) -> bool:
        if self.round >= self.max_rounds or time.monotonic() > self.deadline:
            return True
        if self.windows is None:
            return self.round >= self.due
        return self.windows.evaluation_is_due(self.target)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _interrupted(self) -> Outcome:
        """After Ctrl-C: evaluate what is there; a second Ctrl-C ends the run at once."""
        if self.pending is not None:
            ended = self._evaluate(quietly=True)
            if ended is not None and ended[0] is Status.CONVERGED:
                return ended
        if self.best is None:
            raise KeyboardInterrupt  # nothing to return yet
        return Status.INTERRUPTED, "Ctrl-C was pressed."

    def _finish(self, outcome: Outcome) -> DistributedResult:
        best = self.best
        assert best is not None
        certificate = best.certificate
        if self.spec.fit_intercept and self.spec.loss.convex and math.isfinite(certificate.distance_bound):
            bound = self.cluster.patiently(lambda: self._bound_intercept(best))
            certificate = replace(certificate, intercept_bound=bound)
        return self.result(outcome, certificate)

    def _bound_intercept(self, best: Best) -> float:
        self.evaluations += 1
        point = Point(self.evaluations, best.b, None)
        self.cluster.stage("margins", tasks.survey, self.spec, point, w=best.w)
        sums = ClusterSums(self.cluster, self.spec, point, best.w)
        radius, length = best.certificate.distance_bound, self.spec.nnz_per_row_max
        return bound_intercept(sums, best.b, radius, norm_of(best.w), length, self.spec.n)
