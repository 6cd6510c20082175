"""A trial of truncated Newton steps where d is large: they may take a fifth of the coordinate steps' time, or five times it.

How many products with the Hessian a step needs depends on its spectrum, which nobody knows before. So the steps may spend a
part of what the coordinate steps cost. After that they go on only while the rest, at the rate of the last step, costs less than
the coordinate steps would, or less than what was spent. A trial that fails gives way, and the coordinate steps go on from where
they were; should they turn out to need more than was foreseen, so does the trial.
"""

from __future__ import annotations

import math

from ..losses import Logistic
from ..problem import Problem
from .base import Solver
from .hessian import product_cost
from .newton import CG_STEPS, Newton

# What may be spent, of what the coordinate steps cost: before the rate of the last step counts, and in all. With the logistic
# loss, whose curvature is never gone, steps get better and better.
_STAKE, _LOGISTIC_STAKE = (0.1, 1.0), (0.3, 2.0)
_FAR_AHEAD = 1e-4  # of the gap that the other method had reached
_FEWEST = 12  # products, below which a trial says nothing


class Trial:
    """Newton steps that have to prove themselves. Costs are counted in passes, each about as dear as a product."""

    def __init__(self, newton: Newton, target: float) -> None:
        self.newton, self.target = newton, target
        self.stake, self.most = _stakes(newton.problem)
        self.spent = 0.0
        self.decrement = self.gap = self.above = math.inf

    @staticmethod
    def is_cheap(problem: Problem, others: float, spent: float) -> bool:
        """Whether it can pay; with fewer rows than columns, coordinate steps do well."""
        return problem.n > problem.d and Trial.can_pay(problem, others, spent)

    @staticmethod
    def can_pay(problem: Problem, others: float, spent: float) -> bool:
        """Whether the stake is enough for a step."""
        stake, _ = _stakes(problem)
        return stake * others / product_cost(problem) > spent + _FEWEST

    def begin(self, before: Solver, passes: float, others: float, gap: float = 0.0) -> None:
        """Make steps instead of those of another method, which has reached a gap and would cost `others` nanoseconds in all."""
        self.before, self.others, self.gap_before = before, others / product_cost(self.newton.problem), gap
        self.last = passes
        self._limit_step()

    def still_pays(self, passes: float) -> bool:
        """Judge the last step by its decrement, which is about what P was above its minimum before it.

        The gap says what the last step itself has gained, as far as it follows; the decrements say that of the one before. With
        losses that have flat parts it may be far behind, and the way that is left is that of both. The first step of all has no
        rate; it may spend what there is.
        """
        before, now, step = self.decrement, self.newton.decrement, passes - self.last
        gap = math.inf if self.newton.gap_estimate is None else self.newton.gap_estimate
        gap_before, self.gap = self.gap, min(self.gap, gap)  # it goes up and down with what conjugate gradients leave
        if isinstance(self.newton.problem.loss, Logistic):
            above = min(gap, now)
            rate = max(_rate(before, now, step), _rate(self.above, above, step))
        else:
            above, rate = max(self.gap, now), max(_rate(before, now, step), _rate(gap_before, self.gap, step))
        to_gain = math.log(max(above, self.target) / self.target)
        rest = to_gain / rate if rate > 0.0 else math.inf
        if before == math.inf:
            rest = 0.0
        self.above = above
        self.decrement, self.last = now, passes
        self.spent += step
        # what was foreseen may be wrong: a rest that is less than what was spent is worth its price; or less than twice that,
        # where the other method is so far behind that its rate can hardly be known
        worth = self.spent * (1.0 if above > _FAR_AHEAD * self.gap_before else 2.0)
        cheap = rest <= max(self.most * self.others - self.spent, worth) or self.spent <= self.stake * self.others
        self._limit_step()
        return cheap or gap <= self.target

    def _limit_step(self) -> None:
        left = max(self.stake * self.others, self.most * self.others - self.spent, self.spent)
        self.newton.most_products = int(min(left, CG_STEPS))


def _rate(before: float, after: float, passes: float) -> float:
    """By how much the logarithm falls in a pass; 0 where it does not, or nothing is known."""
    return math.log(before / after) / passes if 0.0 < after < before < math.inf else 0.0


def _stakes(problem: Problem) -> tuple[float, float]:
    return _LOGISTIC_STAKE if isinstance(problem.loss, Logistic) else _STAKE
