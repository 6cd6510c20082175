"""X Δ, of a direction Δ that conjugate gradients find, without a pass over the rows of its own.

Each product with the Hessian multiplies all rows with a search direction p on its way, and Δ = Σ length · p. So X Δ is the sum
of what these products saw, a vector operation each: where a step takes two or three products, the pass saved is a seventh of
its time. Where it takes many, a pass is cheaper.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Array
from .._jit import kernel
from ..losses import Logistic
from ..rows import Kind
from ..team import Team, own_rows
from .hessian import hessian_product

_MOST = 6  # products, whose vector operations take as long as a pass


class MarginsOnTheWay:
    """Adds X Δ up, while conjugate gradients find Δ."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.made = 0
        problem = team.problem
        # Rows whose entries are all 1 are multiplied too quickly to gain by it; of dense ones, truncated steps are rare. And
        # where the loss has flat parts, a product leaves out most rows.
        pays = problem.kind is Kind.VALUES and isinstance(problem.loss, Logistic)
        self.total, self.seen = np.empty((2, problem.n if pays else 0))

    @property
    def is_known(self) -> bool:
        """Whether `total` is X Δ, of the products made."""
        return 0 < self.made <= _MOST and self.total.size > 0

    def product(self, curvatures: Array, vector: Array) -> Array:
        """Return the Hessian times a vector."""
        self.made += 1
        return hessian_product(self.team, curvatures, vector, self.seen if self.is_known else None)

    def went(self, length: float) -> None:
        """Hear how far the step along the last vector went."""
        if self.is_known:
            self.team.run(_add, self.seen, length, self.made == 1, self.total)


@kernel
def _add(own: int, cuts: Any, seen: Any, length: float, first: bool, total: Any) -> None:
    mine = own_rows(own, cuts)
    seen, total = seen[mine], total[mine]
    if first:
        for i in range(total.size):
            total[i] = length * seen[i]
    else:
        for i in range(total.size):
            total[i] += length * seen[i]
