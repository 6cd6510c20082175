"""A part of the rows, and how far two coordinate epochs on it lead.

That says which method to begin with: where two epochs leave little of the gap, coordinate steps will do; where they leave much,
they would need many more (`auto.py`). Far from the optimum exact derivatives are wasted, so Newton's method begins from the
weights reached here, and on a part of the rows (`newton.py`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import kernel
from ..losses import Logistic, Squared, SquaredHinge
from ..losses.calls import loss_fenchel_young
from ..problem import Problem
from .base import RandomNumbers
from .prox_sdca import Permutations

# The part of the rows, the least number of them, the most entries.
_STRIDE, _LEAST, _ENTRIES = 8, 500, 1 << 20
_MOST_PER_WEIGHT = 1000
# Rows for each weight, so that their optimum says something about that of all rows. More where steps on all rows are cheap, and
# with the logistic loss: the margins of a fit that knows its rows by heart are too large for others.
_PER_WEIGHT, _PER_WEIGHT_IF_CHEAP = 4, 10
_EPOCHS = 2
# A class is rare that has less than this part of the rows. This part of a draw is taken from it besides its share: were rows to
# say as much in either class, that would cost a quarter of what the draw says.
_RARE, _TO_RARE = 0.25, 0.2


class Sample:
    """Rows of a problem, drawn evenly over all of them, after two epochs of coordinate steps."""

    def __init__(self, problem: Problem, rng: np.random.Generator, size: int) -> None:
        self.chosen = drawn_evenly(problem.n, size, rng)
        self.steps = _StepsOnSome(problem, rng, self.chosen)
        self.steps.begins_at_zero = True
        self.steps.start(np.zeros(problem.n), 0.0)
        for _ in range(_EPOCHS):
            self.steps.begin_epoch()
            self.steps.visit(size)
            self.steps.end_epoch()

    @property
    def gap(self) -> float:
        """About the gap that is left, Σ FY(z_i + b, α_i)/n relative to P(0), as w = w(α); infinite without a conjugate."""
        problem, steps = self.steps.problem, self.steps
        if not problem.at_zero > 0.0:
            return 0.0  # nothing to gain
        if not problem.loss.has("conjugate"):
            return math.inf
        rows, loss, y, s = steps.data[:4]
        total = _fenchel_young_of(rows, loss, y, s, self.chosen, steps.alpha, steps.w, steps.intercept)
        return float(total) / self.chosen.size / problem.at_zero


class _StepsOnSome(Permutations):
    """Coordinate steps of the problem on some rows, without a copy of them: α of the others stays zero."""

    def __init__(self, problem: Problem, rng: RandomNumbers, chosen: Array) -> None:
        super().__init__(problem, rng)
        self.visit_only(chosen)
        self.scale = 1.0 / (problem.lam * chosen.size)


@kernel
def _fenchel_young_of(rows: Any, loss: Any, y: Any, s: Any, chosen: Any, alpha: Any, w: Any, b: float) -> float:
    """Σ s_i FY(x_i·w + b, α_i/s_i) over the rows chosen."""
    total = 0.0
    for i in chosen:
        if s[i] > 0.0:
            total += s[i] * loss_fenchel_young(loss, _rows.row_dot(rows, i, w) + b, y[i], alpha[i] / s[i])[0]
    return total


def drawn_evenly(n: int, size: int, rng: np.random.Generator) -> Array:
    """Rows, one at random out of each of `size` groups of consecutive ones."""
    ends = np.arange(size + 1) * n // size
    # `rng.integers` takes thrice as long; a product with a number below 1 is below the other factor, rounded or not
    return ends[:-1] + (rng.random(size) * np.diff(ends)).astype(np.int64)


def part_of(problem: Problem, size: int, rng: np.random.Generator) -> Problem:
    """The problem on so many of its rows; of a rare class more are drawn than is its share, and each of them counts for less.

    Rows of a rare class say most about the weights, where these can tell it from the other, and an even draw would hold hardly
    any. Where they cannot, rows say as much in either class, so most of the draw stays even.
    """
    rare = _rare_class(problem)
    if rare is None:
        return problem.subset(drawn_evenly(problem.n, size, rng))
    others = drawn_evenly(problem.n, math.ceil((1.0 - _TO_RARE) * size), rng)
    others = others[~rare[others]]
    rows = np.flatnonzero(rare)
    drawn = rows[drawn_evenly(rows.size, min(rows.size, size - others.size), rng)]
    chosen = np.sort(np.concatenate((others, drawn)), kind="stable")  # which merges two parts that are in order
    part = problem.subset(chosen)
    each = rows.size / drawn.size, (problem.n - rows.size) / others.size
    part.sample_weight = part.sample_weight * np.where(rare[chosen], *each) * (part.n / problem.n)
    part.unit_weights = False
    return part


def _rare_class(problem: Problem) -> Array | None:
    """Which rows are of a class that is rare; None where there is none."""
    if problem.loss.task != "classification":
        return None
    positive = problem.y > 0.0
    count = int(np.count_nonzero(positive))
    if not 0 < min(count, problem.n - count) < _RARE * problem.n:
        return None
    return positive if 2 * count < problem.n else ~positive


def curved_at_zero(problem: Problem) -> bool:
    """Whether the loss is known to be curved at w = 0 for every row, so that Newton's method may begin there."""
    return isinstance(problem.loss, (Logistic, Squared, SquaredHinge))


def look_size(problem: Problem) -> int:
    """How many rows to look at: half as many as to begin with."""
    return max(1, min(problem.n, max(_LEAST, sample_size(problem) // 2)))


def sample_size(problem: Problem) -> int:
    """How many rows to begin with: an eighth, or as many as say enough about d weights; at least 500 if there are so many."""
    size = min(problem.n, max(_LEAST, min(problem.n // _STRIDE, _MOST_PER_WEIGHT * problem.d)))
    return max(1, min(size, _ENTRIES * problem.n // max(1, problem.nnz)))


def tells_weights(problem: Problem, size: int, steps_are_cheap: bool = False) -> bool:
    """Whether the optimum of so many rows is a point to begin from; for the squared loss one step is all it takes, anyway."""
    per_weight = _PER_WEIGHT_IF_CHEAP if steps_are_cheap and isinstance(problem.loss, Logistic) else _PER_WEIGHT
    return max(_LEAST, per_weight * problem.d) <= size <= problem.n // 2 and not isinstance(problem.loss, Squared)
