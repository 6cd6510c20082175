"""Coordinate steps on several threads: CoCoA+ (Ma et al. 2015) within one machine.

Rows are dealt out to the threads at random, anew each time, and each thread shuffles its own, and visits them with its own copy
of w. After each window, a part of an epoch, what the copies gained is added up in a fixed order, each thread for its own
columns: no thread ever reads what another one is writing, and the same number of threads gives the same bits.

Of sparse rows, a few columns are in most of them, and it is there that one thread misses what the others do. Those are put
together several times a window, by themselves: next to each other in memory they are a small part of w.

Steps that do not know of one another may overshoot together. They are safe with a step length for which
σ' ≥ ‖Σ Δ_k‖² / Σ ‖Δ_k‖², Δ_k being what thread k adds to w: 1 where rows of different threads share no columns, the number of
threads at worst. That ratio is known after each window; the next one uses it (the first one, the number of threads).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..team import SAID, Team, columns_of, own_part
from ..vector_math import copy_into
from ..workers import share_out
from .dealing import Dealing, Visits, deal, own_visits
from .guesses import evenness_of, goes_on, left_after
from .visits import move_intercept, visit_rows

# Windows of an epoch: where w is long, and where it is so short that putting it together costs next to nothing. A long one's
# windows are divided into turns, after which its so many most frequent columns, known from about so many entries, are put
# together. And visits that a window and a turn should have.
_WINDOWS, _SHORT_WINDOWS, _TURNS = 2, 8, 8
_FREQUENT, _COUNTED = 2048, 1 << 16
_LEAST_VISITS, _LEAST_TURN = 256, 128
# The same of long dense rows, in entries; and no more windows than this.
_LEAST_ENTRIES, _MOST_WINDOWS = 1 << 18, 64
_DAMPING = 0.6
# What σ' is above what would have been right: on the whole; of sparse rows with many columns by how strongly they are coupled.
_CAUTION, _CAUTION_IF_WEAKLY, _CAUTION_IF_COUPLED = 1.1, 1.4, 1.2
_WEAKLY, _COUPLED = 0.5, 0.9  # means of L_i q_i
_LEAST_PART = 0.6  # of a thread's own q_i, which is σ' times the true one, that a step counts
# Columns that are put together at a time; and how many columns before their turn the memory is asked for them.
_COLUMNS, _AHEAD = 512, 1024
# What is found of each thread, by its place.
_WAY, _GAINED, _MISFIT, _RESIDUALS, _SQUARES, _TOGETHER, _APART, _OFFSET, _MOVED = range(9)
_COLUMNS_TOGETHER, _COLUMNS_APART, _MADE = range(9, 12)
_OF_EPOCH = slice(_GAINED, _TOGETHER)  # what `visit_rows` finds in an epoch
_BESIDE = 16  # numbers, so that two threads' visits share no cache line


class Epochs(NamedTuple):
    """How long to make epochs in one call: one for each seed at most, until about so much of n times the gap is left.

    `misfit` and `left` are n times what rows had in the gap in the epoch before, and what that left; 0 and infinite, where
    that is not known. `enough` and `enough_guessed` are n times the driver's.
    """

    seeds: Array
    misfit: float = 0.0
    left: float = np.inf
    enough: float = np.inf
    enough_guessed: float = 0.0


class Made(NamedTuple):
    """What was done: epochs, visits and additions to w; b, Σ |c| ‖x_i‖ and, of the last epoch, what `visit_rows` found.

    And `Epochs` of the one before it.
    """

    epochs: int
    visits: int
    additions: int
    intercept: float
    way: float
    found: tuple[float, ...]
    misfit_before: float
    left_before: float


class Together:
    """The threads' copies of w, and σ'."""

    def __init__(self, team: Team, inverse_smoothness: float, part_of_q: float, coupling: float | None = None) -> None:
        problem, size = team.problem, team.size
        self.team, self.inverse_smoothness, self.part_of_q = team, inverse_smoothness, part_of_q
        self.caution, self.sees_own_q = _CAUTION, part_of_q < 1.0
        if coupling is not None and not self.sees_own_q:
            self.caution = _CAUTION_IF_WEAKLY if coupling < _WEAKLY else _CAUTION_IF_COUPLED
            self.sees_own_q = coupling >= _COUPLED
        self.copies = team.apart(problem.d, zero=False)
        self.scratch = np.empty((size, _COLUMNS))
        self.dealing = Dealing(team)
        self.frequent = _frequent_columns(team)
        self.known = np.empty((3, size, _padded(self.frequent.size + 1)))
        self.dealt = np.empty((2, size, 0), dtype=np.uint32)
        self.sigma, self.measured = float(size), False

    def visit(
        self, data: Any, visits: Visits, epochs: Epochs, intercept: float, alpha: Array, w: Array, offset: Array
    ) -> Made:
        """Visit rows, epoch after epoch, changing α, w and the offset; between two epochs b makes its step."""
        size = self.team.size
        begin, end = visits.part
        each = int((end - begin) * visits.number) // size
        windows = max(1, min(_SHORT_WINDOWS if w.size <= _FREQUENT else _WINDOWS, each // _LEAST_VISITS))
        if self.team.problem.is_dense:  # a visit costs as much as putting w together does, or half of that
            windows = max(windows, min(_MOST_WINDOWS, each * w.size // _LEAST_ENTRIES))
        turns = max(1, min(_TURNS, each // windows // _LEAST_TURN)) if self.frequent.size else 1
        dealing = (visits.which, visits.counts, visits.run, self.dealing.groups, self._dealt(visits))
        plan = ((visits.part, visits.as_before), windows, turns, not self.measured, self.caution)
        means = (self.copies, self.scratch, self.frequent, self.known)
        found = np.zeros((size, SAID))
        point = (alpha, w, offset)
        what = (*data, self.inverse_smoothness, self.part_of_q, self.sees_own_q)
        failed, self.sigma, made, b, misfit_before, left_before = self.team.lead(
            _visit, what, dealing, plan, tuple(epochs), intercept, point, self.sigma, means, found
        )
        if failed:  # no error leaves a thread; what failed, a user's loss perhaps, tells it again
            visit_rows(*data, False, self.inverse_smoothness, self.part_of_q, visits.which, alpha, w, offset)
            raise MemoryError("A thread had not enough memory.")
        self.measured = True
        sums = np.add.reduce(found).tolist()
        visited, way, of_epoch = int(sums[_MADE]), sums[_WAY], tuple(sums[_OF_EPOCH])
        additions = visited + made * windows * turns
        return Made(made, visited, additions, b, way, of_epoch, misfit_before, left_before)

    def _dealt(self, visits: Visits) -> Array:
        """Where each thread puts down its visits, and in the end how many there are; kept: fresh memory costs time."""
        kind = visits.which.dtype
        if self.dealt.shape[2] < visits.number + _BESIDE or self.dealt.dtype != kind:
            self.dealt = np.empty((2, self.team.size, visits.number + _BESIDE), dtype=kind)
        return self.dealt


def _frequent_columns(team: Team) -> Array:
    """Return the columns that are in most rows, in their order; none where there are few columns, or where all are in all."""
    problem, size = team.problem, team.size
    if problem.is_dense or problem.d <= _FREQUENT:
        return np.empty(0, dtype=np.uint32)
    every = max(1, problem.nnz // _COUNTED)
    shape = (size, _padded(problem.d + 1))
    found = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.uint32), np.zeros((size, SAID), dtype=np.int64)
    return np.asarray(team.lead(_most_frequent, problem.rows, problem.d, every, _FREQUENT, *found))


def _padded(count: int) -> int:
    """As many numbers as fill whole cache lines."""
    return -(-count // 16) * 16


@kernel
def _most_frequent(
    orders: Any, cuts: Any, rows: Any, d: int, every: int, most: int, counts: Any, seen: Any, said: Any
) -> Any:
    """Return up to `most` columns, those that most of every `every`-th row have; each thread looks at its own rows."""
    share_out(orders, _count_columns, (cuts, rows, d, every, counts, seen, said))
    total, columns, different = counts[0], seen[0], said[0, 0]
    for other in range(1, counts.shape[0]):
        for j in seen[other, : said[other, 0]]:
            columns[different] = j
            different += total[j] == 0
            total[j] += counts[other, j]
    having = np.zeros(said[:, 1].sum() + 2, dtype=np.int64)  # how many columns are in so many rows
    for j in columns[:different]:
        having[total[j]] += 1
    least, found = having.size - 1, 0
    while least > 1 and found + having[least - 1] <= most:
        least -= 1
        found += having[least]
    frequent = np.empty(found + 1, dtype=np.uint32)
    found = 0
    for j in range(d):  # without a branch: many would be foretold wrongly
        frequent[found] = j
        found += total[j] >= least
    return frequent[:found]


@kernel
def _count_columns(own: int, cuts: Any, rows: Any, d: int, every: int, counts: Any, seen: Any, said: Any) -> None:
    """Count in how many of a thread's rows each column is; say how many different ones there are, and how many rows."""
    count, columns = counts[own], seen[own]
    count[:] = 0
    indices, starts = rows[-2], rows[-1]
    looked_at, different = 0, 0
    for i in range(-(-cuts[own] // every) * every, cuts[own + 1], every):
        looked_at += 1
        for k in range(starts[i], starts[i + 1]):
            j = indices[k]
            columns[different] = j
            different += count[j] == 0
            count[j] += 1
    said[own, 0], said[own, 1] = different, looked_at


@kernel
def _visit(
    orders: Any,
    cuts: Any,
    data: Any,
    dealing: Any,
    plan: Any,
    epochs: Any,
    b: float,
    point: Any,
    sigma: float,
    means: Any,
    found: Any,
) -> tuple[int, float, int, float, float, float]:
    """What the caller does: deal rows out, share out turns, and at the end of each window the columns.

    Return whether one failed, σ', how many epochs were made, b, and `Epochs.misfit` and `left` of the last epoch but one.
    """
    rows, scale, extra = data[0], data[5], data[6]
    which, counts, run, groups, dealt = dealing
    part, windows, turns, first, caution = plan
    seeds, misfit, left, enough, enough_guessed = epochs
    alpha, w, offset = point
    _, _, frequent, known = means
    size = cuts.size - 1
    per_offset = 1.0 / extra if extra > 0.0 else 0.0  # the square of ω's change for that of βω's
    made, misfit_before, left_before, even = 0, misfit, left, 1.0
    while made == 0 or (made < seeds.size and goes_on(left, left_before, even, enough, enough_guessed)):
        if made > 0:
            b = move_intercept(alpha, b, scale, extra, offset)
        owners = deal(rows, which, counts, groups, size, seeds[made])
        dealt_out = (which, counts, run, groups, owners, seeds[made], dealt)
        found[:, _OF_EPOCH] = 0.0
        for number in range(windows * turns):
            if _begins_window(number, turns, first):
                found[:, _TOGETHER] = found[:, _APART] = 0.0
            how = (number, sigma, per_offset)
            in_turns = (dealt_out, part, windows, turns, first)
            if share_out(orders, _turn, (cuts, data, in_turns, point, how, means, found)):
                return 1, sigma, made, b, misfit_before, left_before
            if not _begins_window(number + 1, turns, first):
                continue
            if share_out(orders, _columns, (cuts, w, sigma, means, found)):
                return 1, sigma, made, b, misfit_before, left_before
            together, apart, moved = found[0, _TOGETHER], found[0, _APART], 0.0
            for k in range(size):
                moved += found[k, _MOVED]
                together += found[k, _COLUMNS_TOGETHER]
                apart += found[k, _COLUMNS_APART] + per_offset * found[k, _MOVED] * found[k, _MOVED]
            together += per_offset * moved * moved
            offset[0] = known[2, 0, frequent.size] + moved / sigma
            sigma = _next_sigma(together, apart, size, caution)
        made, first, misfit_before, left_before = made + 1, False, misfit, left
        misfit = found[:, _MISFIT].sum()
        left = left_after(misfit, misfit_before)
        even = evenness_of(found[:, _RESIDUALS].sum(), found[:, _SQUARES].sum(), which.size)
    return 0, sigma, made, b, misfit_before, left_before


@kernel
def _turn(own: int, cuts: Any, data: Any, plan: Any, point: Any, how: Any, means: Any, found: Any) -> None:
    """A thread's visits of one turn, with its own copy of w, after it has heard what the others did in the one before.

    What a thread has to say to the others is read in the next turn, and every other turn the same place is used: nobody writes
    to what a slower one has yet to read.
    """
    rows, loss, y, s, v, scale, extra, inverse_smoothness, part_of_q, sees_own_q = data
    dealing, (part, as_before), windows, turns, first = plan
    alpha, w, offset = point
    number, sigma, per_offset = how
    # A step looks at σ' times the true q_i, which is what keeps it safe; or at nearly the true one, where rows hold one another
    # back: what a thread does in addition, others undo.
    own_part_of_q = max(_LEAST_PART, part_of_q / sigma) if sees_own_q else 1.0
    copies, scratch, frequent, known = means
    copy, base, here = own_part(own, cuts, copies), known[2, own], found[own, _OFFSET : _OFFSET + 1]
    dealt = dealing[-1][0, own]
    if number == 0 and not as_before:
        dealt[-1] = own_visits(own, dealing)
    if _begins_window(number, turns, first):
        for column in range(0, w.size, _COLUMNS):
            _rows.fetch_part(w, column + _AHEAD if column > 0 else 0, column + _AHEAD + _COLUMNS)
            copy_into(w[column:], copy[column : column + _COLUMNS])
        here[0] = offset[0]
        _remember(copy, frequent, here, base)
    else:
        news = known[(number - 1) % 2]
        squares = _hear(news, 1.0 / sigma, per_offset, frequent, base, copy, here, scratch[own])
        found[own, _TOGETHER] += squares[0]
        found[own, _APART] += squares[1]
    begin, end = int(part[0] * dealt[-1]), int(part[1] * dealt[-1])
    count, all_turns = end - begin, windows * turns
    mine = dealt[begin + count * number // all_turns : begin + count * (number + 1) // all_turns]
    found[own, _MADE] += mine.size
    way, gained, misfit, residuals, squares = visit_rows(
        rows, loss, y, s, v, scale * sigma, extra, False, inverse_smoothness, own_part_of_q, mine, alpha, copy, here
    )
    found[own, _WAY] += way
    found[own, _GAINED] += gained
    found[own, _MISFIT] += misfit
    found[own, _RESIDUALS] += residuals
    found[own, _SQUARES] += squares
    if _begins_window(number + 1, turns, first):
        found[own, _MOVED] = here[0] - base[frequent.size]
    else:
        _tell(copy, frequent, here, base, known[number % 2, own])


@kernel
def _columns(own: int, cuts: Any, w: Any, sigma: float, means: Any, found: Any) -> None:
    """A thread's columns of the sum of all copies."""
    copies, scratch, frequent, known = means
    first, last = columns_of(own, cuts.size - 1, w.size)
    _settle(known[2, own], frequent, first, last, w)
    sums = _put_together(cuts, copies, 1.0 / sigma, w, first, last, scratch[own])
    found[own, _COLUMNS_TOGETHER], found[own, _COLUMNS_APART] = sums


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
    news: Any, share: float, per_offset: float, frequent: Any, base: Any, copy: Any, offset: Any, scratch: Any
) -> tuple[float, float]:
    """Put the frequent columns together; return their part of ‖Σ Δ_k‖² and of Σ ‖Δ_k‖². Every thread finds the same."""
    for k in range(news.shape[0]):
        _rows.fetch_part(news[k], 0, news.shape[1])
    together, apart = _add_news(news, share, base[: frequent.size], scratch)
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
def _begins_window(number: int, turns: int, first: bool) -> bool:
    """Whether a turn is the first of a window. The very first window of all has one turn: until it ends, σ' is not known."""
    return number % turns == 0 or (first and number == 1)


@device
def _next_sigma(together: float, apart: float, size: int, caution: float) -> float:
    """σ' of the next window: what would have been right in this one.

    What all threads see alike they all correct: an error e becomes (1 − size/σ') e. Of more than two threads it would grow, and
    be seen in the ratio only when it is large.
    """
    right = caution * together / apart if apart > 0.0 else 1.0
    return min(float(size), max(1.0, _DAMPING * size if size > 2 else 1.0, right))


@device
def _add_news(news: Any, share: float, base: Any, scratch: Any) -> tuple[float, float]:
    """base += share Σ_k news_k; return ‖Σ news_k‖² and Σ ‖news_k‖²."""
    together, apart = 0.0, 0.0
    for first in range(0, base.size, scratch.size):
        here = base[first : first + scratch.size]
        total = scratch[: here.size]
        total[:] = 0.0
        for k in range(news.shape[0]):
            apart += _add(news[k, first : first + here.size], total)
        together += _add_share(share, total, here)
    return together, apart


@device
def _settle(base: Any, frequent: Any, first: int, last: int, w: Any) -> None:
    """Set the frequent ones of a thread's columns of w: in all copies they are the same."""
    for k in range(frequent.size):
        if first <= frequent[k] < last:
            w[frequent[k]] = base[k]


@device
def _put_together(
    cuts: Any, copies: Any, share: float, w: Any, begin: int, end: int, scratch: Any
) -> tuple[float, float]:
    """w += share Σ_k (copy_k − w) for some columns; return their part of ‖Σ Δ_k‖² and of Σ ‖Δ_k‖²."""
    together, apart = 0.0, 0.0
    for first in range(begin, end, scratch.size):
        here = w[first : min(first + scratch.size, end)]
        total = scratch[: here.size]
        total[:] = 0.0
        for k in range(cuts.size - 1):  # the processor itself would not look beyond a page of memory
            soon = first + _AHEAD if first > begin else begin
            _rows.fetch_part(own_part(k, cuts, copies), soon, min(first + _AHEAD + scratch.size, end))
        for k in range(cuts.size - 1):
            apart += _add_change(own_part(k, cuts, copies)[first : first + here.size], here, total)
        together += _add_share(share, total, here)
    return together, apart


# Each takes vectors as long as they are, and counts from 0: so it runs on vector registers.


@device(reassociate=True)
def _add(news: Any, total: Any) -> float:
    """Total += news; return ‖news‖²."""
    squares = 0.0
    for j in range(total.size):
        total[j] += news[j]
        squares += news[j] * news[j]
    return squares


@device(reassociate=True)
def _add_change(copy: Any, w: Any, total: Any) -> float:
    """Total += copy − w; return ‖copy − w‖²."""
    squares = 0.0
    for j in range(total.size):
        change = copy[j] - w[j]
        total[j] += change
        squares += change * change
    return squares


@device(reassociate=True)
def _add_share(share: float, total: Any, w: Any) -> float:
    """w += share · total; return ‖total‖²."""
    squares = 0.0
    for j in range(total.size):
        squares += total[j] * total[j]
        w[j] += share * total[j]
    return squares
