"""How much a partition does in a round: in proportion to what a message costs.

A round costs a message each way (`_LATENCY`) and the transport of w and of its change; a pass costs time per stored entry and
per row. Where a message costs less than a pass, a round is a window of a pass (`windows`) that costs about as much as the
message. Otherwise it is two passes: one needs up to twice as many rounds, and three or four have saved none wherever it was
measured.

Costs are counted, as a rule, from entries and bytes, never from the clock: the same problem then gets the same numbers on
every machine and in every run, and the same bits. On request they are measured.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np

from .._checks import real_number
from ..solvers.auto import PER_ENTRY, PER_ROW
from ..solvers.hessian import PER_CUBE
from ..trace import Trace
from . import tasks
from .cluster import Cluster
from .spec import Spec
from .summary import Summary

# Nanoseconds, with worker processes on one server; only their ratios to each other and to those of `auto` matter.
_LATENCY = 1.5e7
_PER_BYTE = 1.0
_PER_FAR_ENTRY, _NEAR_BYTES = 10.0, 1 << 21  # where w does not fit a core's own cache
WHOLE_PASSES = 2
_FEWEST_WINDOWS, _MOST_WINDOWS = 4, 8
_DEPTHS = (4, 8)
_NEWTON_STEPS = 8

CHOICES = ("counted", "measured")


def checked_passes(given: float | str) -> float | str:
    """Return `local_passes`: one of the choices, a whole number, or one over a whole number."""
    if isinstance(given, str):
        if given not in CHOICES:
            raise ValueError(f"local_passes must be a number, 'counted' or 'measured', got {given!r}.")
        return given
    passes = real_number("local_passes", given, low=0.0, strict=True)
    whole = passes if passes >= 1 else 1 / passes
    if abs(whole - round(whole)) > 1e-9 * whole:
        raise ValueError(f"local_passes must be a whole number or 1 over a whole number, such as 0.25, got {given!r}.")
    return float(round(passes)) if passes >= 1 else 1 / round(whole)


def local_passes(given: float | str, cluster: Cluster, spec: Spec, summary: Summary) -> float:
    """Passes a round."""
    if not isinstance(given, str):
        return given
    if given == "measured":
        return passes_for(*measured_costs(cluster, spec))
    return passes_for(pass_cost(summary, spec.partitions), message_cost(8.0 * spec.d, spec.partitions))


def passes_for(one_pass: float, message: float) -> float:
    """Passes a round, a pass and a message costing so much."""
    if message < one_pass:
        return 1.0 / min(_MOST_WINDOWS, max(_FEWEST_WINDOWS, round(one_pass / message)))
    return float(WHOLE_PASSES)


def measured_costs(cluster: Cluster, spec: Spec) -> tuple[float, float]:
    """Seconds of a pass on the busiest worker, and of a message: from a window that is visited and forgotten."""
    for _ in range(2):  # in the first one kernels are loaded and connections made
        w = np.zeros(spec.d)
        began = time.perf_counter()
        reply = cluster.patiently(partial(cluster.stage, "probe", tasks.probe, spec, w=w))
        whole = time.perf_counter() - began
        computing: dict[str, float] = {}
        for place, seconds in zip(reply.places, reply.terms, strict=True):
            computing[place] = computing.get(place, 0.0) + seconds
        busiest = max(computing.values())
    return tasks.PROBED * busiest, max(whole - busiest, 1e-6)


def pass_cost(summary: Summary, n_partitions: int) -> float:
    """Nanoseconds of one pass of a partition of average size."""
    per_entry = PER_ENTRY if 8 * summary.d <= _NEAR_BYTES else _PER_FAR_ENTRY
    return (per_entry * summary.nnz + PER_ROW * summary.n) / n_partitions


def message_cost(n_bytes: float, n_partitions: int) -> float:
    """Nanoseconds of sending so many bytes to every partition and getting as many from each."""
    return _LATENCY + _PER_BYTE * n_bytes * (1 + n_partitions)


def history_depth(summary: Summary) -> int:
    """Dual vectors that a worker keeps: they should not take more memory than half the data."""
    entries_per_row = summary.nnz / summary.n
    return int(min(_DEPTHS[1], max(_DEPTHS[0], entries_per_row / 2)))


def rounds_left(trace: Trace, target: float) -> float:
    """Rounds until the gap is at the target, extrapolated from the last two evaluations."""
    if len(trace) < 2:
        return math.inf
    before, now = trace[-2], trace[-1]
    if not 0 < now.gap < before.gap or now.epoch == before.epoch:
        return math.inf
    rate = math.log(before.gap / now.gap) / (now.epoch - before.epoch)
    return math.log(now.gap / max(target, 1e-15 * now.gap)) / rate


def newton_pays(summary: Summary, n_partitions: int, passes: float, left: float) -> bool:
    """Whether a handful of Newton steps with the whole Hessian costs less than the rounds that are left."""
    one_pass, d = pass_cost(summary, n_partitions), summary.d
    a_round = passes * one_pass + message_cost(8.0 * d, n_partitions)
    matrices = message_cost(4.0 * d * d, n_partitions)
    a_step = 3 * one_pass + summary.hessian_cost + PER_CUBE * d**3 + matrices + _LATENCY
    return left * a_round > _NEWTON_STEPS * a_step
