"""A single partition: the single-machine solver itself, on the worker, in slices.

There is nothing to communicate, so the partition runs `auto` with all its phases, as `dualfree.solve` would. The run is
kept in the part and goes on where it was when the next task comes. A slice ends after a while only so that the client
hears how far it is and can stop it; where it ends changes no bit of the answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._checks import Array
from .._threads import one_blas_thread
from ..certificate import Certificate
from ..problem import slopes_into
from ..solvers.auto import Auto
from ..solvers.driver import Run
from ..status import Status
from ..trace import TraceEntry
from .cluster import total_of
from .fit import Fit, Outcome
from .part import LocalProblem, Part
from .reply import Reply
from .result import DistributedResult
from .spec import Spec
from .tasks import bound_problem, reply_of

# Seconds. The first slice is short, so that somebody who watches sees something soon.
_FIRST_SLICE, _SLICE = 0.25, 2.0


@dataclass(frozen=True, slots=True)
class Slice:
    """What one slice of the run has to say.

    The point is the best one so far; `entries` are the evaluations that the client has not heard of.
    """

    b: float
    certificate: Certificate
    epoch: int
    entries: list[TraceEntry]
    outcome: tuple[Status, str] | None


@dataclass(frozen=True, slots=True)
class Request:
    """`known` evaluations have been heard of; `start` is where a run begins that is not there yet."""

    seconds: float
    last: bool
    known: int
    tol: float
    max_epochs: int
    start: tuple[Array, float] | None


def first_request(tol: float, max_rounds: int, deadline: float) -> Request:
    """Return the request of a fit that begins with nothing."""
    left = deadline - time.monotonic()
    return Request(min(_FIRST_SLICE, left), left <= 0, 0, tol, max_rounds, None)


def run_slice(part: Part, spec: Spec, request: Request) -> Reply:
    """Go on with the run, or begin it, for about so many seconds."""
    problem = bound_problem(part, spec)
    until = time.monotonic() + request.seconds
    with part.lock, one_blas_thread():
        run: Run | None = part.run
        begun_again = run is None and request.known > 0
        if run is None:
            run = part.run = _begin(problem, spec, request)
        while run.outcome is None and time.monotonic() < until and not request.last:
            run.step()
        ended = run.finish() if run.outcome is not None or request.last else None
        assert run.best is not None
        certificate = run.best.certificate if ended is None else ended.certificate
        entries = run.trace.entries if begun_again else run.trace.entries[request.known :]
        found = Slice(run.best.intercept, certificate, run.epoch, entries, run.outcome)
        return reply_of(part, found, run.best.w.copy(), rebuilt=begun_again)


def _begin(problem: LocalProblem, spec: Spec, request: Request) -> Run:
    solver = Auto(problem, np.random.default_rng(spec.seed))
    run = Run(
        problem,
        solver,
        tol=request.tol,
        max_epochs=request.max_epochs,
        max_time=None,
        callback=None,
        evaluate_every=None,
    )
    alpha, b = np.zeros(problem.n), 0.0
    if request.start is not None:
        w, b = request.start
        alpha = problem.margins(w)
        slopes_into(problem.loss.compiled, alpha, b, problem.y, problem.sample_weight, alpha)
        np.negative(alpha, out=alpha)
    run.begin(alpha, b)
    return run


class OnePartition(Fit):
    """A fit with one partition. Where its first slice has been run already, as part of the first request, it comes along."""

    def go(self, first: Reply | None = None) -> DistributedResult:
        """Run until something says stop."""
        saved = self.saved() if first is None else None
        self.begun_at = None if saved is None else (saved.w, saved.b)
        self.known, self.before = 0, self.round
        outcome: Outcome | None = None
        try:
            if first is not None:
                outcome = self._hear(first)
            seconds = _FIRST_SLICE if first is None else _SLICE
            while outcome is None:
                left = self.deadline - time.monotonic()
                outcome = self._slice(min(seconds, left), last=left <= 0)
                if left <= 0 and outcome is None:
                    outcome = Status.MAX_TIME, ""
                seconds = _SLICE
        except KeyboardInterrupt:
            if self.best is None:
                raise  # nothing to return yet
            outcome = self._slice(0.0, last=True) or (Status.INTERRUPTED, "Ctrl-C was pressed.")
        assert self.best is not None
        return self.result(outcome, self.best.certificate)

    def _slice(self, seconds: float, *, last: bool) -> Outcome | None:
        begun_at = self.begun_at if self.best is None else (self.best.w, self.best.b)
        request = Request(seconds, last, self.known, self.tol, self.max_rounds - self.before, begun_at)
        reply = self.cluster.patiently(partial(self.cluster.stage, "solve", run_slice, self.spec, request))
        return self._hear(reply, quietly=last)

    def _hear(self, reply: Reply, quietly: bool = False) -> Outcome | None:
        found: Slice = reply.terms[0]
        if reply.rebuilt:  # the worker was lost, and with it the run; it began again at the best point
            self.known, self.before = 0, self.round
        self.known += len(found.entries)
        self.round = self.before + found.epoch
        entries = [replace(entry, epoch=self.before + entry.epoch) for entry in found.entries]
        asked = self.enter(total_of(reply), found.b, found.certificate, entries, quietly=quietly)
        return found.outcome or asked
