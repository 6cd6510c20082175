"""The entry point: check what was given, run the rounds, return the best point."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..losses import Loss
from .partitions import Partitions
from .result import DistributedResult


def solve(
    partitions: Partitions,
    *,
    loss: str | Loss = "logistic",
    lam: float = 1e-4,
    fit_intercept: bool = False,
    positive: Any = None,
    tol: float = 1e-6,
    max_rounds: int = 1000,
    max_time: float | None = None,
    random_state: int | np.random.Generator | None = None,
    local_passes: int | str = "auto",
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[Any], Any] | None = None,
    timeout: float = 300.0,
    progress: bool = False,
) -> DistributedResult:
    """Solve a problem whose rows are spread over a Dask cluster.

    Parameters
    ----------
    partitions : Partitions
        The rows.
    loss, lam, fit_intercept
        As in `dualfree.Problem`, n being the number of rows of all blocks together.
    positive : label, optional
        For a classification loss: the label that becomes +1, every other one becomes −1 (one against the rest). By
        default the labels must be two, and the greater one becomes +1.
    tol : float, default=1e-6
        Stop when the certified gap is at most ``tol · P(0)``.
    max_rounds : int, default=1000
        Stop after that many rounds of communication.
    max_time : float, optional
        Stop after that many seconds.
    random_state : int, Generator or None
        Seed. The same partitions and seed give the same bits, on any number of workers.
    local_passes : int or "auto", default="auto"
        Passes over its rows that a partition makes in a round. "auto" weighs computation against communication by
        counting entries and bytes, never by the clock.
    client : distributed.Client, optional
        The cluster; by default the current client.
    checkpoint : path, optional
        A file that is written on the way and from which a later call goes on, should this one not end.
    callback : callable, optional
        Called after each evaluation; a true answer stops the run.
    timeout : float, default=300
        Seconds in which the cluster must make progress of some kind; after that, an error says what was waited for.
    progress : bool, default=False
        Whether to keep a line on standard error up to date.

    Returns
    -------
    DistributedResult
        The best point found, also after Ctrl-C, with its certificate.
    """
    raise NotImplementedError
