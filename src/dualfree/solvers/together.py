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
from ..barrier import meet, meeting_point
from ..sampling.permutation import mixed
from ..team import SAID, Team, columns_of
from ..workers import share_out
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
        self.scratch = np.empty((team.size, _COLUMNS))
        self.sigma = 1.0

    def visit(
        self, data: Any, order: Array, seed: Any, alpha: Array, w: Array, offset: Array
    ) -> tuple[int, float, float]:
        """Visit rows in about this order, changing α, w and the offset; return windows, Σ |c| ‖x_i‖ and what D gained."""
        size = self.team.size
        dealt, starts = _deal(order, size, seed)
        windows = max(1, min(_WINDOWS, order.size // (size * _LEAST_VISITS)))
        way, gained, self.sigma = _visit(
            self.team.threads,
            *data,
            self.inverse_smoothness,
            windows,
            dealt,
            starts,
            alpha,
            w,
            offset,
            self.copies,
            self.scratch,
            meeting_point(size),
            self.sigma,
        )
        return windows, way, gained


@kernel
def _visit(
    threads: Any,
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    inverse_smoothness: float,
    windows: int,
    dealt: Any,
    starts: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    copies: Any,
    scratch: Any,
    arrivals: Any,
    sigma: float,
) -> tuple[float, float, float]:
    """Return Σ |c| ‖x_i‖, n times the gain of D, and σ'."""
    data = (rows, loss, y, s, v, scale, extra, inverse_smoothness)
    found, said = np.zeros((copies.shape[0], SAID)), np.zeros((2, copies.shape[0], SAID))
    means = (copies, scratch, said, found, arrivals)
    share_out(threads[0], _windows, (data, windows, dealt, starts, alpha, w, offset[0], sigma, means))
    offset[0] = found[0, 3]
    return found[:, 0].sum(), found[:, 1].sum(), found[0, 2]


@device
def _windows(
    own: int,
    data: Any,
    windows: int,
    dealt: Any,
    starts: Any,
    alpha: Any,
    w: Any,
    offset: float,
    sigma: float,
    means: Any,
) -> None:
    """What thread `own` does: visits with its own copy of w, then its columns of the sum of all copies.

    `shared` holds what each thread has to say to the others, on cache lines of its own; every other window uses the same part
    of it, so that nobody writes to what a slower one has yet to read. In the end `found` has Σ |c| ‖x_i‖, n times the gain of
    D, σ' and b + βω.
    """
    rows, loss, y, s, v, scale, extra, inverse_smoothness = data
    copies, scratch, shared, found, arrivals = means
    size, d = copies.shape
    copy = copies[own]
    copy[:] = w
    first_column, last_column = columns_of(own, size, d)
    here = found[own, 3:4]
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
        meet(arrivals, own)
        said[own, 1], said[own, 2] = _put_together(copies, 1.0 / sigma, w, first_column, last_column, scratch[own])
        meet(arrivals, own)
        copy[:] = w
        moved, together, apart = 0.0, 0.0, 0.0
        for k in range(size):  # every thread finds the same sums for itself
            moved += said[k, 0]
            together += said[k, 1]
            apart += said[k, 2]
        offset += moved / sigma
        if apart > 0.0:
            sigma = min(float(size), max(1.0, _CAUTION * together / apart))
    found[own, 0], found[own, 1], found[own, 2], found[own, 3] = travelled, gained, sigma, offset


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
