"""What there is in the partitions, before a fit: rows, columns, labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import Array, one_of
from ..losses import get_loss
from . import tasks
from .cluster import Cluster, current_client
from .partitions import Partitions
from .tasks import PartSummary

_MOST_LABELS = 10_000


@dataclass(frozen=True, slots=True)
class Summary:
    """Sizes of all partitions together.

    Attributes
    ----------
    n, d, nnz : int
        Rows, columns, stored entries.
    nnz_per_row_max : int
        Stored entries of the longest row.
    mean_norm_squared : float
        The mean ‖x_i‖².
    weight : float
        Σ s_i.
    largest_target : float
        The largest |y_i|; 0 for classification.
    labels : array
        The labels in sorted order; empty for regression.
    label_rows, label_weights : array
        Rows and Σ s_i of each label.
    hessian_cost : float
        Nanoseconds, about, that the slowest partition takes for its part of the Hessian.

    Examples
    --------
    See `describe`, which returns one:

    >>> from dualfree.distributed import Summary
    >>> "labels" in Summary.__dataclass_fields__
    True
    """

    n: int
    d: int
    nnz: int
    nnz_per_row_max: int
    mean_norm_squared: float
    weight: float
    largest_target: float
    labels: Array
    label_rows: Array
    label_weights: Array
    hessian_cost: float


def describe(
    partitions: Partitions, *, task: str = "classification", client: Any = None, timeout: float = 300.0
) -> Summary:
    """Count rows, columns and labels on the workers.

    Parameters
    ----------
    partitions : Partitions
        The rows.
    task : str, default="classification"
        "classification" or "regression": whether y holds labels or numbers.
    client : distributed.Client, optional
        The cluster; by default the current client.
    timeout : float, default=300
        Seconds to wait for the cluster.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from distributed import Client
    >>> from dualfree.distributed import Block, Partitions, describe
    >>> block = dask.delayed(lambda: Block(np.eye(3), np.array(["no", "yes", "no"])))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     summary = describe(Partitions([block(), block()]), client=client)
    >>> summary.n, summary.labels.tolist(), summary.label_rows.tolist()
    (6, ['no', 'yes'], [4, 2])
    """
    losses = {"classification": "logistic", "regression": "squared"}
    loss = get_loss(losses[one_of("task", task, losses)])
    cluster = Cluster(partitions, current_client(client), timeout)
    try:
        cluster.load(loss)
        return summarise(cluster)
    finally:
        cluster.close()


def summarise(cluster: Cluster) -> Summary:
    """Describe the loaded parts, and drop those without rows."""
    parts: list[PartSummary] = cluster.patiently(lambda: cluster.stage("describe", tasks.describe)).terms
    summary, filled = merged(parts)
    cluster.keep(filled)
    return summary


def merged(parts: list[PartSummary]) -> tuple[Summary, list[int]]:
    """Put together what partitions say of themselves; return also which of them have rows."""
    filled = [k for k, part in enumerate(parts) if part.rows > 0]
    if not filled:
        raise ValueError("The partitions have no rows.")
    for k in filled:
        if parts[k].d != parts[filled[0]].d:
            raise ValueError(
                f"All partitions must have the same number of columns; partition {filled[0]} has {parts[filled[0]].d}, "
                f"partition {k} has {parts[k].d}."
            )
    kept = [parts[k] for k in filled]
    n = sum(part.rows for part in kept)
    labels, rows, weights = _labels(kept)
    summary = Summary(
        n=n,
        d=kept[0].d,
        nnz=sum(part.nnz for part in kept),
        nnz_per_row_max=max(part.nnz_per_row_max for part in kept),
        mean_norm_squared=math.fsum(part.norms_squared for part in kept) / n,
        weight=math.fsum(part.weight for part in kept),
        largest_target=max(part.largest_target for part in kept),
        labels=labels,
        label_rows=rows,
        label_weights=weights,
        hessian_cost=max(part.hessian_cost for part in kept),
    )
    return summary, filled


def _labels(parts: list[PartSummary]) -> tuple[Array, Array, Array]:
    """The sorted union of the labels, with rows and weights."""
    rows: dict[Any, int] = {}
    weights: dict[Any, list[float]] = {}
    for part in parts:
        for label, count, weight in zip(part.labels, part.label_rows, part.label_weights, strict=True):
            rows[label] = rows.get(label, 0) + count
            weights.setdefault(label, []).append(weight)
    if len(rows) > _MOST_LABELS:
        raise ValueError(f"y holds {len(rows)} different labels; for numbers use a regression loss.")
    try:
        labels = sorted(rows)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one type that can be sorted: {error}.") from None
    return (
        np.array(labels),
        np.array([rows[label] for label in labels]),
        np.array([math.fsum(weights[label]) for label in labels]),
    )
