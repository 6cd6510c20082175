"""Write data sets that `auto` was not built with: some that come with scikit-learn, others drawn at random.

    python -m benchmarks.other_data folder --draw 7
    python -m benchmarks.other_data folder --parts other --rows 1500
    python -m benchmarks.compare --data-dir folder --out results.parquet

The constants of `auto` were chosen with other sets; this is a look at how they do elsewhere. What went badly on the thirteen
sets of a plain call and on the twelve of `--more` has led to changes since. `--draw SEED` draws twelve more, of kinds, sizes
and difficulties that depend on the seed; nobody has seen those of a new one. `--parts` writes small sets of real data: so many
rows of each set of another folder. Every call writes the same sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import PolynomialFeatures, scale
from threadpoolctl import threadpool_limits

from .datasets import NotComparedError, files_in, load

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


def more_sets() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield name, X and y of twelve others."""
    rng = np.random.default_rng(_SEED + 1)
    X, y = load_wine(return_X_y=True)
    yield "wine_scaled", scale(X), np.where(y == 1, 1.0, -1.0)
    X = scipy.sparse.hstack([rng.normal(size=(20_000, 8)), _one_hot(20_000, [4, 6, 20, 120], rng)]).tocsr()
    yield "mixed", X, _labels(X @ rng.normal(size=X.shape[1]), rng)
    X = _smooth(rng.normal(size=(5000, 320)), 20)
    yield "sensors", X, _labels(X @ rng.normal(size=X.shape[1]), rng)
    X = rng.normal(size=(200, 5000))
    yield "genes", X, _labels(X[:, :20].sum(axis=1), rng)
    columns = np.sort(rng.integers(20_000, size=(40_000, 25)), axis=1)
    signs = rng.choice([-1.0, 1.0], size=columns.size)
    X = scipy.sparse.csr_matrix((signs, columns.ravel(), np.arange(40_001) * 25), shape=(40_000, 20_000))
    X.sum_duplicates()
    yield "hashed", X, _labels(X @ rng.normal(size=X.shape[1]), rng)
    X = rng.poisson(np.geomspace(0.05, 5.0, 120), size=(15_000, 120)).astype(float)
    yield "counts", X, _labels(np.sqrt(X) @ rng.normal(size=120), rng)
    X = _one_hot(50_000, [2000, 1000], rng)
    yield "ratings", X, X @ rng.normal(size=3000) + rng.normal(size=50_000)
    powers = PolynomialFeatures(2, include_bias=False).fit_transform(rng.normal(size=(10_000, 10)))
    yield "powers", powers, _labels(powers @ rng.normal(size=powers.shape[1]), rng)
    yield "powers_regression", powers, powers @ rng.normal(size=powers.shape[1]) + rng.normal(size=10_000)
    X = _smooth(rng.random(size=(3000, 1040)), 16)
    yield "images", X, _labels(X @ rng.normal(size=X.shape[1]), rng)
    X = _words(25_000, 30_000, 60, rng)
    yield "rare_topic", X, _labels(X @ rng.normal(size=X.shape[1]), rng, shift=-5.0)
    X = rng.integers(1, 6, size=(2000, 40)).astype(float)
    yield "survey", X, X @ rng.normal(size=40) + 3.0 * rng.normal(size=2000)


_DRAWN, _DRAWN_ENTRIES = 12, 1_500_000


