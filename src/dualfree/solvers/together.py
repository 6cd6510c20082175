"""Coordinate steps on several threads: CoCoA+ (Ma et al. 2015) within one machine.

Rows are dealt out to the threads at random, anew each time, and each thread visits its own with its own copy of w. After each
window, a quarter of an epoch, what the copies gained is added up in a fixed order, each thread for its own columns: no thread
ever reads what another one is writing, and the same number of threads gives the same bits.

Steps that do not know of one another may overshoot together. They are safe with a step length for which
σ' ≥ ‖Σ Δ_k‖² / Σ ‖Δ_k‖², Δ_k being what thread k adds to w: 1 where rows of different threads share no columns, the number of
threads at worst. That ratio is known after each window; the next one uses it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Array
from .._jit import device, kernel
from ..barrier import abandon, meet, meeting_point
from ..sampling.permutation import mixed
from ..team import Team
from .visits import visit_rows

_WINDOWS = 4
_LEAST_VISITS = 256
_CAUTION = 1.1
_COLUMNS = 512


class Together:
    """The threads' copies of w, and σ'."""

    def __init__(self, team: Team, d: int, inverse_smoothness: float) -> None:
        self.team, self.inverse_smoothness = team, inverse_smoothness
        self.copies = np.empty((team.size, d))
        self.sigma = 1.0

    def visit(
        self, data: Any, order: Array, seed: Any, alpha: Array, w: Array, offset: Array
    ) -> tuple[int, float, float]:
        """Visit rows in about this order, changing α, w and the offset; return windows, Σ |c| ‖x_i‖ and what D gained."""
        size = self.team.size
        dealt, starts = _deal(order, size, seed)
        windows = max(1, min(_WINDOWS, order.size // (size * _LEAST_VISITS)))
        arrivals = meeting_point(size)
        state = (self.copies, np.zeros((2, size, 16)), arrivals, self.sigma)
        jobs = [
            _Job(data, self.inverse_smoothness, k, windows, dealt, starts, alpha, w, offset[0], *state)
            for k in range(size)
        ]
        found = self.team.run(jobs, give_up=lambda: abandon(arrivals))
        _, _, self.sigma, offset[0] = found[0]
        return windows, sum(one[0] for one in found), sum(one[1] for one in found)


class _Job:
    """One thread's visits."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __call__(self) -> tuple[float, float, float, float]:
        data, *rest = self.arguments
        return _windows(*data, *rest)


@kernel
def _windows(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    inverse_smoothness: float,
    own: int,
    windows: int,
    dealt: Any,
    starts: Any,
    alpha: Any,
    w: Any,
    offset: float,
    copies: Any,
    shared: Any,
    arrivals: Any,
    sigma: float,
) -> tuple[float, float, float, float]:
    """What thread `own` does: visits with its own copy of w, then its columns of the sum of all copies.

    Return Σ |c| ‖x_i‖, n times the gain of D, σ' and b + βω. `shared` holds what each thread has to say to the others, on cache
    lines of its own; every other window uses the same part of it, so that nobody writes to what a slower one has yet to read.
    """
    size, d = copies.shape
    copy = copies[own]
    copy[:] = w
    first_column, last_column = _first_column(own, size, d), _first_column(own + 1, size, d)
    here, total = np.empty(1), np.empty(_COLUMNS)
    travelled, gained = 0.0, 0.0
    for window in range(windows):
        said = shared[window % 2]
        count = starts[own + 1] - starts[own]
        first, last = starts[own] + count * window // windows, starts[own] + count * (window + 1) // windows
        here[0] = offset
        way, gain = visit_rows(
            rows, loss, y, s, v, scale * sigma, extra, False, inverse_smoothness, dealt[first:last], alpha, copy, here
        )
        travelled += way
        gained += gain
        said[own, 0] = here[0] - offset
        if not meet(arrivals, own):
            return travelled, gained, sigma, offset  # the run ends: w is of no use any more, α is
        said[own, 1], said[own, 2] = _put_together(copies, 1.0 / sigma, w, first_column, last_column, total)
        if not meet(arrivals, own):
            return travelled, gained, sigma, offset
        copy[:] = w
        moved, together, apart = 0.0, 0.0, 0.0
        for k in range(size):  # every thread finds the same sums for itself
            moved += said[k, 0]
            together += said[k, 1]
            apart += said[k, 2]
        offset += moved / sigma
        if apart > 0.0:
            sigma = min(float(size), max(1.0, _CAUTION * together / apart))
    return travelled, gained, sigma, offset


@device
def _first_column(own: int, size: int, d: int) -> int:
    """Where the columns of a thread begin: at a cache line, which two threads must not write to in turns."""
    return d if own == size else d * own // size // 8 * 8


@kernel
def _deal(order: Any, size: int, seed: Any) -> Any:
    """Deal rows out to `size` threads at random, each row to one; return the visits by thread, and where each begins."""
    counts = np.zeros(size + 1, dtype=np.int64)
    owner = np.empty(order.size, dtype=np.uint16)
    for k in range(order.size):
        # eight α_i share a cache line, which two threads must not write to in turns
        bits = mixed(seed + (np.uint64(order[k]) >> np.uint64(4)) * np.uint64(0x9E3779B97F4A7C15))
        owner[k] = (bits >> np.uint64(40)) % np.uint64(size)
        counts[owner[k] + 1] += 1
    starts = np.cumsum(counts)
    place = starts.copy()
    dealt = np.empty_like(order)
    for k in range(order.size):
        dealt[place[owner[k]]] = order[k]
        place[owner[k]] += 1
    return dealt, starts


@device(reassociate=True)
def _put_together(copies: Any, share: float, w: Any, begin: int, end: int, total: Any) -> tuple[float, float]:
    """w += share Σ_k (copy_k − w) for some columns; return their part of ‖Σ Δ_k‖² and of Σ ‖Δ_k‖². `total` is scratch."""
    together, apart = 0.0, 0.0
    for first in range(begin, end, total.size):
        last = min(first + total.size, end)
        total[:] = 0.0
        for k in range(copies.shape[0]):
            for j in range(first, last):
                change = copies[k, j] - w[j]
                total[j - first] += change
                apart += change * change
        for j in range(first, last):
            together += total[j - first] * total[j - first]
            w[j] += share * total[j - first]
    return together, apart
