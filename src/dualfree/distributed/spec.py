"""What every task of a fit has to know; small, it travels with each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._checks import Array
from ..losses import Loss


@dataclass(frozen=True, slots=True)
class Spec:
    """The problem that all partitions share, and the numbers that depend on all of them.

    `extra` is β² of the intercept's constant column (see `solvers.base`), less by K², the square of the number of partitions,
    than on one machine: a partition sees only its own part of Σ α, and a large β² keeps it from moving that against the others
    do. On two sets with 8 partitions, K² instead of K saved a third of the rounds. `positive` is the label that becomes +1.
    """

    loss: Loss
    lam: float
    fit_intercept: bool
    n: int
    d: int
    partitions: int
    extra: float
    seed: int
    nnz_per_row_max: int
    mean_norm_squared: float
    at_zero: float
    intercept_at_zero: float
    positive: Any = None
    classes: Array | None = None

    @property
    def scale(self) -> float:
        """1/(λn)."""
        return 1.0 / (self.lam * self.n)
