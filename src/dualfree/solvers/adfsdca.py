"""adfSDCA (Algorithm 1, heuristic = False): every iteration samples from the lemma's optimal distribution.

Lines 9–10 ask for all n residuals at every iteration, O(nnz) as printed. But one update changes only the margins of rows
that share a feature with x_i. They are found through the columns of x_i (X is kept by columns, too), so an iteration
costs Σ_{j ∈ x_i} |column j|: about a fifteenth of nnz on text. The residuals and tree leaves of those rows are formed
afresh: one by one where few rows changed, all n in vector loops where most did (text again: common words are in nearly
every row's neighbourhood). With an intercept, or with dense data, every row changes at every step.

Memory: the columns of a sparse X are a second copy of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from .._jit import device, kernel
from ..losses.calls import loss_slopes, residual
from ..problem import Problem
from ..rows import as_rows, margins_into, row_add, row_dot, row_prefetch
from ..sampling import lemma_scales
from ..sampling.sum_tree import build, draw, new_tree, refresh
from .base import Solver

_ENTRIES_PER_CALL = 1 << 25

# A row's leaf costs two walks up the trees; below this part of n that is cheaper than forming all of them.
_FEW = 32
# Slopes are formed for so many rows at a time, in the first-level cache.
_AT_A_TIME = 512


class AdfSdca(Solver):
    """The paper's optimal adaptive probabilities, exactly, at every iteration."""

    name = "adfsdca"

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        if len(problem.rows) == 3:
            columns = problem.X.tocsc()
            self.columns = as_rows(columns)
            per_column = np.diff(columns.indptr).astype(np.float64)
            self.entries_per_visit = float(per_column @ per_column) / problem.n
        else:
            self.columns = (np.empty((1, problem.d)),)  # room for one row in float64
            self.entries_per_visit = float(problem.nnz)
        a, self.c = lemma_scales(problem, self.extra)
        self.ratios = np.divide(a, self.c**2, out=np.zeros(problem.n), where=a > 0)  # a κ² = (a/c²) (c κ)²
        self.margins = np.empty(problem.n)
        self.changed = np.zeros(problem.n, dtype=np.int32 if problem.n < 2**31 else np.int64)
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
        _refresh_all(*self.data, *self._state)
        self.rows_touched += self.problem.n

    @property
    def _state(self) -> tuple[Any, ...]:
        return (
            self.c,
            self.ratios,
            self.alpha,
            self.w,
            self.offset,
            self.margins,
            self.weights,
            self.squares,
            self.in_order,
            self.levels,
        )

    def visit(self, count: int) -> None:
        """Make `count` updates; `visited` holds the rows, in order."""
        uniforms = self.rng.random(count)
        self.visited = np.full(count, -1, dtype=np.int64)
        entries = _visit(*self.data, *self._state, self.columns, uniforms, self.changed, self.visited)
        # a visit touches entries in many rows; nnz/n entries count as one row
        self.rows_touched += count + entries * self.problem.n / max(1, self.problem.nnz)


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
    ratios: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    margins: Any,
    weights: Any,
    squares: Any,
    in_order: Any,
    levels: Any,
    columns: Any,
    uniforms: Any,
    changed: Any,
    visited: Any,
) -> float:
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
        count, touched = _spread(rows, columns, i, scale * delta, margins, changed)
        entries += touched
        if count < 0 or extra > 0.0:
            _refresh(loss, y, s, alpha, c, ratios, offset[0], margins, weights, squares, in_order, levels)
        else:
            if not in_order[0]:
                for k in range(alpha.size):
                    squares[k] = ratios[k] * weights[k] * weights[k]
                build(squares, levels)
                in_order[0] = True
            for position in range(count):
                k = changed[position]
                weights[k] = c[k] * abs(residual(loss, margins[k] + offset[0], y[k], s[k], alpha[k]))
                squares[k] = ratios[k] * weights[k] * weights[k]
                refresh(weights, levels, k)
                refresh(squares, levels, k)
    return entries


