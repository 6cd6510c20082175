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
    local_passes : float
        Passes over its rows that a partition made in a round.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from distributed import Client
    >>> from dualfree.distributed import Block, Partitions, solve
    >>> block = dask.delayed(lambda: Block(np.eye(3), [1.0, 2.0, 3.0]))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     result = solve(Partitions([block(), block()]), loss="squared", lam=1 / 3, client=client)
    >>> np.round(result.w, 2), result.n_partitions
    (array([0.5, 1. , 1.5]), 2)
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
    local_passes: float

    def __repr__(self) -> str:
        return f"DistributedResult({self.status}, {self.n_rounds} rounds, {self.certificate})"
