"""The data sets of a folder: which there are, what they are for, and the matrix as every solver gets it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from dualfree.io import read_data

_TEXT = ("", ".svm", ".libsvm", ".txt")
_COMPRESSED = (".gz", ".bz2", ".xz")
_DENSE_FROM = 0.5  # share of non-zeros from which a set is given as a dense array, as a user would hold it
_MOST_CLASSES = 100


class NotComparedError(ValueError):
    """A set that the benchmark leaves out; the message says why."""


@dataclass(frozen=True)
class DataSet:
    """X as a C-order array or CSR matrix of the wanted precision; y as ±1 for "binary", as it is for "regression"."""

    name: str
    task: str
    X: Any
    y: np.ndarray

    @property
    def nnz(self) -> int:
        """Non-zero values."""
        return int(self.X.nnz if scipy.sparse.issparse(self.X) else np.count_nonzero(self.X))


def files_in(folder: Path) -> dict[str, Path]:
    """Return the data files of a folder by the name of their set; a NumPy archive goes before LIBSVM text.

    Small files come first, so that an interrupted run has seen many sets.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        plain = path.with_suffix("") if path.suffix in _COMPRESSED else path
        if not path.is_file() or path.name.startswith(".") or plain.suffix not in (".npz", *_TEXT):
            continue
        if plain.stem not in found or plain.suffix == ".npz":
            found[plain.stem] = path
    return dict(sorted(found.items(), key=lambda item: (item[1].stat().st_size, item[0])))


def load(name: str, path: Path, dtype: str) -> DataSet:
    """Read a set; raise `NotComparedError` where it is neither a binary nor a regression problem."""
    data = read_data(path, dtype=dtype)
    if data.y is None or data.y.dtype.kind != "f":
        raise NotComparedError(f"{name} is left out: its targets are not numbers.")
    y = data.y.astype(np.float64)
    values = np.unique(y)
    if values.size < 2:
        raise NotComparedError(f"{name} is left out: its targets are all the same.")
    if looks_multiclass(values):
        first, last = int(values[0]), int(values[-1])
        raise NotComparedError(
            f"{name} is left out: its targets {first} … {last} are the classes of a multiclass problem."
        )
    X = scipy.sparse.csr_matrix(data.X)  # not every peer takes the newer csr_array
    if X.nnz > _DENSE_FROM * X.shape[0] * X.shape[1]:
        X = np.ascontiguousarray(X.toarray())
    else:
        X.sort_indices()
    if values.size == 2:
        return DataSet(name, "binary", X, np.where(y == values[1], 1.0, -1.0))
    return DataSet(name, "regression", X, y)


def looks_multiclass(values: np.ndarray) -> bool:
    """Whether these distinct targets are class numbers: 0 … k−1 or 1 … k without a hole, for 3 ≤ k ≤ 100."""
    k = values.size
    return 3 <= k <= _MOST_CLASSES and values[0] in (0, 1) and bool((np.diff(values) == 1).all())
