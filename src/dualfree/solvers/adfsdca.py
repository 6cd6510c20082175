"""adfSDCA (Algorithm 1, heuristic = False): every iteration samples from the lemma's optimal distribution.

Lines 9–10 ask for all n residuals at every iteration, O(nnz) as printed. But one update changes only the margins of rows
that share a feature with x_i. They are found through the columns of x_i (X is kept by columns, too), so an iteration
costs Σ_{j ∈ x_i} |column j|: about a fifteenth of nnz on text. The residuals and tree leaves of those rows are formed
afresh: one by one where few rows changed, all n in vector loops where most did (text again: common words are in nearly
every row's neighbourhood). With an intercept, or with dense data, every row changes at every step.

Where all are formed, that happens a block of rows at a time, the margins first and then the leaves, so that both stay in
the first-level cache. The rows of a column are sorted; each column goes on where it stopped at the end of the block before.

Memory: the columns of a sparse X are a second copy of it, in as few bytes as hold the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from .._checks import Array
from .._jit import device, kernel
from ..losses.calls import loss_slopes, residual
from ..problem import Problem
from ..rows import Rows, as_rows, is_dense, margins_into, row_add, row_dot, row_value
from ..sampling import lemma_scales
from ..sampling.sum_tree import build, draw, new_tree, refresh
from ..vector_math import wide_vectors
from .base import RandomNumbers, Solver

_ENTRIES_PER_CALL = 1 << 25

# A row's leaf costs two walks up the trees; below this part of n that is cheaper than forming all of them.
_FEW = 32
_BLOCK = 4096  # rows whose margins stay in the first-level cache


class AdfSdca(Solver):
    """The paper's optimal adaptive probabilities, exactly, at every iteration."""

    name = "adfsdca"

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.columns: Rows
        self.aim: tuple[Any, ...]  # x_i as `_aim_at` leaves it for `_spread`
        if not problem.is_dense:
            columns = problem.X.tocsc()
            self.columns = _narrowed(as_rows(columns), problem.n)
            per_column = np.diff(columns.indptr).astype(np.float64)
            self.entries_per_visit = float(per_column @ per_column) / problem.n
            longest = int(np.diff(problem.X.indptr).max())
            self.aim = (np.zeros(longest, np.uint64), np.zeros(longest, np.uint64), np.zeros(longest))
        else:
            self.columns = ()
            self.aim = (np.empty(problem.d),)
            self.entries_per_visit = float(problem.nnz)
        a, self.c = lemma_scales(problem, self.extra)
        self.a, self.s = _one_block(a), _one_block(problem.sample_weight)
        self.margins = np.empty(problem.n)
        self.changed = np.zeros(problem.n // _FEW + 1, dtype=np.int32 if problem.n < 2**31 else np.int64)
        self.weights, self.levels = new_tree(problem.n)
        self.squares, _ = new_tree(problem.n)
        self.in_order = np.zeros(1, dtype=np.bool_)  # whether `squares` is a tree, or only its root is right
        self.visited = np.empty(0, dtype=np.int64)

    @property
    def visits_per_call(self) -> int:
        """The most visits that one call of `visit` should make."""
        return max(1, min(super().visits_per_call, int(_ENTRIES_PER_CALL / max(1.0, self.entries_per_visit))))

    def begin_epoch(self) -> None:
        """Form all margins afresh, so that rounding errors do not build up."""
        margins_into(self.problem.rows, self.w, self.margins)
        _renew_leaves(*self.data, *self._state)
        self.rows_touched += self.problem.n

    @property
    def _state(self) -> tuple[Any, ...]:
        return (
            self.c,
            self.a,
            self.s,
            self.alpha,
            self.w,
            self.offset,
            self.margins,
            self.weights,
            self.squares,
            self.in_order,
            self.levels,
            self.columns,
            self.aim,
        )

    def visit(self, count: int) -> None:
        """Make `count` updates; `visited` holds the rows, in order."""
        uniforms = self.rng.random(count)
        self.visited = np.full(count, -1, dtype=np.int64)
        entries = _visit(*self.data, *self._state, uniforms, self.changed, self.visited)
        # a visit touches entries in many rows; nnz/n entries count as one row
        self.rows_touched += count + entries * self.problem.n / max(1, self.problem.nnz)


def _one_block(x: Array) -> Array:
    """Return x, or a block of it where all its numbers are the same: the fewer bytes an iteration reads, the better."""
    return x if x.min() < x.max() else x[:_BLOCK]


def _narrowed(columns: Rows, n: int) -> Rows:
    """Return the columns with shorter row numbers and in single precision, where that loses nothing."""
    data, rows, starts = columns
    if n <= 1 << 16:
        rows = rows.astype(np.uint16)
    single = data.astype(np.float32)
    return (single if np.array_equal(single, data) else data), rows, starts


@kernel
def _visit(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    c: Any,
    a: Any,
    s_blocks: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    margins: Any,
    weights: Any,
    squares: Any,
    in_order: Any,
    levels: Any,
    columns: Any,
    aim: Any,
    uniforms: Any,
    changed: Any,
    visited: Any,
) -> float:
    wide_vectors()
    entries = 0.0
    for t in range(uniforms.size):
        i = draw(weights, levels, uniforms[t])  # line 12: p_i = weights[i] / weights[-1]
        if i < 0:
            break  # κ = 0: the optimum
        visited[t] = i
        kappa_i = residual(loss, margins[i] + offset[0], y[i], s[i], alpha[i])
        ratio = squares[-1] / (weights[-1] * weights[i])  # Θ*/p_i, the lemma
        delta = -ratio * kappa_i
        alpha[i] += delta  # line 13
        row_add(rows, i, scale * delta, w)  # line 14
        offset[0] += scale * extra * delta

        # lines 9–10 of the next iteration: margins, residuals and probabilities of the rows that changed
        length, reached = _aim_at(rows, columns, i, scale * delta, aim)
        entries += reached
        if extra > 0.0 or reached * _FEW >= alpha.size:
            _renew(
                rows,
                loss,
                y,
                s_blocks,
                c,
                a,
                alpha,
                offset[0],
                margins,
                weights,
                squares,
                in_order,
                levels,
                columns,
                aim,
                length,
            )
            continue
        if not in_order[0]:
            for k in range(alpha.size):
                squares[k] = _square(a, c, weights, k)
            build(squares, levels)
            in_order[0] = True
        changed[0] = i  # α_i itself, even where the row is empty
        count = 1 + _list_rows(columns, aim, length, changed[1:])
        _spread(rows, columns, aim, length, 0, alpha.size, margins)
        for position in range(count):  # a row may be listed more than once: its leaf is formed again, to the same value
            k = changed[position]
            weights[k] = c[k] * abs(residual(loss, margins[k] + offset[0], y[k], s[k], alpha[k]))
            squares[k] = _square(a, c, weights, k)
            refresh(weights, levels, k)
            refresh(squares, levels, k)
    return entries


@kernel
def _renew_leaves(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    c: Any,
    a: Any,
    s_blocks: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    margins: Any,
    weights: Any,
    squares: Any,
    in_order: Any,
    levels: Any,
    columns: Any,
    aim: Any,
) -> None:
    """Form all leaves from the margins as they are."""
    wide_vectors()
    _renew(
        rows, loss, y, s_blocks, c, a, alpha, offset[0], margins, weights, squares, in_order, levels, columns, aim, 0
    )


@device
def _renew(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    c: Any,
    a: Any,
    alpha: Any,
    offset: float,
    margins: Any,
    weights: Any,
    squares: Any,
    in_order: Any,
    levels: Any,
    columns: Any,
    aim: Any,
    length: int,
) -> None:
    """Margins, leaves c_k |κ_k| of all rows, and Σ a_k κ_k²; short loops, so that the compiler vectorises them."""
    total = 0.0
    for first in range(0, alpha.size, _BLOCK):
        last = min(first + _BLOCK, alpha.size)
        _spread(rows, columns, aim, length, first, last, margins)
        leaves = weights[first:last]
        loss_slopes(loss, margins[first:last], offset, y[first:last], _block(s, first, last), leaves)
        total += _weigh(alpha[first:last], c[first:last], _block(a, first, last), leaves)
    squares[-1] = total
    in_order[0] = False  # only the sum of the squares is known, not their tree
    build(weights, levels)


@device(reassociate=True)
def _weigh(alpha: Any, c: Any, a: Any, leaves: Any) -> float:
    """Turn s_k φ'_k into the leaves c_k |κ_k|; return Σ a_k κ_k²."""
    total = 0.0
    for k in range(alpha.size):
        kappa = abs(leaves[k] + alpha[k])
        leaves[k] = c[k] * kappa
        total += a[k] * kappa * kappa
    return total


@device
def _block(x: Any, first: int, last: int) -> Any:
    """Return x[first:last], also where only one block is kept (`_one_block`)."""
    return x[first:last] if last <= x.size else x[: last - first]


@device
def _square(a: Any, c: Any, leaves: Any, k: int) -> float:
    """Return a_k κ_k² from the leaf c_k |κ_k|."""
    kappa = leaves[k] / c[k] if c[k] > 0.0 else 0.0
    return a[min(k, a.size - 1)] * kappa * kappa


# --- margins += step · X x_i ------------------------------------------------------------------------------------------


def _aim_at(rows: Any, columns: Any, i: int, step: float, aim: Any) -> tuple[int, int]:
    """Put step · x_i into `aim`, with where its columns begin and end; return its length and the entries of those columns."""
    raise NotImplementedError("compiled code only")


def _spread(rows: Any, columns: Any, aim: Any, length: int, first: int, last: int, margins: Any) -> None:
    """margins += X · aim for first ≤ k < last; blocks of rows in order, the next one goes on from where this one stopped."""
    raise NotImplementedError("compiled code only")


def _list_rows(columns: Any, aim: Any, length: int, out: Any) -> int:
    """List the rows in the columns of `aim`; return how many."""
    raise NotImplementedError("compiled code only")


_OPTIONS = {"error_model": "numpy", "nogil": True}


@overload(_aim_at, strict=False, jit_options=_OPTIONS)
def _aim_at_overload(rows: Any, columns: Any, i: Any, step: Any, aim: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, columns: Any, i: Any, step: Any, aim: Any) -> Any:
            x = rows[0][i]
            for j in range(x.size):
                aim[0][j] = step * x[j]
            return x.size, rows[0].size

        return dense

    def sparse(rows: Any, columns: Any, i: Any, step: Any, aim: Any) -> Any:
        indices, starts = rows[-2], rows[-1]
        at, end, change = aim
        length, entries = 0, 0
        for position in range(starts[i], starts[i + 1]):
            j = indices[position]
            at[length], end[length] = columns[2][j], columns[2][j + 1]
            change[length] = step * row_value(rows, position)
            entries += int(end[length] - at[length])
            length += 1
        return length, entries

    return sparse


@overload(_spread, strict=False, jit_options=_OPTIONS)
def _spread_overload(rows: Any, columns: Any, aim: Any, length: Any, first: Any, last: Any, margins: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, columns: Any, aim: Any, length: Any, first: Any, last: Any, margins: Any) -> Any:
            if length > 0:
                for k in range(first, last):
                    margins[k] += row_dot(rows, k, aim[0])

        return dense

    def sparse(rows: Any, columns: Any, aim: Any, length: Any, first: Any, last: Any, margins: Any) -> Any:
        data, row_of, _ = columns
        at, ends, changes = aim
        one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # unsigned, as in `as_rows`
        for position in range(length):
            k, end, change = at[position], ends[position], changes[position]
            while k + four <= end and row_of[k + three] < last:
                # the rows of a column differ: four can be loaded before the first is stored
                a, b, c, d = row_of[k], row_of[k + one], row_of[k + two], row_of[k + three]
                at_a = margins[a] + change * data[k]
                at_b = margins[b] + change * data[k + one]
                at_c = margins[c] + change * data[k + two]
                at_d = margins[d] + change * data[k + three]
                margins[a], margins[b], margins[c], margins[d] = at_a, at_b, at_c, at_d
                k += four
            while k < end and row_of[k] < last:
                margins[row_of[k]] += change * data[k]
                k += one
            at[position] = k

    return sparse


@overload(_list_rows, strict=False, jit_options=_OPTIONS)
def _list_rows_overload(columns: Any, aim: Any, length: Any, out: Any) -> Any:
    if len(aim) == 1:
        return lambda columns, aim, length, out: 0  # dense: every row changes, none is listed

    def sparse(columns: Any, aim: Any, length: Any, out: Any) -> Any:
        count = 0
        for position in range(length):
            for k in range(aim[0][position], aim[1][position]):
                out[count] = columns[1][k]
                count += 1
        return count

    return sparse
