"""The entry point: check what was given, run the rounds, return the best point."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import real_number, whole_number
from .._threads import one_blas_thread
from ..losses import Loss, get_loss
from ..solvers import generator
from . import work
from .checkpoint import Checkpoint
from .cluster import Cluster, ClusterError, current_client
from .fit import RoundState
from .one_partition import OnePartition, first_request
from .opening import open_fit
from .partitions import Partitions
from .progress import ProgressLine
from .result import DistributedResult
from .rounds import Rounds
from .setup import Asked, spec_of_cluster
from .summary import summarise


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
    local_passes: float | str = "counted",
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[RoundState], Any] | None = None,
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
    local_passes : float, "counted" or "measured", default="counted"
        Passes over its rows that a partition makes in a round: a whole number, or a part of a pass such as 0.25. "counted"
        weighs computation against communication by counting entries and bytes, never by the clock. "measured" times both
        before the fit begins; the bits then depend on the run, and ``result.local_passes`` says what to pass to repeat it.
        A single partition has no rounds; it runs ``dualfree.solve``'s own solver, and an epoch counts as a round.
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

    Raises
    ------
    ClusterError
        When the cluster cannot go on: no scheduler, no workers, rows that are gone. A checkpoint is kept.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from distributed import Client
    >>> from dualfree.distributed import Block, Partitions, solve
    >>> def load(seed):
    ...     X = np.random.default_rng(seed).normal(size=(50, 3))
    ...     return Block(X, X @ [1.0, 2.0, 3.0])
    >>> partitions = Partitions([dask.delayed(load)(seed) for seed in range(3)])
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     result = solve(partitions, loss="squared", lam=1e-3, client=client, random_state=0)
    >>> result.status.name, result.n_rows, bool(result.certificate.relative_gap <= 1e-6)
    ('CONVERGED', 150, True)
    >>> np.round(result.w, 1)
    array([1., 2., 3.])
    """
    if not isinstance(partitions, Partitions):
        raise TypeError(f"partitions must be dualfree.distributed.Partitions, got {type(partitions).__name__}.")
    loss = get_loss(loss)
    if not loss.convex:
        raise ValueError(
            f"loss {loss!r} is only average-convex; such losses are solved on one machine: dualfree.solve."
        )
    if not isinstance(fit_intercept, (bool, np.bool_)):
        raise TypeError(f"fit_intercept must be True or False, got {fit_intercept!r}.")
    tol = real_number("tol", tol, low=0.0)
    max_rounds = whole_number("max_rounds", max_rounds, low=0)
    timeout = real_number("timeout", timeout, low=0.0, strict=True)
    deadline = math.inf
    if max_time is not None:
        deadline = time.monotonic() + real_number("max_time", max_time, low=0.0, finite=False)
    local_passes = work.checked_passes(local_passes)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}.")
    rng = generator(random_state)
    # A seed is kept, so that a single partition makes the very visits that `dualfree.solve` would.
    seed = int(random_state) if isinstance(random_state, Integral) else int(rng.integers(2**63))
    asked = Asked(loss, lam, bool(fit_intercept), positive, seed)
    cluster = Cluster(partitions, current_client(client), timeout)
    line = ProgressLine(bool(progress), tol)
    fit: OnePartition | Rounds | None = None
    try:
        opened = None
        if len(partitions) == 1 and (checkpoint is None or not Path(checkpoint).exists()):
            opened = open_fit(cluster, asked, first_request(tol, max_rounds, deadline))
        if opened is None:
            cluster.load(loss)
            summary = summarise(cluster)
            spec = spec_of_cluster(cluster, summary, asked)
        else:
            spec = opened.spec
            if not opened.ended:
                cluster.load(loss)
                cluster.keep([0])
        if tol > 0 and spec.at_zero < 0:
            raise ValueError(
                f"tol is relative to P(0), which is {spec.at_zero:.3g} for {loss!r}: "
                "add a constant to its value so that it is not negative, or pass tol=0."
            )
        settings: dict[str, Any] = {
            "tol": tol,
            "max_rounds": max_rounds,
            "deadline": deadline,
            "callback": callback,
            "checkpoint": None if checkpoint is None else Checkpoint(checkpoint, spec),
            "progress": line,
        }
        with one_blas_thread():
            if spec.partitions == 1:
                fit = OnePartition(cluster, spec, **settings)
                return fit.go(None if opened is None else opened.first)
            passes = work.local_passes(local_passes, cluster, spec, summary)
            fit = Rounds(cluster, spec, summary, passes=passes, depth=work.history_depth(summary), **settings)
            return fit.go()
    except ClusterError as error:
        if fit is None or fit.best is None or checkpoint is None:
            raise
        fit.save()
        raise ClusterError(f"{error} The checkpoint {checkpoint} is kept; the same call goes on from it.") from error
    finally:
        line.close()
        cluster.close()
