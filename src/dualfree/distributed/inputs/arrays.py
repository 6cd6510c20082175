"""Dask arrays, in-memory arrays and lists of delayed partitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse

from ..._checks import finite_matrix, non_negative_vector, plain_array, whole_number
from .._dask import dask_array as da
from ..cluster import current_client
from ..partitions import Block, Partitions
from .blocks import BLOCK_NAME, as_matrix, block_of_part, delayed_blocks, make_block


def from_array(X: Any, y: Any, sample_weight: Any = None) -> Partitions:
    """Make a partition of each block of rows of a dask array.

    Parameters
    ----------
    X : dask array of shape (n, d)
        Its blocks are numpy arrays or scipy CSR matrices. Blocks of columns are put together on the workers.
    y : dask or numpy array of shape (n,)
        Targets. They are cut as X is; where lengths of blocks are unknown, X and y must have the same number of blocks.
    sample_weight : dask or numpy array of shape (n,), optional
        Weights s_i ≥ 0.

    Returns
    -------
    Partitions

    Examples
    --------
    >>> import dask.array as da
    >>> from dualfree.distributed import from_array
    >>> X = da.random.default_rng(0).normal(size=(100, 3), chunks=(25, 3))
    >>> from_array(X, X[:, 0] > 0)
    Partitions(4 blocks, 3 columns)
    """
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows are samples), got shape {X.shape}.")
    vectors = [_cut_like(X, "y", y)]
    if sample_weight is not None:
        vectors.append(_cut_like(X, "sample_weight", sample_weight))
    # One collection, so that what X and y have in common is computed once.
    blocks = da.blockwise(
        _numbered_block,
        "i",
        *(da.arange(X.numblocks[0], chunks=1), "i"),
        *(X, "ij"),
        *(part for vector in vectors for part in (vector, "i")),
        name=f"{BLOCK_NAME}-{uuid4().hex}",
        concatenate=False,
        align_arrays=False,
        dtype=object,
        meta=np.empty(0, dtype=object),
    )
    known = not np.isnan(X.shape[1])
    return Partitions(blocks.to_delayed().tolist(), n_features=int(X.shape[1]) if known else None)


def _numbered_block(number: Any, X: list[Any], y: Any, sample_weight: Any = None) -> Any:
    return make_block(f"Partition {number[0]}", X, y, sample_weight)


def _cut_like(X: Any, name: str, values: Any) -> Any:
    """Return `values` as a dask array with the row blocks of X."""
    if not hasattr(values, "dask"):
        values = plain_array(name, values)
        if values.ndim == 1 and not np.isnan(X.shape[0]) and values.size == X.shape[0]:
            return da.from_array(values, chunks=(X.chunks[0],))
        values = da.from_array(values, chunks=-1)
    if hasattr(values, "to_dask_array"):  # a dask series
        values = values.to_dask_array()
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {values.shape}.")
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):
        if values.numblocks[0] != X.numblocks[0]:
            raise ValueError(
                f"The lengths of the blocks of X or {name} are unknown, and X has {X.numblocks[0]} blocks of rows, {name} "
                f"has {values.numblocks[0]}. Call compute_chunk_sizes() on both first."
            )
        return values
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"{name} must have one entry per row of X ({X.shape[0]}), got {values.shape[0]}.")
    return values if values.chunks[0] == X.chunks[0] else values.rechunk((X.chunks[0],))


def from_delayed(parts: Sequence[Any]) -> Partitions:
    """Make a partition of each delayed (X, y) or (X, y, sample_weight).

    Parameters
    ----------
    parts : list of dask Delayed or Future
        Each gives a tuple of a matrix (numpy, scipy CSR, pandas frame), its targets and, perhaps, weights; or a `Block`.

    Returns
    -------
    Partitions

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from dualfree.distributed import from_delayed
    >>> @dask.delayed
    ... def load(k):
    ...     X = np.random.default_rng(k).normal(size=(10, 2))
    ...     return X, X[:, 0] > 0
    >>> len(from_delayed([load(k) for k in range(3)]))
    3
    """
    entries = Partitions(parts).blocks
    return Partitions(delayed_blocks(block_of_part, [(f"Partition {k}", part) for k, part in enumerate(entries)]))


def scatter(
    X: Any, y: Any, sample_weight: Any = None, *, client: Any = None, n_partitions: int | None = None
) -> Partitions:
    """Send data that are in the client's memory to the workers.

    Data that were sent to one worker are lost when it dies, and so is the fit; the other ways in have no such weakness.

    Parameters
    ----------
    X : array, sparse matrix or pandas frame of shape (n, d)
        The rows.
    y : array of shape (n,)
        Targets.
    sample_weight : array of shape (n,), optional
        Weights s_i ≥ 0.
    client : distributed.Client, optional
        The cluster; by default the current client.
    n_partitions : int, optional
        By default one for each thread of the workers.

    Returns
    -------
    Partitions

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> from dualfree.distributed import scatter
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     scatter(np.eye(4), [0, 1, 0, 1], n_partitions=2)
    Partitions(2 blocks, 4 columns)
    """
    client = current_client(client)
    names = getattr(X, "columns", None)
    matrix = finite_matrix(as_matrix(X), names=None if names is None else list(names))
    n, d = matrix.shape
    labels = plain_array("y", y)
    if labels.shape != (n,):
        raise ValueError(f"y must have one entry per row of X ({n}), got shape {labels.shape}.")
    weights = None if sample_weight is None else non_negative_vector("sample_weight", sample_weight, n)
    if n_partitions is None:
        n_partitions = max(1, sum(client.nthreads().values()))
    count = min(n, whole_number("n_partitions", n_partitions, low=1))
    edges = [n * k // count for k in range(count + 1)]
    if scipy.sparse.issparse(matrix):
        matrix = scipy.sparse.csr_array(matrix)
    blocks = [
        Block(matrix[a:b], labels[a:b], None if weights is None else weights[a:b]) for a, b in itertools.pairwise(edges)
    ]
    return Partitions(client.scatter(blocks, hash=False), n_features=d)
