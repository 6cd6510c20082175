"""LIBSVM files, read on the workers: each file, or each range of bytes of a large one, is a partition."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ..._checks import whole_number
from ...io.errors import DataError
from ...io.libsvm import MAX_FEATURES, LibsvmData
from ...io.libsvm_ranges import ByteRange, read_libsvm_range, split_file
from ..cluster import current_client
from ..partitions import Partitions, RejectedBlock
from .blocks import BLOCK_NAME, delayed_blocks, make_block
from .waiting import collect

_MOST_BYTES = 64 << 20
_FEWEST_BYTES = 4 << 20  # below that, more partitions cost more than they bring


@dataclass(frozen=True, slots=True)
class LibsvmPartitions:
    """The partitions of some LIBSVM files, and what was found out while reading them.

    Attributes
    ----------
    partitions : Partitions
        They are being made or are made already; nothing is read twice.
    n_features, index_base : int
        Agreed over all partitions.
    n_rows, nnz, bad_lines : int
        Rows, stored entries and skipped lines of all partitions.
    """

    partitions: Partitions
    n_features: int
    index_base: int
    n_rows: int
    nnz: int
    bad_lines: int


def from_libsvm(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Any) -> Partitions:
    r"""Make partitions of LIBSVM files, which the workers must be able to open under the same names.

    Parameters
    ----------
    files : path, pattern such as "data/part-*.svm", or list of those
        Plain text, or compressed with gzip, bzip2 or xz. A plain file is cut into ranges of bytes, a compressed one is one
        partition.
    **options
        ``n_features``, ``index_base``, ``max_features``, ``dtype`` and ``skip_bad_lines`` as in `dualfree.io.read_libsvm`,
        agreed over all files; ``client``, by default the current one; ``timeout`` (300), seconds in which at least one
        partition must become ready; ``partition_bytes``, the size of the ranges, by default such that every thread of the
        workers has one, but 4 MiB at least and 64 MiB at most.

    Returns
    -------
    Partitions

    Examples
    --------
    >>> import tempfile
    >>> from dask.distributed import Client
    >>> from dualfree.distributed import from_libsvm
    >>> with Client(processes=False, dashboard_address=":0"), tempfile.TemporaryDirectory() as folder:
    ...     _ = open(folder + "/part-0.svm", "wb").write(b"1 1:1\n-1 2:1\n")
    ...     _ = open(folder + "/part-1.svm", "wb").write(b"1 5:1\n")
    ...     from_libsvm(folder + "/part-*.svm")
    Partitions(2 blocks, 5 columns)
    """
    return read_libsvm_files(files, **options).partitions


def read_libsvm_files(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_features: int | None = None,
    index_base: int | None = None,
    max_features: int = MAX_FEATURES,
    dtype: Any = np.float64,
    skip_bad_lines: bool = False,
    partition_bytes: int | None = None,
    client: Any = None,
    timeout: float = 300.0,
) -> LibsvmPartitions:
    """Read the files on the workers and agree on the number of features and on the index of the first one."""
    if index_base not in (None, 0, 1):
        raise ValueError(f"index_base must be 0, 1 or None, got {index_base!r}.")
    client = current_client(client)
    paths = matching_files(files)
    if partition_bytes is None:
        share = sum(os.path.getsize(path) for path in paths) // max(1, sum(client.nthreads().values()))
        partition_bytes = min(_MOST_BYTES, max(_FEWEST_BYTES, share))
    size = whole_number("partition_bytes", partition_bytes, low=1)
    ranges = [part for path in paths for part in split_file(path, size)]
    options = (index_base, max_features, np.dtype(dtype).name, skip_bad_lines)
    raw = client.compute(delayed_blocks(_read, [(part, *options) for part in ranges]))
    found = collect(client, client.map(_describe, raw, pure=False, key="dualfree-describe"), "the files", timeout)
    for each in found:
        if isinstance(each, str):
            raise ValueError(each)
    base = min(each.index_base for each in found)
    d = max(each.n_features + each.index_base for each in found) - base
    if n_features is not None:
        whole_number("n_features", n_features, low=1)
        if d > n_features:
            worst = int(np.argmax([each.n_features + each.index_base for each in found]))
            raise DataError(
                ranges[worst].path, f"the feature index {d - 1 + base} is beyond the {n_features} features."
            )
        d = n_features
    if sum(each.n_rows for each in found) == 0:
        raise DataError(ranges[0].path, "there are no rows, neither here nor in the other files.")
    if d == 0:
        raise DataError(ranges[0].path, "no row has a feature; say how many there are with n_features (--features).")
    blocks = [
        client.submit(_finish, part, k, str(ranges[k]), base, d, pure=False, key=f"{BLOCK_NAME}-{part.key}-{k}")
        for k, part in enumerate(raw)
    ]
    return LibsvmPartitions(
        Partitions(blocks, n_features=d),
        d,
        base,
        sum(each.n_rows for each in found),
        sum(each.nnz for each in found),
        sum(each.bad_lines for each in found),
    )


def matching_files(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the files that names and patterns stand for, those of a pattern in sorted order."""
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found: list[str] = []
    for entry in (os.fspath(path) for path in given):
        matches = [entry] if os.path.exists(entry) else sorted(glob.glob(entry, recursive=True))
        if not matches:
            raise DataError(entry, "there is no such file, and none that matches it as a pattern.")
        found.extend(os.path.abspath(match) for match in matches)
    if not found:
        raise ValueError("files must name at least one file, got an empty list.")
    return found


# --- on the workers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Described:
    n_rows: int
    nnz: int
    n_features: int
    index_base: int
    bad_lines: int


def _read(part: ByteRange, index_base: int | None, max_features: int, dtype: str, skip: bool) -> Any:
    try:
        return read_libsvm_range(
            part, index_base=index_base, max_features=max_features, dtype=np.dtype(dtype), skip_bad_lines=skip
        )
    except (DataError, OSError) as error:
        return RejectedBlock(str(error))


def _describe(data: LibsvmData | RejectedBlock) -> _Described | str:
    if isinstance(data, RejectedBlock):
        return data.sentence
    return _Described(data.y.size, int(data.X.nnz), data.X.shape[1], data.index_base, data.bad_lines)


def _finish(data: LibsvmData, k: int, where: str, base: int, d: int) -> Any:
    """Give X the columns that were agreed. Indices are copied only if other files count from 0 and this one from 1."""
    X = data.X
    indices = X.indices if data.index_base == base else X.indices + np.asarray(1, dtype=X.indices.dtype)
    matrix = scipy.sparse.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], d))
    matrix.has_canonical_format = True
    return make_block(f"Partition {k} ({where})", matrix, data.y)
