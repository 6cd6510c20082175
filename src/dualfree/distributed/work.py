"""How much a partition does in a round: weighed by counting, never by the clock.

So the same problem gets the same numbers on every machine and in every run, and the same bits. A round costs a message
each way (`_LATENCY`) and the transport of w and of its change; a pass costs time per stored entry and per row. Passes
are repeated until a round's computation is about as long as its communication, at least `_LEAST` times: the
acceleration of the rounds needs local solutions that are nearly exact.
"""

from __future__ import annotations

from .summary import Summary

# Nanoseconds, as measured on one server with worker processes; only their ratios matter.
_LATENCY = 1.5e7
_PER_BYTE = 1.0
_PER_ENTRY, _PER_ROW = 2.5, 30.0
_LEAST, _MOST = 5, 20
_DEPTHS = (3, 8)


def pass_cost(summary: Summary, n_partitions: int) -> float:
    """Nanoseconds of one pass of a partition of average size."""
    return (_PER_ENTRY * summary.nnz + _PER_ROW * summary.n) / n_partitions


def message_cost(n_bytes: float, n_partitions: int) -> float:
    """Nanoseconds of sending so many bytes to every partition and getting as many from each."""
    return _LATENCY + _PER_BYTE * n_bytes * (1 + n_partitions)


def local_passes(summary: Summary, n_partitions: int) -> int:
    """Passes a round."""
    ratio = message_cost(8.0 * summary.d, n_partitions) / pass_cost(summary, n_partitions)
    return int(min(_MOST, max(_LEAST, round(ratio))))


def history_depth(summary: Summary) -> int:
    """Dual vectors that a worker keeps: they should not take more memory than half the data."""
    entries_per_row = summary.nnz / summary.n
    return int(min(_DEPTHS[1], max(_DEPTHS[0], entries_per_row / 2)))
