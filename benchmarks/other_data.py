"""Write data sets that `auto` was not built with: some that come with scikit-learn, others drawn at random.

    python -m benchmarks.other_data folder
    python -m benchmarks.compare --data-dir folder --out results.parquet

The constants of `auto` were chosen with other sets; this is a look at how they do elsewhere. Every call writes the same sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import scale

_SEED = 20261115


def _labels(margins: np.ndarray, rng: np.random.Generator, shift: float = 0.0) -> np.ndarray:
    """Labels of a logistic model whose margins have the deviation 2."""
    margins = 2.0 * (margins - margins.mean()) / margins.std() + shift
    return np.where(rng.random(margins.size) < 1.0 / (1.0 + np.exp(-margins)), 1.0, -1.0)


def _words(n: int, d: int, per_row: int, rng: np.random.Generator) -> scipy.sparse.csr_matrix:
    """Rows of unit length with words that follow Zipf's law, rare ones weighing more."""
    frequencies = 1.0 / np.arange(2, d + 2)
    words = rng.choice(d, size=(n, per_row), p=frequencies / frequencies.sum())
    rows = np.repeat(np.arange(n), per_row)
    counts = scipy.sparse.csr_matrix((np.ones(n * per_row), (rows, words.ravel())), shape=(n, d))
    seen = np.bincount(counts.indices, minlength=d)
    counts.data *= np.log((1 + n) / (1 + seen[counts.indices])) + 1.0
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1)).A1
    return scipy.sparse.csr_matrix(scipy.sparse.diags(1.0 / lengths) @ counts)


def _one_hot(n: int, sizes: list[int], rng: np.random.Generator) -> scipy.sparse.csr_matrix:
    """One column for each value of each feature, values at frequencies that fall."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    columns = np.column_stack(
        [
            start + rng.choice(size, size=n, p=(w := 1.0 / np.arange(1, size + 1)) / w.sum())
            for start, size in zip(starts, sizes, strict=True)
        ]
    )
    indptr = np.arange(n + 1) * len(sizes)
    return scipy.sparse.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), shape=(n, sum(sizes)))


def sets() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield name, X and y."""
    rng = np.random.default_rng(_SEED)
    X, y = load_breast_cancer(return_X_y=True)
    yield "cancer_raw", X, np.where(y > 0, 1.0, -1.0)
    yield "cancer_scaled", scale(X), np.where(y > 0, 1.0, -1.0)
    X, y = load_digits(return_X_y=True)
    yield "digits_odd", X, np.where(y % 2 > 0, 1.0, -1.0)
    X, y = load_diabetes(return_X_y=True, scaled=False)
    yield "diabetes_raw", X, y

    mixing = rng.normal(size=(40, 40)) * np.geomspace(1.0, 0.01, 40)
    X = rng.normal(size=(100_000, 40)) @ mixing
    yield "tall", X, _labels(X @ rng.normal(size=40), rng)
    yield "tall_regression", X, X @ rng.normal(size=40) + rng.normal(size=100_000)
    X = rng.normal(size=(800, 3000))
    yield "wide", X, _labels(X[:, :50].sum(axis=1), rng)
    X = np.exp(1.5 * rng.normal(size=(30_000, 20)))
    yield "heavy_tails", X, _labels(np.log(X) @ rng.normal(size=20), rng)
    X = scipy.sparse.random(50_000, 200, density=0.08, random_state=7, format="csr")
    yield "rare_class", X, _labels(X @ rng.normal(size=200), rng, shift=-5.0)

    X = _one_hot(60_000, [2, 3, 5, 7, 12, 24, 50, 100, 300, 1000], rng)
    yield "categories", X, _labels(X @ rng.normal(size=X.shape[1]), rng)
    yield "categories_regression", X, X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0])
    X = _words(20_000, 40_000, 80, rng)
    yield "words", X, _labels(X @ rng.normal(size=X.shape[1]), rng)
    yield "words_regression", X, X @ rng.normal(size=X.shape[1]) + 0.3 * rng.normal(size=X.shape[0])


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write; one .npz file a set")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, X, y in sets():
        rows = write(folder, name, X, y)
        print(f"{name}: {rows.shape[0]} × {rows.shape[1]}, {rows.nnz} non-zeros", flush=True)


def write(folder: Path, name: str, X: Any, y: np.ndarray) -> scipy.sparse.csr_matrix:
    """Write one set as the benchmark reads it; return the matrix."""
    rows = scipy.sparse.csr_matrix(X)
    rows.sort_indices()
    np.savez(folder / f"{name}.npz", data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape, y=y)
    return rows


if __name__ == "__main__":
    main()
