"""LIBSVM text to a CSR matrix: fast, and in hardly more memory than the matrix itself.

The text goes through one buffer of a few megabytes. What the compiled scan reads lands in slabs of fixed size; at the
end the slabs are copied into the final arrays and dropped one by one. Growing arrays by doubling would need up to three
times the matrix, reading the file twice would exclude streams.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import scipy.sparse

from .._checks import Array
from .errors import DataError, shown
from .kernels import libsvm_scan as kernel
from .streams import Progress, Source, open_source

MAX_FEATURES = 100_000_000
"""A greater index is taken for a mistake: every vector of weights would need a gigabyte."""

_BUFFER = 4 << 20
_LONGEST_LINE = 256 << 20
_FIRST_SLAB = 1 << 14
_LARGEST_SLAB = 1 << 23  # 32 MiB of indices, 64 MiB of values: given back to the system when it is dropped
_UNKNOWN_BASE = -1

_EXPECTED = {
    kernel.BAD_LABEL: "expected a number as label, got {token}.",
    kernel.BAD_INDEX: "expected index:value, got {token}.",
    kernel.BAD_VALUE: "expected index:value with a number as value, got {token}.",
    kernel.TOO_LARGE: "the number in {token} is too large.",
    kernel.NOT_ASCENDING: "indices must be ascending, {token} comes too late or twice.",
    kernel.INDEX_TOO_LARGE: (
        "the index of {token} is above the limit of {limit}. If the file is right, raise it with max_features "
        "(--max-features)."
    ),
    kernel.INDEX_BELOW_BASE: "indices start at 1 here, got {token}.",
}


@dataclass(frozen=True, slots=True)
class LibsvmData:
    r"""What a LIBSVM file holds.

    Attributes
    ----------
    X : CSR array of shape (n, d)
    y : array of shape (n,)
        The labels as float64.
    index_base : int
        0 or 1: the index of the first feature in the file.
    bad_lines : int
        Broken lines that were skipped.
    ignored : int
        Entries left out because their index is beyond `n_features`.

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.io import read_libsvm
    >>> data = read_libsvm(BytesIO(b"1 0:2\n1 0:x\n"), skip_bad_lines=True)
    >>> data.index_base, data.bad_lines
    (0, 1)
    """

    X: Any
    y: Array
    index_base: int
    bad_lines: int
    ignored: int


def read_libsvm(
    file: str | os.PathLike[str] | IO[bytes] | Source,
    *,
    name: str = "",
    n_features: int | None = None,
    index_base: int | None = None,
    ignore_beyond: bool = False,
    max_features: int = MAX_FEATURES,
    dtype: Any = np.float64,
    skip_bad_lines: bool = False,
    progress: Progress | None = None,
) -> LibsvmData:
    r"""Read LIBSVM text, plain or compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    file : path, "-" or binary stream
        "-" is standard input.
    name : str, optional
        What messages call the file.
    n_features : int, optional
        d. By default the greatest index decides.
    index_base : 0, 1 or None
        Index of the first feature. By default 0 if the index 0 occurs, otherwise 1.
    ignore_beyond : bool, default=False
        Leave out entries beyond `n_features` instead of refusing them. Needs `n_features` and `index_base`.
    max_features : int
        A greater index is an error.
    dtype : float64 or float32
        Of the values.
    skip_bad_lines : bool, default=False
        Count broken lines and go on.
    progress : callable, optional
        Called with the bytes read and the file's size.

    Returns
    -------
    LibsvmData

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.io import read_libsvm
    >>> data = read_libsvm(BytesIO(b"+1 1:0.5 3:2\n-1 2:25e-2  # a comment\n"))
    >>> data.X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]])
    >>> data.y, data.index_base
    (array([ 1., -1.]), 1)
    """
    if index_base not in (None, 0, 1):
        raise ValueError(f"index_base must be 0, 1 or None, got {index_base!r}.")
    if ignore_beyond and (n_features is None or index_base is None):
        raise ValueError("ignore_beyond needs n_features and index_base.")
    with open_source(file, name, progress) as source:
        keep = n_features if ignore_beyond else None
        reader = LibsvmReader(source, index_base, keep, max_features, dtype, skip_bad_lines)
        reader.run()
        return reader.result(n_features)


class _Slab:
    """Room for some rows and entries."""

    def __init__(self, rows: int, entries: int, dtype: Any) -> None:
        self.labels = np.empty(rows)
        self.lengths = np.empty(rows, dtype=np.int64)
        self.indices = np.empty(entries, dtype=np.int32)
        self.values = np.empty(entries, dtype=dtype)
        self.n_rows = self.n_entries = 0


class LibsvmReader:
    """Reads one stream; messages count its lines from `first_line`."""

    def __init__(
        self,
        source: Source,
        index_base: int | None,
        keep: int | None,
        max_features: int,
        dtype: Any,
        skip_bad_lines: bool,
        first_line: int = 1,
    ) -> None:
        self.source, self.index_base, self.skip_bad_lines = source, index_base, skip_bad_lines
        self.dtype = np.dtype(dtype)
        self.largest = float(np.finfo(self.dtype).max)
        base = index_base or 0
        self.keep_below = keep + base if keep is not None else 1 << 40
        self.limit = min(max_features, 2**31 - 2) if keep is None else 1 << 39
        self.state = np.zeros(kernel.STATE_SIZE, dtype=np.int64)
        self.state[kernel.LINE] = first_line
        self.state[kernel.LEAST_INDEX], self.state[kernel.GREATEST_INDEX] = 1 << 40, _UNKNOWN_BASE
        self.hard = np.empty((1024, 4), dtype=np.int64)
        self.slabs = [_Slab(_FIRST_SLAB, _FIRST_SLAB, self.dtype)]

    # --- text in ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Read the stream to its end."""
        buffer = np.empty(_BUFFER + 1, dtype=np.uint8)  # one byte more for the newline that the last line may lack
        filled, ended = 0, False
        with self.source.readable():
            while not ended:
                filled, ended = self._fill(buffer, filled)
                if ended and filled and buffer[filled - 1] != 10:
                    buffer[filled] = 10
                    filled += 1
                stop = kernel.end_of_last_line(buffer, filled)
                self.state[kernel.POSITION] = self._after_mark(buffer, filled)
                self._parse(buffer, stop)
                left = filled - stop
                buffer[:left] = buffer[stop:filled].copy()
                filled = left
                if filled > buffer.size // 2:
                    buffer = self._larger(buffer)

    def _fill(self, buffer: Array, filled: int) -> tuple[int, bool]:
        view = memoryview(buffer.data)
        while filled < buffer.size - 1:
            count = self.source.stream.readinto(view[filled : buffer.size - 1])  # type: ignore[attr-defined]
            if not count:
                return filled, True
            filled += count
        return filled, False

    def _after_mark(self, buffer: Array, filled: int) -> int:
        """Skip the byte order mark that some editors put at the start of a file."""
        return 3 if self.state[kernel.LINE] == 1 and buffer[: min(3, filled)].tobytes() == b"\xef\xbb\xbf" else 0

    def _larger(self, buffer: Array) -> Array:
        if buffer.size > _LONGEST_LINE:
            problem = f"the line is longer than {_LONGEST_LINE >> 20} MiB; is this LIBSVM text?"
            raise DataError(self.source.name, problem, int(self.state[kernel.LINE]))
        larger = np.empty(2 * (buffer.size - 1) + 1, dtype=np.uint8)
        larger[: buffer.size] = buffer
        return larger

    # --- rows out ---------------------------------------------------------------------------------------------------

    def _parse(self, buffer: Array, stop: int) -> None:
        outcome = kernel.NO_ROOM
        while outcome == kernel.NO_ROOM:
            slab, before = self.slabs[-1], int(self.state[kernel.POSITION])
            outcome = kernel.scan(
                buffer,
                stop,
                self.skip_bad_lines,
                self.index_base or 0,
                self.keep_below,
                self.limit,
                self.largest,
                slab.labels,
                slab.lengths,
                slab.indices,
                slab.values,
                self.hard,
                self.state,
            )
            slab.n_rows, slab.n_entries = int(self.state[kernel.ROWS]), int(self.state[kernel.ENTRIES])
            self._read_hard_numbers(buffer, slab)
            if outcome == kernel.NO_ROOM:
                self._make_room(buffer, stop, stuck=int(self.state[kernel.POSITION]) == before)
        if outcome == kernel.BROKEN:
            self._complain(buffer)

    def _read_hard_numbers(self, buffer: Array, slab: _Slab) -> None:
        """Let Python read what the kernel could not decide."""
        count = int(self.state[kernel.HARD])
        for place, is_value, start, end in self.hard[:count].tolist():
            number = float(buffer[start:end].tobytes())
            (slab.values if is_value else slab.labels)[place] = number
        self.state[kernel.HARD] = 0

    def _make_room(self, buffer: Array, stop: int, stuck: bool) -> None:
        """Start a new slab; when a single row did not fit, one that must hold it."""
        rows, entries = self.slabs[-1].labels.size, self.slabs[-1].indices.size
        if stuck:
            begin = int(self.state[kernel.POSITION])
            line_end = begin + int(np.argmax(buffer[begin:stop] == 10))
            most = (line_end - begin) // 4 + 2  # " 1:2" is the shortest entry
            entries = max(entries, most)
            if self.hard.shape[0] < most:
                self.hard = np.empty((most, 4), dtype=np.int64)
        else:
            rows, entries = min(2 * rows, _LARGEST_SLAB), min(2 * entries, _LARGEST_SLAB)
        self.slabs.append(_Slab(rows, entries, self.dtype))
        self.state[kernel.ROWS] = self.state[kernel.ENTRIES] = 0

    def _complain(self, buffer: Array) -> None:
        at = int(self.state[kernel.ERROR_POSITION])
        token = buffer[at : at + 200].tobytes().split(maxsplit=1)[0]
        problem = _EXPECTED[int(self.state[kernel.ERROR])].format(token=shown(token), limit=self.limit)
        raise DataError(self.source.name, problem, int(self.state[kernel.LINE]))

    # --- the matrix -------------------------------------------------------------------------------------------------

    def result(self, n_features: int | None, may_be_empty: bool = False) -> LibsvmData:
        """Copy the slabs into the final arrays, dropping each when it is copied."""
        base = self._base()
        d = self._columns(base, n_features)
        n = sum(slab.n_rows for slab in self.slabs)
        nnz = sum(slab.n_entries for slab in self.slabs)
        if n == 0 and not may_be_empty:
            bad = int(self.state[kernel.BAD_LINES])
            reason = f"none of its {bad} lines is LIBSVM text" if bad else "it has no rows"
            raise DataError(self.source.name, f"{reason}.")
        index_type = np.int32 if nnz < 2**31 else np.int64
        y, values, indices = np.empty(n), np.empty(nnz, dtype=self.dtype), np.empty(nnz, dtype=index_type)
        indptr = np.zeros(n + 1, dtype=index_type)
        row = entry = 0
        self.slabs.reverse()
        while self.slabs:
            slab = self.slabs.pop()
            rows, entries = slice(row, row + slab.n_rows), slice(entry, entry + slab.n_entries)
            y[rows] = slab.labels[: slab.n_rows]
            indptr[row + 1 : row + 1 + slab.n_rows] = entry + np.cumsum(slab.lengths[: slab.n_rows])
            values[entries] = slab.values[: slab.n_entries]
            np.subtract(slab.indices[: slab.n_entries], base, out=indices[entries], casting="unsafe")
            row, entry = rows.stop, entries.stop
        X = scipy.sparse.csr_array((values, indices, indptr), shape=(n, d))
        X.has_canonical_format = True  # the scan refuses indices that do not ascend
        return LibsvmData(X, y, base, int(self.state[kernel.BAD_LINES]), int(self.state[kernel.IGNORED]))

    def _base(self) -> int:
        if self.index_base is not None:
            return self.index_base
        return 0 if self.state[kernel.LEAST_INDEX] == 0 else 1

    def _columns(self, base: int, n_features: int | None) -> int:
        seen = max(0, int(self.state[kernel.GREATEST_INDEX]) - base + 1)
        if n_features is None:
            return seen
        if seen > n_features and not self.state[kernel.IGNORED]:
            index = seen - 1 + base
            raise DataError(self.source.name, f"the feature index {index} is beyond the {n_features} features.")
        return n_features
