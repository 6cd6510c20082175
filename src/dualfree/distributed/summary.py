"""What there is in the partitions, before a fit: rows, columns, labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import Array
from . import tasks
from .cluster import Cluster
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
    label_weights : array
        Σ s_i of each label.
    hessian_cost : float
        Nanoseconds, about, that the slowest partition takes for its part of the Hessian.
    """

    n: int
    d: int
    nnz: int
    nnz_per_row_max: int
    mean_norm_squared: float
    weight: float
    largest_target: float
    labels: Array
    label_weights: Array
    hessian_cost: float


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
    labels, weights = _labels(kept)
    summary = Summary(
        n=n,
        d=kept[0].d,
        nnz=sum(part.nnz for part in kept),
        nnz_per_row_max=max(part.nnz_per_row_max for part in kept),
        mean_norm_squared=math.fsum(part.norms_squared for part in kept) / n,
        weight=math.fsum(part.weight for part in kept),
        largest_target=max(part.largest_target for part in kept),
        labels=labels,
        label_weights=weights,
        hessian_cost=max(part.hessian_cost for part in kept),
    )
    return summary, filled


def _labels(parts: list[PartSummary]) -> tuple[Array, Array]:
    """The sorted union of the labels, with their weights."""
    weights: dict[Any, list[float]] = {}
    for part in parts:
        for label, weight in zip(part.labels, part.label_weights, strict=True):
            weights.setdefault(label, []).append(weight)
    if len(weights) > _MOST_LABELS:
        raise ValueError(f"y holds {len(weights)} different labels; for numbers use a regression loss.")
    try:
        labels = sorted(weights)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one type that can be sorted: {error}.") from None
    return np.array(labels), np.array([math.fsum(weights[label]) for label in labels])
