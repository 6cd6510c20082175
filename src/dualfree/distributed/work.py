"""How much a partition does in a round: weighed by counting, never by the clock.

So the same problem gets the same numbers on every machine and in every run, and the same bits. A round costs a message
each way (`_LATENCY`) and the transport of w and of its change; a pass costs time per stored entry and per row. Passes
are repeated until a round's computation is about as long as its communication, but at least twice (a single pass needs
half as many rounds again) and at most four times (more have saved no rounds wherever it was measured).
"""

from __future__ import annotations

import math

from ..solvers.auto import PER_CUBE, PER_ENTRY, PER_ROW
from ..trace import Trace
from .summary import Summary

# Nanoseconds, with worker processes on one server; only their ratios to each other and to those of `auto` matter.
_LATENCY = 1.5e7
_PER_BYTE = 1.0
_LEAST, _MOST = 2, 4
_DEPTHS = (4, 8)
_NEWTON_STEPS = 8


def pass_cost(summary: Summary, n_partitions: int) -> float:
    """Nanoseconds of one pass of a partition of average size."""
    return (PER_ENTRY * summary.nnz + PER_ROW * summary.n) / n_partitions


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


def rounds_left(trace: Trace, target: float) -> float:
    """Rounds until the gap is at the target, extrapolated from the last two evaluations."""
    before, now = trace[-2], trace[-1]
    if not 0 < now.gap < before.gap or now.epoch == before.epoch:
        return math.inf
    rate = math.log(before.gap / now.gap) / (now.epoch - before.epoch)
    return math.log(now.gap / max(target, 1e-15 * now.gap)) / rate


def newton_pays(summary: Summary, n_partitions: int, passes: int, left: float) -> bool:
    """Whether a handful of Newton steps with the whole Hessian costs less than the rounds that are left."""
    one_pass, d = pass_cost(summary, n_partitions), summary.d
    a_round = passes * one_pass + message_cost(8.0 * d, n_partitions)
    matrices = message_cost(4.0 * d * d, n_partitions)
    a_step = 3 * one_pass + summary.hessian_cost + PER_CUBE * d**3 + matrices + _LATENCY
    return left * a_round > _NEWTON_STEPS * a_step
