"""The optimal value of a cell, from our own certificate, and how far a point is from it."""

from __future__ import annotations

from dataclasses import dataclass

from threadpoolctl import threadpool_limits

import dualfree as df

from .peers import Answer, Task

_TOL = 1e-12
_MAX_TIME = 120.0
TRUSTED_GAP = 1e-10  # a reference with a larger certified gap is reported
# A level is judged only where the computed gap of the reference is this many times smaller.
_FINER = 10.0


@dataclass(frozen=True)
class Reference:
    """P* and P(0), and how well P* is known, relative to P(0) − P* as the levels are.

    `gap` is certified: the computed gap plus all that rounding could hide. On raw, badly scaled data that allowance can
    be far larger than the error that there is, so `optimum` is the computed lower bound on P*, without it, and `computed`
    is the gap without it. Where `gap` is small the two agree.
    """

    problem: df.Problem
    optimum: float
    at_zero: float
    gap: float
    computed: float

    def suboptimality(self, answer: Answer) -> float:
        """Return (P(w, b) − P*) / (P(0) − P*)."""
        return (self.problem.primal(answer.w, answer.intercept) - self.optimum) / (self.at_zero - self.optimum)

    def can_judge(self, level: float) -> bool:
        """Whether P* is known closely enough to say that a point has reached the level."""
        return self.computed * _FINER <= level


def reference_for(task: Task) -> Reference:
    """Solve the task to a certified gap of 1e-12, or as far as floating point or two minutes allow."""
    problem = df.Problem(task.X, task.y, loss=task.loss, lam=task.lam, fit_intercept=task.fit_intercept)
    with threadpool_limits(task.threads):
        found = df.solve(problem, tol=_TOL, max_epochs=100_000, max_time=_MAX_TIME, random_state=0).certificate
    computed = max(0.0, found.gap - found.rounding)
    optimum = found.primal - computed
    scale = problem.at_zero - optimum
    return Reference(problem, optimum, problem.at_zero, found.gap / scale, computed / scale)
