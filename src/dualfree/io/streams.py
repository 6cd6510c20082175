"""Files as streams of bytes: plain, compressed or standard input, with a count of what has been read.

Compression is recognised by a file's first bytes, never by its name, so it works for standard input as well.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from .errors import DataError

Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far and the size of the file, None where it is unknown."""

STDIN = "-"
_PEEK = 64
_OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_BROKEN_COMPRESSION = (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is compressed in a way that is understood here."""
    return head.startswith(tuple(_OPENERS))


class _Counted(io.RawIOBase):
    """Passes bytes on and reports how many there were."""

    def __init__(self, raw: IO[bytes], size: int | None, progress: Progress | None) -> None:
        self._raw, self._size, self._progress = raw, size, progress
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = cast(Any, self._raw).readinto(buffer) or 0
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._size)
        return int(count)


class Source:
    """An open data file.

    Attributes
    ----------
    name : str
        What messages call it.
    stream : binary stream
        The bytes, decompressed.
    head : bytes
        The first bytes after decompression, not consumed.
    """

    def __init__(self, raw: IO[bytes], name: str, size: int | None, progress: Progress | None) -> None:
        self.name = name
        counted = io.BufferedReader(_Counted(raw, size, progress), 1 << 20)
        magic = counted.peek(_PEEK)[:_PEEK]
        for start, opener in _OPENERS.items():
            if magic.startswith(start):
                with self.readable():
                    counted = io.BufferedReader(opener(counted), 1 << 20)
                    magic = counted.peek(_PEEK)[:_PEEK]
                break
        self.stream: IO[bytes] = counted
        self.head = magic

    @contextlib.contextmanager
    def readable(self) -> Iterator[None]:
        """Turn the errors of broken compression into a sentence."""
        try:
            yield
        except _BROKEN_COMPRESSION as error:
            raise DataError(self.name, f"the compressed data are damaged or cut off ({error}).") from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise DataError(self.name, f"the compressed data are damaged ({error}).") from None


@contextlib.contextmanager
def open_source(
    path: str | os.PathLike[str] | IO[bytes] | Source, name: str = "", progress: Progress | None = None
) -> Iterator[Source]:
    """Open a path, ``"-"`` for standard input, or a binary stream; a source that is open already is passed on."""
    if isinstance(path, Source):
        yield path
    elif not isinstance(path, (str, os.PathLike)):
        yield Source(path, name or str(getattr(path, "name", "the stream")), None, progress)
    elif path == STDIN:
        yield Source(sys.stdin.buffer, name or "standard input", None, progress)
    else:
        name = name or os.fspath(path)
        if Path(path).is_dir():
            raise DataError(name, "this is a folder; name a file.")
        if not Path(path).exists():
            raise DataError(name, "there is no such file.")
        with open(path, "rb", buffering=0) as raw:
            yield Source(cast(Any, raw), name, os.fstat(raw.fileno()).st_size or None, progress)
