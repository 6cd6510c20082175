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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._checks import Array
from ..certificate import Certificate, bound_from_sums, bound_intercept, norm_of
from ..solvers.driver import message_of
from ..solvers.schedule import next_evaluation, stalled
from ..status import Status
from ..trace import Trace, TraceEntry
from . import tasks
from .anderson import Anderson, Output, Start
from .checkpoint import Checkpoint, Saved
from .cluster import Cluster, total_of
from .cluster_sums import ClusterSums
from .progress import ProgressLine
from .residual_histogram import quantiles
from .result import DistributedResult
from .spec import Spec
from .tasks import Point, Round

_LOST = ((-1, 1.0),)  # a recipe that no worker can follow: α is rebuilt from w


@dataclass(frozen=True, slots=True)
class RoundState:
    """What a callback sees after each evaluation.

    Attributes
    ----------
    epoch : int
        Rounds run.
    passes : float
        Passes over all rows.
    seconds : float
        Time spent in rounds, without evaluations.
    certificate : Certificate
        Of this point.
    w, intercept
        The point evaluated.
    trace : Trace
        The history so far.
    """

    epoch: int
    passes: float
    seconds: float
    certificate: Certificate
    w: Array
    intercept: float
    trace: Trace


@dataclass(frozen=True, slots=True)
class _Best:
    w: Array
    b: float
    certificate: Certificate