@kernel
def _refresh_all(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    c: Any,
    ratios: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    margins: Any,
    weights: Any,
    squares: Any,
    in_order: Any,
    levels: Any,
) -> None:
    _refresh(loss, y, s, alpha, c, ratios, offset[0], margins, weights, squares, in_order, levels)


@device
def _refresh(
    loss: Any,
    y: Any,
    s: Any,
    alpha: Any,
    c: Any,
    ratios: Any,
    offset: float,
    margins: Any,
    weights: Any,
    squares: Any,
    in_order: Any,
    levels: Any,
) -> None:
    """Residuals and leaves c_k |κ_k| of all rows, and Σ a_k κ_k²; short loops, so that the compiler vectorises them."""
    slopes = np.empty(_AT_A_TIME)
    total = 0.0
    for first in range(0, alpha.size, _AT_A_TIME):
        last = min(first + _AT_A_TIME, alpha.size)
        loss_slopes(loss, margins[first:last], offset, y[first:last], s[first:last], slopes[: last - first])
        total += _weigh(alpha[first:last], c[first:last], ratios[first:last], slopes, weights[first:last])
    squares[-1] = total
    in_order[0] = False  # only the sum of the squares is known, not their tree
    build(weights, levels)


@device(reassociate=True)
def _weigh(alpha: Any, c: Any, ratios: Any, slopes: Any, weights: Any) -> float:
    """Set the leaves c_k |κ_k|, given s_k φ'_k; return Σ a_k κ_k²."""
    total = 0.0
    for k in range(alpha.size):
        weights[k] = c[k] * abs(slopes[k] + alpha[k])
        total += ratios[k] * weights[k] * weights[k]
    return total


def _spread(rows: Any, columns: Any, i: int, step: float, margins: Any, changed: Any) -> tuple[int, int]:
    """margins += step · X x_i. Return how many rows are listed in `changed` (−1: too many to list), and the entries used."""
    raise NotImplementedError("compiled code only")


@overload(_spread, strict=False, jit_options={"error_model": "numpy", "nogil": True})
def _spread_overload(rows: Any, columns: Any, i: Any, step: Any, margins: Any, changed: Any) -> Any:
    if len(rows) == 1:

        def dense(rows: Any, columns: Any, i: Any, step: Any, margins: Any, changed: Any) -> Any:
            direction = columns[0][0]
            direction[:] = rows[0][i]
            for k in range(margins.size):
                margins[k] += step * row_dot(rows, k, direction)
            return -1, margins.size * direction.size

        return dense

    def sparse(rows: Any, columns: Any, i: Any, step: Any, margins: Any, changed: Any) -> Any:
        data, indices, indptr = rows
        column_data, column_rows, column_start = columns
        entries = 0
        for position in range(indptr[i], indptr[i + 1]):
            j = indices[position]
            entries += int(column_start[j + 1] - column_start[j])
        few = entries * _FEW < margins.size
        changed[0] = i  # α_i itself, even where the row is empty
        count = 1
        for position in range(indptr[i], indptr[i + 1]):
            j = indices[position]
            change = step * data[position]
            if position + 1 < indptr[i + 1]:  # the next column is elsewhere; its first lines are on their way meanwhile
                row_prefetch(columns, indices[position + 1])
            k, last = column_start[j], column_start[j + 1]
            while k + 4 <= last:  # the rows of a column differ: four can be loaded before the first is stored
                a, b, c, d = column_rows[k], column_rows[k + 1], column_rows[k + 2], column_rows[k + 3]
                at_a = margins[a] + change * column_data[k]
                at_b = margins[b] + change * column_data[k + 1]
                at_c = margins[c] + change * column_data[k + 2]
                at_d = margins[d] + change * column_data[k + 3]
                margins[a], margins[b], margins[c], margins[d] = at_a, at_b, at_c, at_d
                k += 4
            while k < last:
                margins[column_rows[k]] += change * column_data[k]
                k += 1
            if few:  # a row may be listed more than once; its leaf is then formed more than once, to the same value
                for k in range(column_start[j], column_start[j + 1]):
                    changed[count] = column_rows[k]
                    count += 1
        return count if few else -1, entries

    return sparse
