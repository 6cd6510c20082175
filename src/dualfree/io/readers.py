"""One entry for every kind of data file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import IO, Any

import numpy as np
import scipy.sparse

from .._checks import Array, one_of
from .arrow_files import read_arrow
from .csv_text import CsvText
from .dataset import Dataset
from .encoding import Encoding
from .errors import DataError
from .libsvm import MAX_FEATURES, read_libsvm
from .npz import read_npz
from .streams import Progress, Source, open_source
from .table import TableReader

FORMATS = ("libsvm", "csv", "tsv", "parquet", "arrow", "npz")
_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
}
_BY_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz"}
_COMPRESSED = (".gz", ".bz2", ".xz")


def read_data(
    file: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    target: str | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    header: bool = True,
    n_features: int | None = None,
    index_base: int | None = None,
    max_features: int = MAX_FEATURES,
    dtype: Any = None,
    skip_bad_lines: bool = False,
    encoding: Encoding | None = None,
    need_target: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    r"""Read LIBSVM text, CSV, TSV, Parquet, Arrow or a NumPy archive.

    Parameters
    ----------
    file : path, "-" or binary stream
        "-" is standard input. Text may be compressed with gzip, bzip2 or xz.
    format : str, optional
        "libsvm", "csv", "tsv", "parquet", "arrow" or "npz". By default the first bytes and the suffix decide; a file
        with any other suffix is taken for LIBSVM text.
    target : str, optional
        The target column of a table.
    categorical, ignore : sequences of str
        Columns of a table that hold categories although they look like numbers, and columns to leave out.
    header : bool, default=True
        Whether the first line of CSV or TSV text names the columns.
    n_features, index_base, max_features
        See `read_libsvm`.
    dtype : dtype, optional
        float32 or float64; by default float64, or what a NumPy archive holds.
    skip_bad_lines : bool, default=False
        Count broken lines and go on.
    encoding : Encoding, optional
        Of a model: read new data as its training data were read. Unknown features and categories are left out and
        counted.
    need_target : bool, default=True
        Whether a table without the target column is an error.
    progress : callable, optional
        Called with the bytes read and the file's size.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.io import read_data
    >>> text = b"colour,size,price\nred,1,10\nblue,2,20\nred,3,35\n"
    >>> data = read_data(BytesIO(text), format="csv", target="price")
    >>> data.encoding.feature_names
    ('colour=blue', 'colour=red', 'size')
    >>> data.X
    array([[0., 1., 1.],
           [1., 0., 2.],
           [0., 1., 3.]])
    """
    if format is not None:
        one_of("format", format, FORMATS)
    if encoding is not None:
        dtype = encoding.dtype
    with open_source(file, progress=progress) as source:
        kind = format or guess_format(source)
        if kind == "libsvm":
            return _libsvm(source, n_features, index_base, max_features, dtype, skip_bad_lines, encoding)
        if kind == "npz":
            return _npz(source, dtype, max_features, encoding, need_target)
        wanted = np.dtype(dtype or np.float64)
        if kind in ("csv", "tsv"):
            text = CsvText(source, "," if kind == "csv" else "\t", header, skip_bad_lines)
            reader = TableReader(text.table, source.name, text.line_of, skip_bad_lines, wanted)
            bad_lines = text.bad_lines
        else:
            table = read_arrow(source, parquet=kind == "parquet")
            reader = TableReader(table, source.name, lambda row: None, skip_bad_lines, wanted)
            bad_lines = 0
        y: Array | None
        if encoding is None:
            if target is None:
                listed = ", ".join(reader.table.column_names[:10]) + (", …" if reader.table.num_columns > 10 else "")
                raise DataError(source.name, f"say which column is the target with --target; it has {listed}.")
            X, y, encoding = reader.learn(target, categorical, ignore)
        elif encoding.columns is None:
            raise DataError(source.name, "the model was fitted on data without column names; a table does not fit it.")
        else:
            X, y = reader.apply(encoding, need_target)
        bad = bad_lines + int(reader.bad.rows.sum())
        return Dataset(X, y, encoding, source.name, bad, reader.unknown, tuple(reader.notes))


def guess_format(source: Source) -> str:
    """Return what a file holds, from its first bytes and its suffix; anything unknown is LIBSVM text."""
    for magic, kind in _BY_MAGIC.items():
        if source.head.startswith(magic):
            return kind
    path = PurePath(source.name)
    if path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    return _BY_SUFFIX.get(path.suffix.lower(), "libsvm")


def _libsvm(
    source: Source,
    n_features: int | None,
    index_base: int | None,
    max_features: int,
    dtype: Any,
    skip_bad_lines: bool,
    encoding: Encoding | None,
) -> Dataset:
    if encoding is not None:
        _refuse_table(source.name, encoding)
        n_features, index_base = encoding.n_features, encoding.index_base
    # A model from a NumPy archive knows no index base; it is then detected, and what is beyond the model cut off here.
    cut_here = encoding is not None and index_base is None
    data = read_libsvm(
        source,
        n_features=None if cut_here else n_features,
        index_base=index_base,
        ignore_beyond=encoding is not None and not cut_here,
        max_features=max_features,
        dtype=dtype or np.float64,
        skip_bad_lines=skip_bad_lines,
    )
    X, ignored = data.X, data.ignored
    if cut_here and encoding is not None:
        X, ignored = _cut(X, encoding.n_features)
    if encoding is None:
        encoding = Encoding(X.shape[1], X.dtype.name, index_base=data.index_base)
    return Dataset(X, data.y, encoding, source.name, data.bad_lines, ignored)


def _npz(source: Source, dtype: Any, max_features: int, encoding: Encoding | None, need_target: bool) -> Dataset:
    X, y = read_npz(source)
    if dtype is not None:
        X = X.astype(dtype, copy=False)
    if y is None and need_target:
        raise DataError(source.name, "it holds no target y.")
    if X.shape[1] > max_features:
        raise DataError(
            source.name,
            f"it has {X.shape[1]} features, the limit is {max_features}. If that is right, raise it with max_features "
            "(--max-features).",
        )
    if encoding is None:
        return Dataset(X, y, Encoding(X.shape[1], X.dtype.name), source.name)
    _refuse_table(source.name, encoding)
    X, ignored = _cut(X, encoding.n_features)
    return Dataset(X, y, encoding, source.name, unknown=ignored)


def _refuse_table(name: str, encoding: Encoding) -> None:
    if encoding.columns is not None:
        raise DataError(name, "the model was fitted on a table with named columns; this file has no names.")


def _cut(X: Any, d: int) -> tuple[Any, int]:
    """Return X with exactly d columns, and how many entries were lost."""
    if X.shape[1] == d:
        return X, 0
    if X.shape[1] < d:
        if scipy.sparse.issparse(X):
            return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d)), 0
        raise ValueError(f"X has {X.shape[1]} columns, the model needs {d}.")
    kept = X[:, :d]
    before, after = (X.nnz, kept.nnz) if scipy.sparse.issparse(X) else (np.count_nonzero(X), np.count_nonzero(kept))
    return (kept if scipy.sparse.issparse(X) else np.ascontiguousarray(kept)), int(before - after)
