"""Several threads on one problem: each has its own rows, and what they find is put together in a fixed order.

Every thread works on consecutive rows with about the same number of stored entries, seen as a problem of its own; nothing is
copied. Sums are added up part by part, always in the same order: the same number of threads gives the same bits.

What several threads do together is a piece, a kernel that takes a thread's number and where the parts begin, and finds its
own rows. One thread does the same with one part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import rows as _rows
from ._checks import Array
from ._jit import device, kernel
from .problem import Problem
from .tiles import add_tile, empty_tile, fill_tile, multiply_tile, rows_of
from .vector_math import copy_into
from .workers import Workers

_EPS = 2.0**-52
# Fewer entries than this a thread are not worth starting it for; or, where it is awake, handing over to it.
_LEAST_ENTRIES, _LEAST_SHARED = 200_000, 1 << 14
_SHORT_ROWS = 32  # numbers of a dense row, up to which a sum over rows is quicker by tiles
# Numbers that a thread says at the end of a piece, on cache lines of its own; and so many that only their ends share one.
SAID, _MANY = 16, 512


class Team:
    """Up to `size` threads that share a problem's rows; one thread is the caller itself.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.team import Team
    >>> problem = df.Problem(np.eye(3), [1.0, 2.0, 3.0], loss="squared", lam=1.0)
    >>> with Team(problem, 2) as team:
    ...     z = np.empty(3)
    ...     team.margins_into(np.ones(3), z)
    >>> z
    array([1., 1., 1.])
    """

    def __init__(self, problem: Problem, size: int = 1) -> None:
        self._share(problem, max(1, min(size, problem.n, problem.nnz // _LEAST_ENTRIES)))
        self._workers = Workers(self.size)

    def _share(self, problem: Problem, size: int) -> None:
        self.problem, self.size = problem, size
        self.cuts = _cuts(problem, size)
        self._totals: tuple[Array, Array] | None = None

    def on(self, part: Problem) -> Team:
        """The same threads on another problem; one of them, where that is too small to be shared."""
        other = Team(part)
        if part.n >= self.size and part.nnz >= self.size * _LEAST_SHARED:
            other._share(part, self.size)
            other._workers = self._workers
        return other

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *reason: object) -> None:
        self._workers.end()

    def run(self, piece: Any, *arguments: Any) -> None:
        """Run ``piece(own, cuts, *arguments)`` on all threads."""
        self._workers.run(piece, (self.cuts, *arguments))

    def lead(self, leader: Any, *arguments: Any) -> Any:
        """Call ``leader(orders, cuts, *arguments)``, a kernel that shares out pieces of its own."""
        return self._workers.lead(leader, (self.cuts, *arguments))

    def say(self, piece: Any, *arguments: Any) -> Array:
        """As `run`, of a piece that takes a matrix before its other arguments, and writes sums to its row; add these up."""
        said = np.zeros((self.size, SAID))
        self.run(piece, said, *arguments)
        return said[0] if self.size == 1 else np.add.reduce(said)

    # --- passes over the rows ---------------------------------------------------------------------------------------

    def margins_into(self, w: Array, z: Array) -> None:
        """z_i = x_i · w."""
        self.run(margins_piece, self.problem.rows, w, z)

    def sum_rows_into(self, factors: Array, out: Array, scratch: Array) -> float:
        """out = Σ factor_i x_i; return e such that the rounding error is at most e Σ |factor_i| ‖x_i‖."""
        problem = self.problem
        totals, spare = self.totals(out, scratch)
        self.run(_sum_rows, problem.rows, factors, problem.sum_block, totals, spare)
        self.add_up(totals, out)
        return self.sum_error

    def margins_and_sum_into(self, w: Array, factors: Array, z: Array, out: Array, scratch: Array) -> float:
        """z = X w and, in the same pass, what `sum_rows_into` does."""
        problem = self.problem
        totals, spare = self.totals(out, scratch)
        by_tiles = problem.is_dense and problem.d <= _SHORT_ROWS
        piece = _margins_and_sum_by_tiles if by_tiles else _margins_and_sum
        self.run(piece, problem.rows, w, factors, problem.sum_block, z, totals, spare)
        self.add_up(totals, out)
        return self.sum_error

    def totals(self, out: Array, scratch: Array) -> tuple[Array, Array]:
        """A vector for each thread's sum, and one for scratch: those given, where there is one thread."""
        if self.size == 1:
            return out[None], scratch[None]
        if self._totals is None or self._totals[0].shape[1] != out.size:
            self._totals = self.apart(out.size), self.apart(out.size)  # kept: fresh memory costs more than a sum
        return self._totals

    def apart(self, *shape: int, zero: bool = True) -> Array:
        """Zeros, or whatever, of this shape for each thread, to be found by `own_part`; few are on cache lines of their own."""
        count = math.prod(shape)
        each = 1 if self.size == 1 or count >= _MANY else 1 + -(-SAID // count)
        return (np.zeros if zero else np.empty)((self.size * each, *shape))

    def add_up(self, totals: Array, out: Array) -> None:
        """out = the sum of the threads' vectors, in their order, each thread for its own columns."""
        if self.size > 1:
            self.run(_add_columns, totals, out)

    @property
    def sum_error(self) -> float:
        """What `sum_rows_into` returns: no part is longer than all rows, and the parts are added up."""
        return self.problem.sum_error + (self.size * _EPS if self.size > 1 else 0.0)


def _cuts(problem: Problem, size: int) -> Array:
    """Where to cut the rows into `size` parts of about the same number of entries, none empty."""
    if size == 1:
        return np.array([0, problem.n], dtype=np.int64)
    if problem.is_dense:
        return problem.n * np.arange(size + 1, dtype=np.int64) // size
    indptr = problem.rows[-1]
    cuts = [0]
    for k in range(1, size):
        cut = int(np.searchsorted(indptr, indptr[0] + problem.nnz * k // size))
        cuts.append(min(max(cut, cuts[-1] + 1), problem.n - size + k))
    return np.array([*cuts, problem.n], dtype=np.int64)


# --- pieces -------------------------------------------------------------------------------------------------------


@device
def own_rows(own: int, cuts: Any) -> Any:
    """A thread's rows, as a slice. A piece takes them once and counts from 0: an index that might be negative is slower."""
    return slice(cuts[own], cuts[own + 1])


@device
def own_part(own: int, cuts: Any, apart: Any) -> Any:
    """A thread's vector or matrix of what `Team.apart` made."""
    return apart[own * (apart.shape[0] // (cuts.size - 1))]


@device
def columns_of(own: int, size: int, d: int) -> tuple[int, int]:
    """The columns of a thread, from a cache line's beginning on: two threads must not write to one in turns."""
    return d * own // size // 8 * 8, d if own + 1 == size else d * (own + 1) // size // 8 * 8


@device
def fetch_shared(cuts: Any, vector: Any) -> None:
    """Fetch a vector that rows are multiplied with: another thread may have written it, or a part of it."""
    if cuts.size > 2:
        _rows.fetch(vector)


@kernel
def _add_columns(own: int, cuts: Any, totals: Any, out: Any) -> None:
    first, last = columns_of(own, cuts.size - 1, out.size)
    for k in range(cuts.size - 1):
        total = own_part(k, cuts, totals)
        if k == 0:
            copy_into(total[first:last], out[first:last])
        else:
            for j in range(first, last):
                out[j] += total[j]


@kernel
def margins_piece(own: int, cuts: Any, rows: Any, w: Any, z: Any) -> None:
    mine = own_rows(own, cuts)
    fetch_shared(cuts, w)
    _rows.margins_into(_rows.rows_between(rows, mine), w, z[mine])


@kernel
def _sum_rows(own: int, cuts: Any, rows: Any, factors: Any, block: int, totals: Any, scratch: Any) -> None:
    mine = own_rows(own, cuts)
    part = _rows.rows_between(rows, mine)
    _rows.weighted_sum_into(part, factors[mine], block, own_part(own, cuts, totals), own_part(own, cuts, scratch))


@kernel
def _margins_and_sum(
    own: int, cuts: Any, rows: Any, w: Any, factors: Any, block: int, z: Any, totals: Any, scratch: Any
) -> None:
    mine = own_rows(own, cuts)
    part = _rows.rows_between(rows, mine)
    fetch_shared(cuts, w)
    _rows.margins_and_sum_into(
        part, w, factors[mine], block, z[mine], own_part(own, cuts, totals), own_part(own, cuts, scratch)
    )


@kernel
def _margins_and_sum_by_tiles(
    own: int, cuts: Any, rows: Any, w: Any, factors: Any, block: int, z: Any, totals: Any, scratch: Any
) -> None:
    """The same of dense rows with few columns, summed in the same blocks."""
    mine = own_rows(own, cuts)
    X, factors, z = rows[0][mine], factors[mine], z[mine]
    out, part = own_part(own, cuts, totals), own_part(own, cuts, scratch)
    tile = empty_tile(X.shape[1])
    out[:] = 0.0
    for first in range(0, z.size, block):
        last = min(first + block, z.size)
        part[:] = 0.0
        for begin in range(first, last, rows_of(tile)):
            end = min(begin + rows_of(tile), last)
            fill_tile(X, begin, end, tile)
            multiply_tile(tile, w, z[begin:end])
            add_tile(tile, factors[begin:end], part)
        out += part
