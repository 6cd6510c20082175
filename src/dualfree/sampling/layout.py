"""From shares to a list of visits: how often each row is visited in an epoch, and in which order before it is shuffled.

Both are done without a branch that depends on the data: many would be foretold wrongly.
"""

from __future__ import annotations

from typing import Any

from .._jit import device, kernel


@kernel
def round_shares(
    shares: Any, sharing: Any, total: float, number: int, wanted: float, most: float, offset: float, counts: Any
) -> int:
    """Set the counts of about so many visits as are wanted, by systematic sampling; return how many there are.

    Half of the visits go in proportion to the shares, of which there are `number`, `total` in sum; half to all rows alike that
    have one. Other rows than `sharing` have none. A row gets at most `most` visits for each n; `offset` is uniform between 0
    and 1.
    """
    n = shares.size
    if not total > 0.0:
        counts[:] = 0
        return 0
    alike, largest = total / number, 2.0 * most * total / n
    given = 0.0
    for i in sharing:
        given += min(largest, shares[i] + alike) if shares[i] > 0.0 else 0.0
    per_share = wanted / given
    mark, visits = offset, 0
    for i in sharing:  # one addition has to wait for the one before, and nothing else
        mark += per_share * min(largest, shares[i] + alike) if shares[i] > 0.0 else 0.0
        whole = int(mark)
        counts[i] = whole - visits
        visits = whole
    return visits


@kernel
def lay_out(which: Any, counts: Any, order: Any) -> int:
    """Fill `order` with as many visits to rows `which` as they have; return how many there are.

    First comes each row's first visit, then second ones, and so on: so neighbours are different rows, near each other in
    memory. `order` has a place more than there are visits.
    """
    filled = 0
    for i in which:
        order[filled] = i
        filled += counts[i] > 0
    return add_rounds(counts, filled, order)


@device
def lay_out_own(which: Any, counts: Any, groups: Any, block: int, owners: Any, own: int, order: Any) -> int:
    """The same of those rows that are a thread's own. Without counts, one visit each.

    Each group of rows has one owner: `groups` says in which a row is; where it is empty, each 2^block neighbours are one.
    """
    filled = 0
    by_block = groups.size == 0
    if counts.size == 0:
        for i in which:
            order[filled] = i
            filled += owners[i >> block if by_block else groups[i]] == own
        return filled
    for i in which:
        order[filled] = i
        filled += (owners[i >> block if by_block else groups[i]] == own) & (counts[i] > 0)
    return add_rounds(counts, filled, order)


@device
def add_rounds(counts: Any, filled: int, order: Any) -> int:
    """Add second visits, third ones and so on to the first ones of some rows; return how many there are in all."""
    begin, end, visits = 0, filled, 1
    while end > begin:
        for k in range(begin, end):
            order[filled] = order[k]
            filled += counts[order[k]] > visits
        begin, end, visits = end, filled, visits + 1
    return filled
