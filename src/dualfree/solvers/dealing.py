"""Who visits what: groups of rows are dealt out to the threads at random, anew each time.

What a thread does not see at once is what rows of another one do to columns that both have. Rows that share a rare word
matter to one another most, and neighbours, dealt out in blocks, leave half of such pairs apart. So, where it is worth a pass
over the values, the groups are of rows that are alike: those with the largest value in the same column. They, too, are dealt
out anew each time: with a fixed partition, text took three to six times as many epochs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import rows as _rows
from .._checks import Array
from .._jit import device, kernel
from ..sampling.layout import lay_out_own
from ..sampling.permutation import mixed, shuffle_from, shuffle_runs_from
from ..team import Team, own_rows

# Neighbours are dealt out in blocks of 2 to the power of this: eight α_i share a cache line, which two threads should not both
# write to. And rows that are alike in groups of 2 to the power of that.
BLOCK, _ALIKE = 4, 6
_BUCKETS = 1 << 16  # for the columns with the largest values; two that share one do no harm
_ENTRIES_PER_ROW = 10  # that a visit costs besides the row's own

ONE_EACH = np.empty(0, dtype=np.int32)
_NEIGHBOURS = np.empty(0, dtype=np.uint32)


class Visits(NamedTuple):
    """Rows to visit: `counts` says how often, ONE_EACH that once; `number` is that of all visits.

    Each thread shuffles its own in runs of so many neighbours, not at all if a `run` is 0, and makes those of a `part`, from
    where to where; of those of the last time, with `as_before`.
    """

    which: Array
    counts: Array
    number: int
    run: int
    part: tuple[float, float] = (0.0, 1.0)
    as_before: bool = False


class Dealing:
    """Deals groups of rows out to a team's threads: neighbours, until `by_likeness`."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.groups = _NEIGHBOURS  # of each row, where they are not neighbours
        self._looked = False

    def by_likeness(self) -> None:
        """From now on, deal out groups of rows whose largest values are in the same column, if they are sparse."""
        problem = self.team.problem
        if self._looked or _rows.kind_of(problem.rows) is not _rows.Kind.VALUES:
            return
        self._looked = True
        columns = np.empty(problem.n, dtype=np.uint32)
        values, indices, starts = problem.rows
        # Floating-point numbers without a sign are in the order of their bits, which vector registers compare.
        kind = np.uint64 if values.itemsize == 8 else np.uint32
        bits, unsigned = values.view(kind), kind(np.iinfo(kind).max >> 1)
        self.team.run(_heaviest, bits, unsigned, indices, starts, columns)
        self.groups = _grouped(columns, _BUCKETS, _ALIKE)

    def owners(self, visits: Visits, seed: Any) -> Array:
        """Return the owner of each group."""
        return np.asarray(deal(self.team.problem.rows, visits.which, visits.counts, self.groups, self.team.size, seed))


@kernel
def deal(rows: Any, which: Any, counts: Any, groups: Any, size: int, seed: Any) -> Any:
    """Deal groups of rows out to `size` threads, neighbours where there are no groups; return the owners."""
    if groups.size == 0:
        return deal_neighbours(_rows.row_count(rows), size, seed)
    return _deal_alike(rows, which, counts, groups, _ALIKE, size, seed)


@kernel
def deal_neighbours(n: int, size: int, seed: Any) -> Any:
    """Deal blocks of neighbours out to `size` threads, one to each of every `size` blocks; return the owners."""
    owners = np.empty((n >> BLOCK) + size, dtype=np.uint16)
    for first in range(0, owners.size - size + 1, size):
        for k in range(size):  # Fisher–Yates from within
            bits = mixed(seed + np.uint64(first + k) * np.uint64(0x9E3779B97F4A7C15))
            other = np.int64((bits >> np.uint64(40)) % np.uint64(k + 1))
            owners[first + k] = owners[first + other]
            owners[first + other] = k
    return owners


@kernel
def _deal_alike(rows: Any, which: Any, counts: Any, groups: Any, block: int, size: int, seed: Any) -> Any:
    """Deal groups out to `size` threads in random order, each to the one that has least to do; return the owners."""
    number = (groups.size >> block) + 1
    loads = np.zeros(number, dtype=np.int64)
    for i in which:
        visits = np.int64(counts[i]) if counts.size > 0 else 1
        loads[groups[i]] += visits * (_rows.row_length(rows, i) + _ENTRIES_PER_ROW)
    order = np.arange(number, dtype=np.uint32)
    shuffle_from(order, seed)
    owners, has = np.empty(number, dtype=np.uint16), np.zeros(size, dtype=np.int64)
    for group in order:
        least = np.argmin(has)
        owners[group] = least
        has[least] += loads[group]
    return owners


@device
def own_visits(own: int, dealing: Any) -> int:
    """Put down the visits that are a thread's own, and shuffle them; return how many there are."""
    which, counts, run, groups, owners, seed, dealt = dealing
    out, spare = dealt[0, own], dealt[1, own]
    own_seed = mixed(seed + np.uint64(own + 1) * np.uint64(0x9E3779B97F4A7C15))
    if run <= 1:
        count = lay_out_own(which, counts, groups, BLOCK, owners, own, out)
        if run == 1:
            shuffle_from(out[:count], own_seed)
    else:
        count = lay_out_own(which, counts, groups, BLOCK, owners, own, spare)
        shuffle_runs_from(spare[:count], out[:count], run, own_seed)
    return count


# --- rows that are alike ------------------------------------------------------------------------------------------------


@kernel
def _heaviest(own: int, cuts: Any, bits: Any, unsigned: int, indices: Any, starts: Any, columns: Any) -> None:
    """For each of a thread's rows, the column of its largest value; 0 if it is empty."""
    mine = own_rows(own, cuts)
    for i in range(mine.start, mine.stop):
        begin, end = np.int64(starts[i]), np.int64(starts[i + 1])
        columns[i] = indices[begin + _largest(bits[begin:end], unsigned)] if end > begin else 0


@device
def _largest(bits: Any, unsigned: int) -> int:
    """The first place of the largest of some values, given as bits; `unsigned` has all of these but the sign's."""
    largest = bits[0] & unsigned
    for k in range(bits.size):
        largest = max(largest, bits[k] & unsigned)
    k = 0
    while bits[k] & unsigned < largest:
        k += 1
    return k


@kernel
def _grouped(columns: Any, buckets: int, block: int) -> Any:
    """Sort rows by their columns, modulo so many, and return the groups of 2^block that they are in."""
    last = np.uint32(buckets - 1)
    places = np.zeros(buckets + 1, dtype=np.int64)
    for column in columns:
        places[np.int64(column & last) + 1] += 1
    for k in range(buckets):
        places[k + 1] += places[k]
    groups = np.empty(columns.size, dtype=np.uint32)
    for i in range(columns.size):
        bucket = np.int64(columns[i] & last)
        groups[i] = places[bucket] >> block
        places[bucket] += 1
    return groups