def drawn_sets(seed: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield name, X and y of sets whose kind, size and difficulty are drawn at random; a third are regression problems."""
    rng = np.random.default_rng([_SEED, seed])
    kinds = rng.permutation(np.resize(list(_KINDS), _DRAWN))
    for k, kind in enumerate(kinds):
        X = _KINDS[kind](rng)
        weights, matter = rng.normal(size=X.shape[1]), rng.random(X.shape[1]) < rng.choice([0.1, 1.0])
        matter[0] |= not matter.any()
        margins = np.asarray(X @ (weights * matter))
        if k % 3 == 0:
            y = margins / margins.std() + rng.choice([0.1, 1.0]) * rng.normal(size=margins.size)
        else:
            y = _labels(margins, rng, shift=rng.choice([0.0, -3.0]))
        yield f"{kind}_{seed}_{k}", X, y


def _drawn_size(rng: np.random.Generator, columns: tuple[float, float]) -> tuple[int, int]:
    """Rows and columns, their logarithms drawn evenly, with no more than so many entries."""
    d = int(np.exp(rng.uniform(*np.log(columns))))
    most = min(200_000.0, _DRAWN_ENTRIES / d)
    return int(np.exp(rng.uniform(np.log(min(500.0, most)), np.log(most)))), d


def _correlated(rng: np.random.Generator) -> np.ndarray:
    n, d = _drawn_size(rng, (5, 600))
    return rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * np.geomspace(1.0, rng.choice([0.3, 0.01]), d))


def _skewed(rng: np.random.Generator) -> np.ndarray:
    n, d = _drawn_size(rng, (5, 100))
    return np.exp(rng.normal(size=(n, d)) * rng.uniform(0.3, 1.5))


def _few_rows(rng: np.random.Generator) -> np.ndarray:
    n, d = int(rng.integers(100, 500)), int(rng.integers(1000, 4000))
    return rng.normal(size=(n, d)) * np.exp(0.5 * rng.normal(size=d))


def _sparse_numbers(rng: np.random.Generator) -> scipy.sparse.csr_matrix:
    per_row = int(rng.integers(5, 60))
    d = int(np.exp(rng.uniform(np.log(4 * per_row), np.log(30_000))))
    n = int(rng.integers(2000, _DRAWN_ENTRIES // per_row))
    X = scipy.sparse.random(n, d, density=per_row / d, format="csr", random_state=int(rng.integers(2**31)))
    X.data[:] = rng.choice([-1.0, 1.0], size=X.nnz) if rng.random() < 0.5 else rng.exponential(size=X.nnz)
    return X


def _drawn_words(rng: np.random.Generator) -> scipy.sparse.csr_matrix:
    per_row = int(rng.integers(20, 120))
    return _words(int(rng.integers(2000, _DRAWN_ENTRIES // per_row)), int(rng.integers(2000, 60_000)), per_row, rng)


def _drawn_categories(rng: np.random.Generator) -> scipy.sparse.csr_matrix:
    sizes = np.exp(rng.uniform(np.log(2), np.log(2000), size=int(rng.integers(3, 15)))).astype(int)
    return _one_hot(int(rng.integers(2000, _DRAWN_ENTRIES // sizes.size // 2)), sizes.tolist(), rng)


_KINDS = {
    "correlated": _correlated,
    "skewed": _skewed,
    "few_rows": _few_rows,
    "sparse_numbers": _sparse_numbers,
    "words": _drawn_words,
    "categories": _drawn_categories,
}


def parts(folder: Path, rows: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield so many rows of each set of a folder, in their order, without the columns that they do not have."""
    for name, path in files_in(folder).items():
        try:
            data = load(name, path, "float64")
        except NotComparedError as reason:
            print(reason)
            continue
        rng = np.random.default_rng(_SEED)
        chosen = np.sort(rng.permutation(data.y.size)[:rows])
        X = scipy.sparse.csr_matrix(data.X[chosen])
        yield f"{name}_{chosen.size}", X[:, np.unique(X.indices)], data.y[chosen]


def _smooth(X: np.ndarray, width: int) -> np.ndarray:
    """Means over `width` neighbouring columns, which makes columns that are much alike."""
    sums = np.cumsum(X, axis=1)
    return (sums[:, width:] - sums[:, :-width]) / width


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write; one .npz file a set")
    parser.add_argument("--more", action="store_true", help="twelve others")
    parser.add_argument("--draw", type=int, metavar="SEED", help="twelve that are drawn at random")
    parser.add_argument("--parts", type=Path, metavar="OTHER", help="some rows of each set of that folder")
    parser.add_argument("--rows", type=int, default=1500, help="how many rows, with --parts")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.parts is not None:
        chosen = parts(arguments.parts, arguments.rows)
    elif arguments.draw is not None:
        chosen = drawn_sets(arguments.draw)
    else:
        chosen = more_sets() if arguments.more else sets()
    with threadpool_limits(1):  # the last bits of a product may depend on who shares it
        for name, X, y in chosen:
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
