"""The same rows as a problem of two classes: ±1 as labels, and what a row of each class costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._checks import Array
from ..partitions import Block


def label_blocks(client: Any, blocks: Sequence[Any], classes: Array, costs: Array, positive: int) -> list[Any]:
    """Set one class against the rest, on the workers that hold the blocks.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : sequence of Future
        The rows.
    classes : array of shape (n_classes,)
        All classes, sorted.
    costs : array of shape (n_classes,)
        What a row of each class is multiplied by.
    positive : int
        The place of the class that becomes +1.

    Returns
    -------
    list of Future
        Blocks that share X with the given ones.
    """
    constants = {"classes": classes, "costs": costs, "positive": positive}
    labelled: list[Any] = client.map(_label_block, list(blocks), pure=False, key="dualfree-label", **constants)
    return labelled


def _label_block(block: Block, classes: Array, costs: Array, positive: int) -> Block:
    labels = block.y.astype(classes.dtype) if block.y.dtype.kind == "O" else block.y
    own = np.searchsorted(classes, labels)
    cost = costs[own] if block.sample_weight is None else costs[own] * block.sample_weight
    return Block(block.X, np.where(own == positive, 1.0, -1.0), cost)
