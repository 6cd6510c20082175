"""Made-up data in the shape of the paper's, for a machine without the real ones. Labelled as such wherever they appear."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .._checks import Array

_MUSHROOM_LEVELS = (6, 4, 10, 2, 9, 2, 2, 2, 12, 2, 4, 4, 4, 9, 9, 4, 3, 5, 9, 4, 6)


def like_mushrooms(n: int = 8124, seed: int = 0) -> tuple[Any, Array]:
    """Return (X, y): 21 categorical features as 112 columns of zeros and ones, 21 ones in each row, y = ±1."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.482, 1.0, -1.0)
    columns, first = [], 0
    for levels in _MUSHROOM_LEVELS:
        common = rng.dirichlet(np.full(levels, 0.6))
        by_class = [0.55 * common + 0.45 * rng.dirichlet(np.full(levels, 0.6)) for _ in range(2)]
        drawn = np.array([rng.choice(levels, size=n, p=p / p.sum()) for p in by_class])
        columns.append(first + np.where(y > 0, drawn[1], drawn[0]))
        first += levels
    indices = np.column_stack(columns).astype(np.int32)
    width = indices.shape[1]
    indptr = np.arange(0, n * width + 1, width, dtype=np.int32)
    return scipy.sparse.csr_array((np.ones(n * width), indices.ravel(), indptr), shape=(n, first)), y


def like_rcv1(n: int = 20242, d: int = 47236, words: float = 74.0, seed: int = 0) -> tuple[Any, Array]:
    """Return (X, y): word counts with a long tail, log tf-idf, unit rows, y = ±1 from a few hundred telling words."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(10, d + 10) ** 0.9
    frequency /= frequency.sum()
    lengths = np.maximum(5, rng.lognormal(np.log(0.94 * words), 0.5, size=n)).astype(np.int64)
    rows = np.repeat(np.arange(n), lengths)
    terms = rng.choice(d, size=int(lengths.sum()), p=frequency)
    counts = scipy.sparse.csr_array((np.ones(rows.size), (rows, terms)), shape=(n, d))
    counts.sum_duplicates()
    spread = np.bincount(counts.indices, minlength=d)
    idf = np.log(n / np.maximum(1, spread))
    counts.data = (1.0 + np.log(counts.data)) * idf[counts.indices]
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    X = scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / np.maximum(norms, 1e-300)) @ counts)
    telling = rng.choice(d // 10, size=min(400, d // 10), replace=False)
    weights = np.zeros(d)
    weights[telling] = rng.normal(size=telling.size)
    score = X @ weights
    score += 0.3 * score.std() * rng.normal(size=n)
    y = np.where(score > np.quantile(score, 0.48), 1.0, -1.0)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y
