"""How exactly the system of a truncated Newton step is solved.

As a rule until the energy of the residual is a part of the first one that shrinks with it, or the residual is as small as tol
needs it. With the logistic loss and the diagonal as preconditioner more can be said:

- Far from the optimum less will do. A step in a hurry ends when a product gains little (Nash and Sofer's test); not when the
  last one gained more than the one before it, which was then made in vain.
- Newton's method converges quadratically: the gap after a step is about a multiple of the square of its gain, and the step
  before says which. A step that may be the last one is solved as exactly as tol needs it, in one go: the next step would begin
  the same system anew.

With flat parts of the loss, steps in a hurry meet other rows.

Where the preconditioner is another step's Hessian, or that of a part of the rows, the products of a step tell what a last one,
as exact as tol needs it, would cost. If that is more than a Hessian, one will be formed sooner or later, so better now.
"""

from __future__ import annotations

import math

from ..losses import Logistic
from ..problem import Problem
from .line_search import TINY
from .linear_cg import LinearCg

_FAIR = 0.01  # of the first energy
# A product that gains less than this part of the mean gain of its step is the last one in a hurry, after no fewer than this
# part of the products of the step before, and two.
_LITTLE, _FEWER, _FEWEST = 0.3, 0.5, 2
# By what the square of a step's gain is multiplied to foretell the gap after it, in 1/P(0), at least.
_LEAST_BEND = 20.0
_UNSOLVED = 0.5  # of the gap wanted: what the residual may be answerable for
_DIGITS = 1e-15  # of P(0), that there are


def gap_within_digits(problem: Problem, target: float) -> float:
    """The gap wanted; or, where that is less, about the least that can be told. Never zero, even where P(0) is not positive."""
    return max(target, _DIGITS * abs(problem.at_zero), TINY)


class Exactness:
    """When to stop conjugate gradients, step after step."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.largest = 0.0  # energy that a step began with
        self.made = 0  # products of the step
        self.hurries = True
        self.rate = math.inf  # what a product took from the logarithm of the energy, in the step before
        self.square = 0.0  # of the residual, divided by its energy, where that step ended
        self.last_gain = math.inf
        self.target = 0.0
        self.least_bend = _LEAST_BEND / max(problem.at_zero, TINY)
        self.bend = self.least_bend  # the gap after a step, in squares of its gain

    def begin(self, energy: float, target: float, diagonal: bool) -> None:
        """Begin a step: the energy of its residual, the gap wanted, and whether the preconditioner is the diagonal."""
        self.target = target
        self.first, self.largest = energy, max(self.largest, energy)
        self.enough = energy * min(0.1, math.sqrt(energy / self.largest)) ** 2 if energy > 0 else 0.0
        self.foresees = diagonal and isinstance(self.problem.loss, Logistic)
        self.made_before, self.made = self.made, 0
        self.may_be_last = self.gains_little = False

    def next_is_last(self, gap: float | None) -> bool:
        """Whether the next step, which gains no more than the gap, is foretold to leave no more than is wanted."""
        return gap is not None and self.bend * gap * gap <= gap_within_digits(self.problem, self.target)

    def count(self, solution: LinearCg) -> None:
        """Count a product, and judge the step by what it has gained."""
        self.made += 1
        if self.foresees:
            wanted = gap_within_digits(self.problem, self.target)
            self.may_be_last = self.bend * solution.gained * solution.gained <= wanted
            enough = self.made >= max(_FEWEST, _FEWER * self.made_before)
            self.gains_little = enough and self.made * solution.gain <= _LITTLE * solution.gained

    def is_reached(self, solution: LinearCg) -> bool:
        """Whether the step may be made."""
        if self.hurries and self.gains_little and not self.may_be_last:
            return True
        least = 0.0 if self.may_be_last and self.target > 0.0 else self.enough
        return not solution.energy > least or self._tol_is_met(solution)

    def end(self, solution: LinearCg) -> None:
        """Remember how quick the products of a step were."""
        if self.first > solution.energy > 0.0:
            self.rate = math.log(self.first / solution.energy) / self.made
            self.square = float(solution.residual @ solution.residual) / solution.energy

    def forget(self) -> None:
        """Another preconditioner has another rate."""
        self.rate = math.inf

    def products_to_tol(self) -> float:
        """About how many products a step needs to be the last one, at the rate of the step before; 0 if nobody knows."""
        if not (self.rate < math.inf and self.first > 0.0 and self.square > 0.0):
            return 0.0
        enough = math.log(gap_within_digits(self.problem, self.target)) + math.log(2.0 * _UNSOLVED * self.problem.lam)
        return max(0.0, math.log(self.first) + math.log(self.square) - enough) / self.rate

    def is_fair(self, solution: LinearCg) -> bool:
        """Whether a step that had to end before is as good as others."""
        return self.is_reached(solution) or not solution.energy > self.enough

    def _tol_is_met(self, solution: LinearCg) -> bool:
        if solution.energy > _FAIR * self.first:
            return False
        left = float(solution.residual @ solution.residual) / (2.0 * self.problem.lam)
        return left <= _UNSOLVED * self.target

    def learn(self, gain: float, gap: float, length: float) -> None:
        """Take what a step was to gain, and the gap that it left, but for what is due to the residual of its system.

        A step of another length than 1 has a gap that says nothing of others.
        """
        square = gain * gain
        if 0.0 < square < math.inf:  # not the way to the point to begin from
            self.hurries = self.hurries and gain < self.last_gain
            self.last_gain = gain
            if length == 1.0:
                self.bend = max(gap / square, self.least_bend)
