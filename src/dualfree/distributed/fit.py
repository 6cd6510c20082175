"""What every distributed fit does with an evaluation: keep the best point, write the history, decide whether to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._checks import Array
from ..certificate import Certificate
from ..solvers.driver import message_of
from ..solvers.schedule import stalled
from ..status import Status
from ..trace import Trace, TraceEntry
from .checkpoint import Checkpoint, Saved
from .cluster import Cluster
from .progress import ProgressLine
from .result import DistributedResult
from .spec import Spec

Outcome = tuple[Status, str]


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

    Examples
    --------
    >>> from dualfree.distributed import RoundState
    >>> def enough(state: RoundState) -> bool:
    ...     return state.certificate.relative_gap < 1e-3
    """

    epoch: int
    passes: float
    seconds: float
    certificate: Certificate
    w: Array
    intercept: float
    trace: Trace


@dataclass(frozen=True, slots=True)
class Best:
    """The best point so far."""

    w: Array
    b: float
    certificate: Certificate


class Fit:
    """The part of a fit that does not depend on how it is solved."""

    def __init__(
        self,
        cluster: Cluster,
        spec: Spec,
        *,
        tol: float,
        max_rounds: int,
        deadline: float,
        callback: Callable[[RoundState], Any] | None,
        checkpoint: Checkpoint | None,
        progress: ProgressLine,
    ) -> None:
        self.cluster, self.spec, self.tol = cluster, spec, tol
        self.target = tol * spec.at_zero
        self.max_rounds, self.deadline = max_rounds, deadline
        self.callback, self.checkpoint, self.progress = callback, checkpoint, progress
        self.round, self.passes = 0, 1.0
        self.trace = Trace()
        self.best: Best | None = None

    def saved(self) -> Saved | None:
        """Return the point of a checkpoint, if there is one; its rounds do not count against `max_rounds`."""
        found = None if self.checkpoint is None else self.checkpoint.load()
        if found is not None:
            self.round = found.round
            self.max_rounds += found.round
        return found

    def enter(
        self, w: Array, b: float, certificate: Certificate, entries: list[TraceEntry], quietly: bool = False
    ) -> Outcome | None:
        """Take an evaluation into the history; return how the fit ends, or None when it goes on."""
        for entry in entries:
            self.trace.append(entry)
        if self.best is None or certificate.gap <= self.best.certificate.gap:
            self.best = Best(w, b, certificate)
            if self.checkpoint is not None:
                self.checkpoint.save(Saved(w, b, self.round))
        last = self.trace[-1]
        workers = len(set(self.cluster.places))
        self.progress.update(self.round, last.seconds + last.evaluation_seconds, certificate, workers)
        outcome: Outcome | None = None
        if certificate.gap <= self.target:
            outcome = Status.CONVERGED, ""
        elif stalled(certificate, self.trace, self.round):
            outcome = Status.STALLED, ""
        if self.callback is not None and not quietly:
            state = RoundState(self.round, last.passes, last.seconds, certificate, w, b, self.trace)
            if self.callback(state) and outcome is None:
                outcome = Status.INTERRUPTED, "The callback asked to stop."
        return outcome

    def save(self) -> None:
        """Write the best point to the checkpoint, now."""
        if self.checkpoint is not None and self.best is not None:
            self.checkpoint.save(Saved(self.best.w, self.best.b, self.round), at_once=True)

    def result(self, outcome: Outcome, certificate: Certificate) -> DistributedResult:
        """Put the result together."""
        best = self.best
        assert best is not None
        self.save()
        return DistributedResult(
            w=best.w,
            intercept=best.b,
            certificate=certificate,
            status=outcome[0],
            message=message_of(*outcome, certificate),
            n_rounds=self.round,
            trace=self.trace,
            classes=self.spec.classes,
            n_rows=self.spec.n,
            n_partitions=self.spec.partitions,
            bytes_moved=self.cluster.bytes_moved,
            local_passes=self.passes,
        )
