"""One thread means one thread, in BLAS as well.

numpy hands dot products and small matrices to a threaded BLAS, which takes every core for work that one would finish
sooner; on a busy machine a dot product of 50,000 numbers can then take milliseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[Any] = []  # one entry per context that is open; the first one holds the limits to restore
# Limits that could not be restored, by library: some builds of OpenBLAS hear of a change in the main thread only.
_owed: dict[int, int] = {}


@cache
def _libraries() -> list[Any]:
    """What controls each BLAS; looking through all loaded libraries takes time, so it is done once."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS runs on one thread.

    The limit is the process's, and contexts of several threads overlap: the first one in sets it, the last one out lifts it.
    """
    with _lock:
        counts = [library.get_num_threads() for library in _libraries()]
        _inside.append(None if _inside else [_owed.pop(k, count) for k, count in enumerate(counts)])
        _limit(counts, [1] * len(counts))
    try:
        yield
    finally:
        with _lock:
            before = _inside[0]
            _inside.pop()
            if not _inside and any(count != 1 for count in before):
                _limit([library.get_num_threads() for library in _libraries()], before)
                for k, (library, count) in enumerate(zip(_libraries(), before, strict=True)):
                    if library.get_num_threads() != count:
                        _owed[k] = count  # the next context that ends will try again


def _limit(before: list[int], after: list[int]) -> None:
    """Change the numbers of threads that are to change; most often none is."""
    for library, old, new in zip(_libraries(), before, after, strict=True):
        if old != new:
            library.set_num_threads(new)
