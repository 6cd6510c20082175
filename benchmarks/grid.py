"""The cells of the benchmark: which problems are solved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEVELS = (1e-3, 1e-6, 1e-9)
LOSSES = {"binary": ("logistic", "squared_hinge"), "regression": ("squared",)}
LAM_NS = (10.0, 1.0, 0.1, 0.01)
FEW_LAM_NS = (1.0, 0.01)  # with an intercept, and for the quick run
KEY = ("data", "dtype", "loss", "lam_n", "intercept", "threads")


@dataclass(frozen=True)
class Cell:
    """One problem, and how it is to be solved; the fields are `KEY`."""

    data: str
    dtype: str
    loss: str
    lam_n: float
    intercept: bool
    threads: int

    def __str__(self) -> str:
        extras = ["float32"] * (self.dtype == "float32") + ["intercept"] * self.intercept
        extras += [f"{self.threads} threads"] * (self.threads > 1)
        return " ".join([self.data, self.loss, f"λn={self.lam_n:g}", *extras])


def cells_of(
    data: str, task: str, losses: Sequence[str], lam_ns: Sequence[float], dtype: str, intercept: bool, threads: int
) -> Iterator[Cell]:
    """Yield the cells of one data set."""
    for loss in LOSSES[task]:
        if loss in losses:
            for lam_n in lam_ns:
                yield Cell(data, dtype, loss, lam_n, intercept, threads)
