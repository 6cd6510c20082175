"""A part of the rows, and how far two coordinate epochs on it lead.

Far from the optimum exact derivatives are wasted, so Newton's method begins on a part of the rows (`newton.py`). The same part
says which method to begin with: where two epochs leave little of the gap, coordinate steps will do; where they leave much,
they would need many more (`auto.py`).
"""

from __future__ import annotations

import math

import numpy as np

from ..losses import Squared
from ..problem import Problem, conjugate_sum
from .prox_sdca import Permutations

# The part of the rows, the least number of them, the most entries.
_STRIDE, _LEAST, _ENTRIES = 8, 500, 1 << 20
_MOST_PER_WEIGHT = 1000
_PER_WEIGHT = 4  # rows for each weight, so that their optimum says something about that of all rows
_EPOCHS = 2


class Sample:
    """Rows of a problem, drawn evenly over all of them, after two epochs of coordinate steps."""

    def __init__(self, problem: Problem, rng: np.random.Generator, size: int) -> None:
        stride = problem.n // size
        chosen = np.arange(size) * stride + rng.integers(stride, size=size)
        self.problem = part = problem.subset(chosen)
        self.steps = Permutations(part, rng)
        self.steps.start(np.zeros(size), 0.0)
        for _ in range(_EPOCHS):
            self.steps.begin_epoch()
            self.steps.visit(size)
            self.steps.end_epoch()

    @property
    def gap(self) -> float:
        """About the gap that is left, Σ FY(z_i + b, α_i)/n relative to P(0), as w = w(α); infinite without a conjugate."""
        part, steps = self.problem, self.steps
        if not part.at_zero > 0.0:
            return 0.0  # nothing to gain
        if not part.loss.has("conjugate"):
            return math.inf
        conjugates = conjugate_sum(part.loss.compiled, part.y, part.sample_weight, steps.alpha)
        products = 0.5 * part.lam * float(steps.w @ steps.w) + steps.intercept * float(steps.alpha.mean())
        return (part.primal(steps.w, steps.intercept) + conjugates / part.n + products) / part.at_zero


def sample_size(problem: Problem) -> int:
    """How many rows to look at: an eighth, or as many as say enough about d weights; at least 500 where there are so many."""
    size = min(problem.n, max(_LEAST, min(problem.n // _STRIDE, _MOST_PER_WEIGHT * problem.d)))
    return max(1, min(size, _ENTRIES * problem.n // max(1, problem.nnz)))


def tells_weights(problem: Problem, size: int) -> bool:
    """Whether the optimum of so many rows is a point to begin from; for the squared loss one step is all it takes, anyway."""
    return _PER_WEIGHT * problem.d <= size < problem.n and size >= _LEAST and not isinstance(problem.loss, Squared)
