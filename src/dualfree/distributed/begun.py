"""Partitions whose fit has begun before Dask knows of them: kept with their block, on its worker.

The first request of a fit with one partition does everything at once (`opening`). What is unfinished then waits here for the
task that makes a `Part` of the same block for the same fit, and is gone with the block when no such task comes.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from .part import Part
from .partitions import Block

_lock = threading.Lock()
_waiting: WeakKeyDictionary[Block, dict[int, Part]] = WeakKeyDictionary()


def left(block: Block, fit: int, part: Part) -> None:
    """Leave the part for later."""
    with _lock:
        _waiting.setdefault(block, {})[fit] = part


def taken(block: Block, fit: int) -> Part | None:
    """Take the part that this fit has left; None where it has not left any."""
    if not isinstance(block, Block):
        return None
    with _lock:
        parts = _waiting.get(block, {})
        part = parts.pop(fit, None)
        if not parts:
            _waiting.pop(block, None)
        return part
