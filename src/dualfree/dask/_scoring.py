"""Accuracy and R² from sums over the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..distributed import Block
from ..distributed._dask import dask
from ..distributed._dask import dask_array as da
from ..distributed.inputs import is_partitioned, partition
from ..distributed.partitions import RejectedBlock


def score_blocks(local: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the score of a fitted local estimator: a dask scalar for dask collections, a float for data in memory."""
    if not is_partitioned(X):
        return float(local.score(X, y, sample_weight))
    partitions, _ = partition(X, y, sample_weight)
    model = dask.delayed(local)
    sums = dask.delayed(_accuracy_sums if is_classifier(local) else _squares, pure=False)
    total = dask.delayed(_accuracy if is_classifier(local) else _r2, pure=False)
    return da.from_delayed(total([sums(block, model) for block in partitions.blocks]), shape=(), dtype=float)


def _checked(block: Block | RejectedBlock) -> tuple[Any, Any, Any]:
    if isinstance(block, RejectedBlock):
        raise ValueError(block.sentence)
    weights = np.ones(block.y.size) if block.sample_weight is None else block.sample_weight
    return block.X, block.y, weights


def _accuracy_sums(block: Block, local: Any) -> tuple[float, float]:
    X, y, weights = _checked(block)
    right = weights[local.predict(X) == y].sum() if y.size else 0.0
    return float(right), float(weights.sum())


def _accuracy(sums: list[tuple[float, float]]) -> np.float64:
    right, weight = np.sum(sums, axis=0)
    return np.float64(right / weight if weight > 0 else np.nan)


def _squares(block: Block, local: Any) -> tuple[float, float, float, float]:
    """Return Σ s, the mean of y, Σ s (y − mean)² and Σ s (y − prediction)² of one block."""
    X, y, weights = _checked(block)
    weight = float(weights.sum())
    if weight == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    targets = y.astype(np.float64)
    mean = float(weights @ targets) / weight
    return weight, mean, float(weights @ (targets - mean) ** 2), float(weights @ (targets - local.predict(X)) ** 2)


def _r2(sums: list[tuple[float, float, float, float]]) -> np.float64:
    weights, means, within, residual = np.array(sums).T
    if not weights.sum() > 0:
        return np.float64(np.nan)
    mean = weights @ means / weights.sum()
    spread = within.sum() + weights @ (means - mean) ** 2  # around the common mean, without cancellation
    if spread == 0.0:
        return np.float64(residual.sum() == 0.0)
    return np.float64(1.0 - residual.sum() / spread)
