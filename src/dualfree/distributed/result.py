"""What `distributed.solve` returns."""

from __future__ import annotations

from dataclasses import dataclass

from .._checks import Array
from ..certificate import Certificate
from ..status import Status
from ..trace import Trace


@dataclass(frozen=True, slots=True)
class DistributedResult:
    """The best point of a distributed solve, with its certificate. α stays on the workers and is gone with the fit.

    Attributes
    ----------
    w : array of shape (d,)
        The weights.
    intercept : float
        b; 0 without an intercept.
    certificate : Certificate
        How far (w, b) is from the optimum, at most.
    status : Status
        Why the solve ended.
    message : str
        The status in words, and what to do about it.
    n_rounds : int
        Rounds of communication in which the point moved.
    trace : Trace
        The history; an epoch is a round here.
    classes : array or None
        The two classes, −1 first; None for regression and where one label was set against the rest.
    n_rows, n_partitions : int
        Rows in all blocks, and blocks.
    bytes_moved : int
        Bytes of vectors and matrices that travelled between client and workers, counted from their sizes.
    """

    w: Array
    intercept: float
    certificate: Certificate
    status: Status
    message: str
    n_rounds: int
    trace: Trace
    classes: Array | None
    n_rows: int
    n_partitions: int
    bytes_moved: int

    def __repr__(self) -> str:
        return f"DistributedResult({self.status}, {self.n_rounds} rounds, {self.certificate})"
