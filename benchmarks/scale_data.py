"""The data of the benchmark on a cluster; every block is made on the worker that keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np
import scipy.sparse

from dualfree.distributed import Block

_ROWS_AT_ONCE = 50_000  # while rows are made: the numbers in between take more memory than the rows


@dataclass(frozen=True)
class File:
    """A NumPy archive with data, indices, indptr, shape and y, which the workers can open."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the set."""
        return self.path.stem

    def blocks(self, count: int) -> list[Any]:
        """Return `count` delayed blocks of nearly the same number of rows."""
        return [dask.delayed(_read)(str(self.path), k, count) for k in range(count)]


def _read(path: str, k: int, count: int) -> Block:
    with np.load(path) as f:
        X = scipy.sparse.csr_matrix((f["data"], f["indices"], f["indptr"]), shape=f["shape"])
        y = f["y"].astype(np.float64)
    start, stop = (len(y) * j // count for j in (k, k + 1))
    return Block(X[start:stop], y[start:stop])


@dataclass(frozen=True)
class Synthetic:
    """Rows of categorical fields, one-hot: each row has one non-zero in each field, of the same size.

    Fields grow in width from the first to the last, and within a field low categories are the frequent ones. Labels are
    drawn from a logistic model. The rows do not depend on the number of blocks: each chunk of them has a seed of its own.
    """

    entries: int
    d: int
    fields: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if self.d < self.fields**2:
            raise ValueError(f"d must be at least {self.fields**2} for {self.fields} fields, got {self.d}.")
        if self.entries < self.fields:
            raise ValueError(f"entries must be at least {self.fields}, one row, got {self.entries}.")

    @property
    def name(self) -> str:
        """Name of the set."""
        return f"synthetic, {self.entries / 1e6:g} million non-zeros, d = {self.d:,}"

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.entries // self.fields

    def blocks(self, count: int) -> list[Any]:
        """Return `count` delayed blocks of nearly the same number of rows."""
        return [dask.delayed(_make)(self, k, count) for k in range(count)]


def _make(data: Synthetic, k: int, count: int) -> Block:
    start, stop = (data.rows * j // count for j in (k, k + 1))
    edges = np.round(data.d * (np.arange(data.fields + 1) / data.fields) ** 2).astype(np.int64)
    hidden = np.random.default_rng([data.seed, 0]).normal(scale=2.0 / np.sqrt(data.fields), size=data.d)
    indices = np.empty((stop - start, data.fields), np.int32)
    y = np.empty(stop - start)
    for chunk in range(start // _ROWS_AT_ONCE, -(-stop // _ROWS_AT_ONCE)):
        first = chunk * _ROWS_AT_ONCE
        rng = np.random.default_rng([data.seed, 1, chunk])
        where = edges[:-1] + np.diff(edges) * rng.random((_ROWS_AT_ONCE, data.fields)) ** 2
        ours = where.astype(np.int32)[max(start - first, 0) : stop - first]
        coin = rng.random(_ROWS_AT_ONCE)[max(start - first, 0) : stop - first]
        to = slice(max(first, start) - start, max(first, start) - start + len(ours))
        indices[to] = ours
        y[to] = np.where(coin < 1.0 / (1.0 + np.exp(-hidden[ours].sum(axis=1))), 1.0, -1.0)
    values = np.full(indices.size, 1.0 / np.sqrt(data.fields), np.float32)
    indptr = np.arange(0, indices.size + 1, data.fields, dtype=np.int32)
    return Block(scipy.sparse.csr_matrix((values, indices.ravel(), indptr), shape=(stop - start, data.d)), y)
