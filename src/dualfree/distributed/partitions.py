"""The rows of a problem, spread over a cluster: a list of blocks, each of which lives on some worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._checks import whole_number


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Block:
    """The rows of one partition, as a worker holds them.

    Attributes
    ----------
    X : array or CSR matrix of shape (rows, d)
        Kept without a copy when it is a C-order array or a canonical CSR matrix of float32 or float64. May have no rows.
    y : array of shape (rows,)
        Numbers for a regression loss, labels for a classification loss.
    sample_weight : array of shape (rows,) or None
        Weights s_i ≥ 0; None means 1 for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.distributed import Block
    >>> Block(np.eye(2), np.array([0, 1])).sample_weight is None
    True
    """

    X: Any
    y: Any
    sample_weight: Any = None


@dataclass(frozen=True, slots=True)
class RejectedBlock:
    """A partition that cannot be used, and why.

    It travels as a value: a task that raises would fill the workers' logs with tracebacks.
    """

    sentence: str


class Partitions:
    """The blocks of a problem, none of which is on the client.

    Their number and order decide the answer's bits; the number of workers and the places of the blocks do not.

    Parameters
    ----------
    blocks : list of dask Delayed or Future
        Each one gives a `Block`. A block that comes from a Delayed can be made again when its worker dies; data that were
        scattered to one worker cannot.
    n_features : int, optional
        Columns of X, if known; every block must then have that many. Otherwise the blocks are asked.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from dualfree.distributed import Block, Partitions
    >>> make = dask.delayed(lambda seed: Block(np.random.default_rng(seed).normal(size=(5, 2)), np.arange(5)))
    >>> len(Partitions([make(0), make(1)]))
    2
    """

    def __init__(self, blocks: Iterable[Any], n_features: int | None = None) -> None:
        self.blocks = list(blocks)
        if not self.blocks:
            raise ValueError("blocks must hold at least one partition, got an empty list.")
        for k, block in enumerate(self.blocks):
            if not hasattr(block, "key"):
                raise TypeError(
                    f"blocks must be dask Delayed objects or Futures; entry {k} is a {type(block).__name__}. "
                    "Wrap the function that makes a Block in dask.delayed."
                )
        self.n_features = None if n_features is None else whole_number("n_features", n_features, low=1)

    def __len__(self) -> int:
        return len(self.blocks)

    def __repr__(self) -> str:
        columns = "" if self.n_features is None else f", {self.n_features} columns"
        return f"Partitions({len(self)} blocks{columns})"
