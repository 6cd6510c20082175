"""Coordinate steps on several threads: CoCoA+ (Ma et al. 2015) within one machine.

Rows are dealt out to the threads at random, anew each time, and each thread visits its own with its own copy of w. After each
window, a quarter of an epoch, what the copies gained is added up in a fixed order: no thread ever reads what another one is
writing, and the same number of threads gives the same bits.

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
    """The threads' copies of w, as they change and as all agreed last; and σ'."""

    def __init__(self, team: Team, d: int) -> None:
        self.team = team
        self.copies, self.bases = np.empty((team.size, d)), np.empty((team.size, d))
        self.sigma = 1.0

    def visit(self, data: Any, order: Array, seed: Any, alpha: Array, w: Array, offset: Array) -> float:
        """Visit rows in about this order, changing α, w and the offset; return Σ (α_i⁺ − α_i)²."""
        size = self.team.size
        dealt, starts = _deal(order, size, seed)
        windows = max(1, min(_WINDOWS, order.size // (size * _LEAST_VISITS)))
        moves = np.zeros((size, 16))  # of the offset; each thread's on cache lines of its own
        arrivals = meeting_point(size)
        state = (self.copies, self.bases, moves, arrivals, self.sigma)
        jobs = [_Job(data, k, windows, dealt, starts, alpha, w, offset[0], *state) for k in range(size)]
        found = self.team.run(jobs, give_up=lambda: abandon(arrivals))
        self.sigma, offset[0] = found[0][1], found[0][2]
        return sum(squares for squares, _, _ in found)


class _Job:
    """One thread's visits."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __call__(self) -> tuple[float, float, float]:
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
    own: int,
    windows: int,
    dealt: Any,
    starts: Any,
    alpha: Any,
    w: Any,
    offset: float,
    copies: Any,
    bases: Any,
    moves: Any,
    arrivals: Any,
    sigma: float,
) -> tuple[float, float, float]:
    """What thread `own` does: visits with its own copy of w, then the sum of all copies; return Σ δ², σ' and b + βω."""
    size = copies.shape[0]
    copy, base = copies[own], bases[own]
    copy[:] = w
    base[:] = w
    here, total = np.empty(1), np.empty(_COLUMNS)
    squares = 0.0
    for window in range(windows):
        count = starts[own + 1] - starts[own]
        first, last = starts[own] + count * window // windows, starts[own] + count * (window + 1) // windows
        here[0] = offset
        _, gained = visit_rows(rows, loss, y, s, v, scale * sigma, extra, False, dealt[first:last], alpha, copy, here)
        squares += gained
        moves[own, 0] = here[0] - offset
        if not meet(arrivals, own):
            return squares, sigma, offset  # the run ends: w is of no use any more, α is
        # every thread finds the same sums for itself: nobody writes what another one reads
        together, apart = _put_together(copies, 1.0 / sigma, base, total)
        moved = 0.0
        for k in range(size):
            moved += moves[k, 0]
        if not meet(arrivals, own):
            return squares, sigma, offset
        copy[:] = base
        offset += moved / sigma
        if apart > 0.0:
            sigma = min(float(size), max(1.0, _CAUTION * together / apart))
    if own == 0:
        w[:] = base
    return squares, sigma, offset


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
def _put_together(copies: Any, share: float, base: Any, total: Any) -> tuple[float, float]:
    """base += share Σ_k (copy_k − base); return ‖Σ Δ_k‖² and Σ ‖Δ_k‖². `total` is scratch."""
    together, apart = 0.0, 0.0
    for first in range(0, base.size, total.size):
        last = min(first + total.size, base.size)
        total[:] = 0.0
        for k in range(copies.shape[0]):
            for j in range(first, last):
                change = copies[k, j] - base[j]
                total[j - first] += change
                apart += change * change
        for j in range(first, last):
            together += total[j - first] * total[j - first]
            base[j] += share * total[j - first]
    return together, apart
