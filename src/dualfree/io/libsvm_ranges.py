"""LIBSVM text in pieces, so that several processes can read one large file: each piece is a range of bytes.

A line belongs to the range in which it begins. Ranges know nothing of each other, and no pass over the file is needed to
find where lines begin.
"""

from __future__ import annotations

import io
import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from .errors import DataError
from .libsvm import MAX_FEATURES, LibsvmData, LibsvmReader
from .streams import Source, is_compressed

_COUNTED_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes `start` to `stop` of a file; `stop` None is its end, whatever that is.

    Examples
    --------
    >>> from dualfree.io.libsvm_ranges import ByteRange
    >>> print(ByteRange("train.svm", 0, 1024))
    train.svm, bytes 0 to 1024
    >>> print(ByteRange("train.svm.xz"))
    train.svm.xz
    """

    path: str
    start: int = 0
    stop: int | None = None

    def __str__(self) -> str:
        return self.path if self.stop is None else f"{self.path}, bytes {self.start} to {self.stop}"


def split_file(path: str | os.PathLike[str], size: int) -> list[ByteRange]:
    """Return ranges of about `size` bytes; one for the whole file where it is compressed or not larger than that."""
    name = os.fspath(path)
    if not Path(path).is_file():
        raise DataError(name, "there is no such file.")
    with open(path, "rb") as file:
        compressed = is_compressed(file.read(8))
    total = os.path.getsize(path)
    if compressed or total <= size:
        return [ByteRange(name)]
    count = -(-total // size)
    edges = [total * k // count for k in range(count + 1)]
    return [ByteRange(name, start, stop) for start, stop in itertools.pairwise(edges)]


def read_libsvm_range(
    part: ByteRange,
    *,
    index_base: int | None = None,
    max_features: int = MAX_FEATURES,
    dtype: Any = np.float64,
    skip_bad_lines: bool = False,
) -> LibsvmData:
    r"""Read the lines that begin in a range; there may be none.

    Parameters
    ----------
    part : ByteRange
        Where to read.
    index_base, max_features, dtype, skip_bad_lines
        See `read_libsvm`. The index base that is detected is that of these lines alone.

    Returns
    -------
    LibsvmData

    Examples
    --------
    >>> import tempfile
    >>> from dualfree.io.libsvm_ranges import read_libsvm_range, split_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = open(folder + "/a.svm", "wb").write(b"1 1:1\n2 1:2\n3 1:3\n")
    ...     [read_libsvm_range(part).y.tolist() for part in split_file(folder + "/a.svm", 10)]
    [[1.0, 2.0], [3.0]]
    """

    def read(first_line: int) -> LibsvmData:
        with open(part.path, "rb", buffering=0) as file:
            stretch = file if part.stop is None else _Stretch(file, *_whole_lines(part))
            source = Source(cast(IO[bytes], stretch), part.path, None, None)
            reader = LibsvmReader(source, index_base, None, max_features, dtype, skip_bad_lines, first_line)
            reader.run()
            return reader.result(None, may_be_empty=True)

    try:
        return read(1)
    except FileNotFoundError:
        raise DataError(part.path, "there is no such file.") from None
    except DataError:
        if part.start == 0:
            raise
    return read(1 + _lines_before(part))  # fails again, and now the message has the right line


def _whole_lines(part: ByteRange) -> tuple[int, int]:
    """Return where the first line that begins in the range starts, and where the last one ends."""
    with open(part.path, "rb") as file:

        def line_start(position: int) -> int:
            if position == 0:
                return 0
            file.seek(position - 1)  # a line that begins exactly at `position` is preceded by a newline
            file.readline()
            return file.tell()

        assert part.stop is not None
        return line_start(part.start), line_start(part.stop)


def _lines_before(part: ByteRange) -> int:
    start, _ = _whole_lines(part)
    lines = 0
    with open(part.path, "rb") as file:
        while start > 0:
            block = file.read(min(start, _COUNTED_AT_ONCE))
            if not block:
                break
            lines += block.count(b"\n")
            start -= len(block)
    return lines


class _Stretch(io.RawIOBase):
    """The bytes of a file from `start` to `stop`."""

    def __init__(self, file: Any, start: int, stop: int) -> None:
        self._file, self._left = file, stop - start
        file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[: max(0, self._left)]
        count = int(self._file.readinto(view) or 0) if len(view) else 0
        self._left -= count
        return count