class Rounds:
    """One distributed solve with at least two partitions."""

    def __init__(
        self,
        cluster: Cluster,
        spec: Spec,
        *,
        tol: float,
        max_rounds: int,
        deadline: float,
        passes: int,
        depth: int,
        callback: Callable[[RoundState], Any] | None,
        checkpoint: Checkpoint | None,
        progress: ProgressLine,
    ) -> None:
        self.cluster, self.spec = cluster, spec
        self.target = tol * spec.at_zero
        self.max_rounds, self.deadline, self.passes = max_rounds, deadline, passes
        self.callback, self.checkpoint, self.progress = callback, checkpoint, progress
        self.mixing = Anderson(depth)
        self.round = self.seq = self.evaluations = 0
        self.seconds = self.evaluation_seconds = 0.0
        self.trace = Trace()
        self.best: _Best | None = None
        self.pending: tuple[Array, float, int | None] | None = None  # a point that has not been evaluated yet

    def go(self, b: float) -> DistributedResult:
        """Run until something says stop."""
        outcome: tuple[Status, str] | None = None
        try:
            self._begin(b)
            outcome = self._evaluate()
            due = self._next_due()
            while outcome is None:
                if self.round >= self.max_rounds:
                    outcome = Status.MAX_EPOCHS, ""
                elif time.monotonic() > self.deadline:
                    outcome = Status.MAX_TIME, ""
                else:
                    self._one_round()
                    if self.round >= due or self.round >= self.max_rounds or time.monotonic() > self.deadline:
                        outcome = self._evaluate()
                        due = self._next_due()
        except KeyboardInterrupt:
            outcome = self._interrupted()
        return self._finish(*outcome)

    # --- one round --------------------------------------------------------------------------------------------------

    def _begin(self, b: float) -> None:
        saved = None if self.checkpoint is None else self.checkpoint.load()
        if saved is None:
            self.start = Start((), np.zeros(self.spec.d), b, 0.0)
        else:
            self.start = Start(_LOST, saved.w, saved.b, 0.0)
            self.round = saved.round
            self.max_rounds += saved.round
        self._restore()

    def _restore(self) -> None:
        """Make α and w agree: w = w(α), with α rebuilt from w where it was lost."""
        reply, request = self._ask("rebuild", tasks.restore)
        w, total = total_of(reply) * self.spec.scale, math.fsum(reply.terms)
        self.start = Start(((request.seq, 1.0),), w, self.start.b, total)
        self.mixing.restart()
        self.pending = w, self.start.b, request.seq

    def _one_round(self) -> None:
        began = time.monotonic()
        reply, request = self._ask("round", tasks.advance)
        if reply.rebuilt:
            self._restore()
        else:
            w, total = total_of(reply) * self.spec.scale, math.fsum(reply.terms)
            step_b = self.spec.extra * self.spec.scale * total  # the multiplier step of the intercept
            b = self.start.b + step_b
            change = w - self.start.w
            if self.spec.fit_intercept:
                change = np.append(change, step_b / math.sqrt(self.spec.extra))
            self.pending = w, b, request.seq
            self.start = self.mixing.next_start(Output(request.seq, w, b, total, change))
            self.round += 1
        self.seconds += time.monotonic() - began

    def _ask(self, name: str, task: Callable[..., Any]) -> tuple[Any, Round]:
        def once() -> tuple[Any, Round]:
            self.seq += 1  # a new name for each attempt: a task that was given up may still write under the old one
            start = self.start
            request = Round(self.seq, self.round, start.recipe, self.mixing.wanted, start.b, start.total, self.passes)
            return self.cluster.stage(name, task, self.spec, request, w=start.w), request

        answer: tuple[Any, Round] = self.cluster.patiently(once)
        return answer

    # --- one evaluation ---------------------------------------------------------------------------------------------

    def _evaluate(self, quietly: bool = False) -> tuple[Status, str] | None:
        """Certify the last point; return how the run ends, or None when it goes on."""
        assert self.pending is not None
        began = time.monotonic()
        w, b, seq = self.pending
        certificate, b, sums = self.cluster.patiently(lambda: self._certify(w, b, seq))
        self.pending = None
        self.evaluation_seconds += time.monotonic() - began
        passes = float(self.round * self.passes)
        self.trace.append(
            TraceEntry(
                self.round,
                passes,
                self.seconds,
                self.evaluation_seconds,
                certificate.primal,
                certificate.dual,
                certificate.gap,
                quantiles(sums.residuals),
                "cocoa+",
            )
        )
        if self.best is None or certificate.gap < self.best.certificate.gap:
            self.best = _Best(w, b, certificate)
            if self.checkpoint is not None:
                self.checkpoint.save(Saved(w, b, self.round))
        workers = len(set(self.cluster.places))
        self.progress.update(self.round, self.seconds + self.evaluation_seconds, certificate, workers)
        outcome: tuple[Status, str] | None = None
        if certificate.gap <= self.target:
            outcome = Status.CONVERGED, ""
        elif stalled(certificate, self.trace, self.round):
            outcome = Status.STALLED, ""
        if self.callback is not None and not quietly:
            state = RoundState(self.round, passes, self.seconds, certificate, w, b, self.trace)
            if self.callback(state) and outcome is None:
                outcome = Status.INTERRUPTED, "The callback asked to stop."
        return outcome

    def _certify(self, w: Array, b: float, seq: int | None) -> tuple[Certificate, float, ClusterSums]:
        self.evaluations += 1
        sums = ClusterSums(self.cluster, self.spec, Point(self.evaluations, b, seq), w)
        sums.evaluate()
        # The gradient bound is asked for only where there is no other: it costs a stage and a vector from each partition.
        enough = math.inf if self._has_dual_bound else self.target
        certificate = bound_from_sums(
            self.spec, sums, w, sums.point.b, sums.sums, sums.sums_error, np.empty(self.spec.d), enough=enough
        )
        return certificate, sums.point.b, sums

    @property
    def _has_dual_bound(self) -> bool:
        loss = self.spec.loss
        return loss.convex and (loss.has("conjugate") or loss.has("fenchel_young"))

    def _next_due(self) -> int:
        return next_evaluation(self.trace, self.round, self.target)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _interrupted(self) -> tuple[Status, str]:
        """After Ctrl-C: evaluate what is there; a second Ctrl-C ends the run at once."""
        if self.pending is not None:
            ended = self._evaluate(quietly=True)
            if ended is not None and ended[0] is Status.CONVERGED:
                return ended
        if self.best is None:
            raise KeyboardInterrupt  # nothing to return yet
        return Status.INTERRUPTED, "Ctrl-C was pressed."

    def _finish(self, status: Status, note: str) -> DistributedResult:
        best = self.best
        assert best is not None
        certificate = best.certificate
        if self.checkpoint is not None:
            self.checkpoint.save(Saved(best.w, best.b, self.round), at_once=True)
        if self.spec.fit_intercept and self.spec.loss.convex and math.isfinite(certificate.distance_bound):
            bound = self.cluster.patiently(lambda: self._bound_intercept(best))
            certificate = replace(certificate, intercept_bound=bound)
        self.progress.close()
        return DistributedResult(
            w=best.w,
            intercept=best.b,
            certificate=certificate,
            status=status,
            message=message_of(status, note, certificate),
            n_rounds=self.round,
            trace=self.trace,
            classes=self.spec.classes,
            n_rows=self.spec.n,
            n_partitions=len(self.cluster.parts),
            bytes_moved=self.cluster.bytes_moved,
        )

    def _bound_intercept(self, best: _Best) -> float:
        self.evaluations += 1
        point = Point(self.evaluations, best.b, None)
        self.cluster.stage("margins", tasks.survey, self.spec, point, w=best.w)
        sums = ClusterSums(self.cluster, self.spec, point, best.w)
        radius, length = best.certificate.distance_bound, self.spec.nnz_per_row_max
        return bound_intercept(sums, best.b, radius, norm_of(best.w), length, self.spec.n)
