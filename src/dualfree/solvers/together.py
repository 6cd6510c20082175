"""Coordinate steps on several threads: CoCoA+ (Ma et al. 2015) within one machine.

Rows are dealt out to the threads at random, anew each time, and each thread visits its own with its own copy of w. After each
window, a part of an epoch, what the copies gained is added up in a fixed order, each thread for its own columns: no thread
ever reads what another one is writing, and the same number of threads gives the same bits.

Of sparse rows, a few columns are in most of them, and it is there that one thread misses what the others do. Those are put
together several times a window, by themselves: next to each other in memory they are a small part of w.

Steps that do not know of one another may overshoot together. They are safe with a step length for which
σ' ≥ ‖Σ Δ_k‖² / Σ ‖Δ_k‖², Δ_k being what thread k adds to w: 1 where rows of different threads share no columns, the number of
threads at worst. That ratio is known after each window; the next one uses it (the first one, the number of threads).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..barrier import meet, meeting_point
from ..problem import Problem
from ..sampling.permutation import mixed
from ..team import SAID, Team, columns_of, own_part
from .visits import visit_rows

# Windows of an epoch: where w is long, and where it is so short that putting it together costs next to nothing. A long one's
# windows are divided into turns, after which its so many most frequent columns, known from about so many entries, are put
# together. And visits that a window and a turn should have.
_WINDOWS, _SHORT_WINDOWS, _TURNS = 2, 8, 8
_FREQUENT, _COUNTED = 2048, 1 << 17
_LEAST_VISITS, _LEAST_TURN = 256, 128
_CAUTION, _DAMPING = 1.1, 0.6
_COLUMNS = 512
# Rows are dealt out in blocks of 2 to the power of this: eight α_i share a cache line, which two threads must not write to.
_BLOCK = 4


class Together:
    """The threads' copies of w, and σ'."""

    def __init__(self, team: Team, inverse_smoothness: float) -> None:
        problem, size = team.problem, team.size
        self.team, self.inverse_smoothness = team, inverse_smoothness
        self.copies = team.apart(problem.d)
        self.scratch = np.empty((size, _COLUMNS))
        self.frequent = _frequent_columns(problem)
        self.known = np.empty((3, size, _padded(self.frequent.size + 1)))
        self.sigma = float(size)

    def visit(
        self, data: Any, order: Array, seed: Any, alpha: Array, w: Array, offset: Array
    ) -> tuple[int, float, float]:
        """Visit rows in about this order, changing α, w and the offset.

        Return how often something was put together, Σ |c| ‖x_i‖, and n times what D gained.
        """
        size = self.team.size
        each = order.size // size
        windows = max(1, min(_SHORT_WINDOWS if w.size <= _FREQUENT else _WINDOWS, each // _LEAST_VISITS))
        turns = max(1, min(_TURNS, each // windows // _LEAST_TURN)) if self.frequent.size else 1
        means = (self.copies, self.scratch, self.frequent, self.known, np.zeros((2, size, SAID)), meeting_point(size))
        found = np.zeros((size, SAID))
        dealt = np.empty((size, order.size + 16), dtype=order.dtype)
        self.team.run(
            _windows,
            found,
            (*data, self.inverse_smoothness),
            (order, _deal(alpha.size, size, seed), dealt, windows, turns),
            (alpha, w, float(offset[0]), self.sigma),
            means,
            together=True,
        )
        self.sigma, offset[0] = float(found[0, 2]), found[0, 3]
        way, gained = (float(found[:, k].sum()) for k in range(2))
        return windows * turns, way, gained


def _frequent_columns(problem: Problem) -> Array:
    """Return the columns that are in most rows, in their order; none where there are few columns, or where all are in all."""
    if problem.is_dense or problem.d <= _FREQUENT:
        return np.empty(0, dtype=np.int64)
    every = max(1, problem.nnz // _COUNTED)
    return np.asarray(_most_frequent(problem.rows, problem.d, every, _FREQUENT))


def _padded(count: int) -> int:
    """As many numbers as fill whole cache lines."""
    return -(-count // 16) * 16


@kernel
def _most_frequent(rows: Any, d: int, every: int, most: int) -> Any:
    """Return up to `most` columns, those that most of every `every`-th row have."""
    counts = np.zeros(d, dtype=np.int64)
    indices, starts = rows[-2], rows[-1]
    looked_at = 0
    for i in range(0, _rows.row_count(rows), every):
        looked_at += 1
        for k in range(starts[i], starts[i + 1]):
            counts[indices[k]] += 1
    having = np.zeros(looked_at + 2, dtype=np.int64)  # how many columns are in so many rows
    for j in range(d):
        having[counts[j]] += 1
    least, found = looked_at + 1, 0
    while least > 1 and found + having[least - 1] <= most:
        least -= 1
        found += having[least]
    frequent = np.empty(found, dtype=np.int64)
    found = 0
    for j in range(d):
        if counts[j] >= least:
            frequent[found] = j
            found += 1
    return frequent


@kernel
def _windows(own: int, cuts: Any, found: Any, data: Any, visits: Any, point: Any, means: Any) -> None:
    """What thread `own` does: visits with its own copy of w, then its columns of the sum of all copies.

    `known` and `shared` hold what each thread has to say to the others, on cache lines of its own; every other time the same
    part is used, so that nobody writes to what a slower one has yet to read. In the end `found` has Σ |c| ‖x_i‖, n times the
    gain of D, σ' and b + βω.
    """
    rows, loss, y, s, v, scale, extra, inverse_smoothness = data
    order, owners, dealt, windows, turns = visits
    alpha, w, offset, sigma = point
    copies, scratch, frequent, known, shared, arrivals = means
    size, d = cuts.size - 1, w.size
    copy, base = own_part(own, cuts, copies), known[2, own]
    copy[:] = w
    first_column, last_column = columns_of(own, size, d)
    mine = _own_visits(order, owners, own, dealt[own])
    per_offset = 1.0 / extra if extra > 0.0 else 0.0  # the square of ω's change for that of βω's
    here = found[own, 3:4]
    here[0] = offset
    travelled, gained, last, told = 0.0, 0.0, 0, 0
    for window in range(windows):
        together, apart = 0.0, 0.0
        _remember(copy, frequent, here, base)
        for turn in range(turns):
            first, last = last, mine.size * (window * turns + turn + 1) // (windows * turns)
            way, gain = visit_rows(
                rows,
                loss,
                y,
                s,
                v,
                scale * sigma,
                extra,
                False,
                inverse_smoothness,
                mine[first:last],
                alpha,
                copy,
                here,
            )
            travelled += way
            gained += gain
            if turn + 1 < turns:
                news = known[told % 2]
                told += 1
                _tell(copy, frequent, here, base, news[own])
                meet(arrivals, own)
                squares = _hear(news, 1.0 / sigma, per_offset, frequent, base, copy, here)
                together += squares[0]
                apart += squares[1]
        said = shared[window % 2]
        said[own, 0] = here[0] - base[frequent.size]
        meet(arrivals, own)
        _settle(base, frequent, first_column, last_column, w)
        said[own, 1], said[own, 2] = _put_together(
            cuts, copies, 1.0 / sigma, w, first_column, last_column, scratch[own]
        )
        meet(arrivals, own)
        copy[:] = w
        moved = 0.0
        for k in range(size):  # every thread finds the same sums for itself
            moved += said[k, 0]
            together += said[k, 1]
            apart += said[k, 2] + per_offset * said[k, 0] * said[k, 0]
        together += per_offset * moved * moved
        here[0] = base[frequent.size] + moved / sigma
        sigma = _next_sigma(together, apart, size)
    found[own, 0], found[own, 1], found[own, 2] = travelled, gained, sigma


# --- the frequent columns, and b + βω as one more -----------------------------------------------------------------------


@device
def _remember(copy: Any, frequent: Any, offset: Any, base: Any) -> None:
    for k in range(frequent.size):
        base[k] = copy[frequent[k]]
    base[frequent.size] = offset[0]


@device
def _tell(copy: Any, frequent: Any, offset: Any, base: Any, news: Any) -> None:
    """news = what has changed since the frequent columns were put together last."""
    for k in range(frequent.size):
        news[k] = copy[frequent[k]] - base[k]
    news[frequent.size] = offset[0] - base[frequent.size]


@device
def _hear(
    news: Any, share: float, per_offset: float, frequent: Any, base: Any, copy: Any, offset: Any
) -> tuple[float, float]:
    """Put the frequent columns together; return their part of ‖Σ Δ_k‖² and of Σ ‖Δ_k‖². Every thread finds the same."""
    together, apart = _add_news(news, share, base[: frequent.size])
    for k in range(frequent.size):
        copy[frequent[k]] = base[k]
    moved = 0.0
    for k in range(news.shape[0]):
        moved += news[k, frequent.size]
        apart += per_offset * news[k, frequent.size] * news[k, frequent.size]
    together += per_offset * moved * moved
    base[frequent.size] += share * moved
    offset[0] = base[frequent.size]
    return together, apart


@device
def _next_sigma(together: float, apart: float, size: int) -> float:
    """σ' of the next window: what would have been right in this one.

    What all threads see alike they all correct: an error e becomes (1 − size/σ') e. Of more than two threads it would grow, and
    be seen in the ratio only when it is large.
    """
    right = _CAUTION * together / apart if apart > 0.0 else 1.0
    return min(float(size), max(1.0, _DAMPING * size if size > 2 else 1.0, right))


@device(contract=True)
def _add_news(news: Any, share: float, base: Any) -> tuple[float, float]:
    """base += share Σ_k news_k; return ‖Σ news_k‖² and Σ ‖news_k‖²."""
    together, apart = 0.0, 0.0
    for j in range(base.size):
        total = 0.0
        for k in range(news.shape[0]):
            total += news[k, j]
            apart += news[k, j] * news[k, j]
        together += total * total
        base[j] += share * total
    return together, apart


@device
def _settle(base: Any, frequent: Any, first: int, last: int, w: Any) -> None:
    """Set the frequent ones of a thread's columns of w: in all copies they are the same."""
    for k in range(frequent.size):
        if first <= frequent[k] < last:
            w[frequent[k]] = base[k]


# --- who visits what ----------------------------------------------------------------------------------------------------


@kernel
def _deal(n: int, size: int, seed: Any) -> Any:
    """Deal blocks of rows out to `size` threads at random; return the owner of each."""
    owners = np.empty((n >> _BLOCK) + 1, dtype=np.uint16)
    for k in range(owners.size):
        bits = mixed(seed + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15))
        owners[k] = (bits >> np.uint64(40)) % np.uint64(size)
    return owners


@device
def _own_visits(order: Any, owners: Any, own: int, dealt: Any) -> Any:
    """Return those visits of `order` that are a thread's own; `dealt` is where they are put."""
    count = 0
    for k in range(order.size):
        dealt[count] = order[k]
        count += owners[order[k] >> _BLOCK] == own
    return dealt[:count]


@device(reassociate=True)
def _put_together(
    cuts: Any, copies: Any, share: float, w: Any, begin: int, end: int, total: Any
) -> tuple[float, float]:
    """w += share Σ_k (copy_k − w) for some columns; return their part of ‖Σ Δ_k‖² and of Σ ‖Δ_k‖². `total` is scratch."""
    together, apart = 0.0, 0.0
    for first in range(begin, end, total.size):
        last = min(first + total.size, end)
        total[:] = 0.0
        for k in range(cuts.size - 1):
            copy = own_part(k, cuts, copies)
            for j in range(first, last):
                change = copy[j] - w[j]
                total[j - first] += change
                apart += change * change
        for j in range(first, last):
            together += total[j - first] * total[j - first]
            w[j] += share * total[j - first]
    return together, apart
