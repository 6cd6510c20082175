"""adfSDCA (Algorithm 1, heuristic = False): every iteration samples from the lemma's optimal distribution.

Lines 9–10 ask for all n residuals at every iteration, O(nnz) as printed. But one update changes only the margins of rows
that share a feature with x_i. They are found through the columns of x_i (X is kept by columns, too), so an iteration
costs Σ_{j ∈ x_i} |column j|: about a fifteenth of nnz on text. Residuals and tree leaves of those rows alone are formed
afresh. With an intercept, or with dense data, every row changes at every step.

Memory: the columns of a sparse X are a second copy of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from .._jit import device, kernel
from ..losses.calls import residual
from ..problem import Problem
from ..rows import as_rows, margins_into, row_add, row_dot
from ..sampling.adaptive import lemma_pair, potential_scales
from ..sampling.sum_tree import build, draw, new_tree, refresh
from .base import Solver

_ENTRIES_PER_CALL = 1 << 25


class AdfSdca(Solver):
    """The paper's optimal adaptive probabilities, exactly, at every iteration."""

    name = "adfsdca"

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        self.scales = potential_scales(problem, self.extra)
        if len(problem.rows) == 3:
            columns = problem.X.tocsc()
            self.columns = as_rows(columns)
            per_column = np.diff(columns.indptr).astype(np.float64)
            self.entries_per_visit = float(per_column @ per_column) / problem.n
        else:
            self.columns = (np.empty((1, problem.d)),)  # room for one row in float64
            self.entries_per_visit = float(problem.nnz)
        self.margins = np.empty(problem.n)
        self.touched = np.zeros(problem.n, dtype=np.uint8)
        self.weights, self.levels = new_tree(problem.n)
        self.squares, _ = new_tree(problem.n)
        self.visited = np.empty(0, dtype=np.int64)

    @property
    def visits_per_call(self) -> int:
        """The most visits that one call of `visit` should make."""
        return max(1, min(super().visits_per_call, int(_ENTRIES_PER_CALL / max(1.0, self.entries_per_visit))))

    def begin_epoch(self) -> None:
        """Form all margins afresh, so that rounding errors do not build up."""
        margins_into(self.problem.rows, self.w, self.margins)
        self.touched[:] = 1
        self._refresh()
        self.rows_touched += self.problem.n

    def _refresh(self) -> None:
        _refresh_all(
            *self.data,
            self.scales,
            self.alpha,
            self.offset,
            self.margins,
            self.touched,
            self.weights,
            self.squares,
            self.levels,
        )

    def visit(self, count: int) -> None:
        """Make `count` updates; `visited` holds the rows, in order."""
        uniforms = self.rng.random(count)
        self.visited = np.full(count, -1, dtype=np.int64)
        entries = _visit(
            *self.data,
            self.columns,
            self.scales,
            uniforms,
            self.alpha,
            self.w,
            self.offset,
            self.margins,
            self.touched,
            self.weights,
            self.squares,
            self.levels,
            self.visited,
        )
        # a visit touches entries in many rows; nnz/n entries count as one row
        self.rows_touched += count + entries * self.problem.n / max(1, self.problem.nnz)


@kernel
def _refresh_all(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    scales: Any,
    alpha: Any,
    offset: Any,
    margins: Any,
    touched: Any,
    weights: Any,
    squares: Any,
    levels: Any,
) -> None:
    _refresh_touched(
        loss, y, s, v, extra, scales, alpha, offset[0], margins, touched, weights, squares, levels, alpha.size
    )


@kernel
def _visit(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    scale: float,
    extra: float,
    columns: Any,
    scales: Any,
    uniforms: Any,
    alpha: Any,
    w: Any,
    offset: Any,
    margins: Any,
    touched: Any,
    weights: Any,
    squares: Any,
    levels: Any,
    visited: Any,
) -> float:
    entries = 0.0
    for t in range(uniforms.size):
        i = draw(weights, levels, uniforms[t])  # line 12: p_i = weights[i] / weights[-1]
        if i < 0:
            break  # κ = 0: the optimum
        visited[t] = i
        kappa = residual(loss, margins[i] + offset[0], y[i], s[i], alpha[i])
        ratio = squares[-1] / (weights[-1] * weights[i])  # Θ*/p_i, the lemma
        delta = -ratio * kappa
        alpha[i] += delta  # line 13
        row_add(rows, i, scale * delta, w)  # line 14
        count = _spread(rows, columns, i, scale * delta, margins, touched)
        entries += count
        touched[i] = 1
        if extra > 0.0:
            offset[0] += scale * extra * delta
            touched[:] = 1
            count = alpha.size
        # lines 9–10 of the next iteration
        _refresh_touched(
            loss, y, s, v, extra, scales, alpha, offset[0], margins, touched, weights, squares, levels, count
        )
    return entries



@device
def _refresh_touched(
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    extra: float,
    scales: Any,
    alpha: Any,
    offset: float,
    margins: Any,
    touched: Any,
    weights: Any,
    squares: Any,
    levels: Any,
    count: int,
) -> None:
    """Lines 9–10 for the rows that changed: κ_k, its leaf c_k |κ_k| and a_k κ_k²; then the sums above them.

    Many changes: build all sums anew, n additions in order. Few: walk up from each leaf.
    """
    few = count * 4 * levels.size < alpha.size
    for k in range(alpha.size):
        if touched[k]:
            touched[k] = 0
            kappa = residual(loss, margins[k] + offset, y[k], s[k], alpha[k])
            a, c = lemma_pair(s[k], v[k] + extra, scales)
            weights[k] = c * abs(kappa)
            squares[k] = a * kappa * kappa
            if few:
                refresh(weights, levels, k)
                refresh(squares, levels, k)
    if not few:
        build(weights, levels)
        build(squares, levels)


def _spread(rows: Any, columns: Any, i: int, step: float, margins: Any, touched: Any) -> int:
    """margins += step · X x_i, marking the rows that change; return how many entries of X that took."""
    raise NotImplementedError("compiled code only")


@overload(_spread, strict=False, jit_options={"error_model": "numpy", "nogil": True})
def _spread_overload(rows: Any, columns: Any, i: Any, step: Any, margins: Any, touched: Any) -> Any:
    if len(rows) == 1:

        def dense(rows: Any, columns: Any, i: Any, step: Any, margins: Any, touched: Any) -> Any:
            direction = columns[0][0]
            direction[:] = rows[0][i]
            for k in range(margins.size):
                margins[k] += step * row_dot(rows, k, direction)
            touched[:] = 1
            return margins.size * direction.size

        return dense

    def sparse(rows: Any, columns: Any, i: Any, step: Any, margins: Any, touched: Any) -> Any:
        data, indices, indptr = rows
        column_data, column_rows, column_start = columns
        entries = 0
        for position in range(indptr[i], indptr[i + 1]):
            j = indices[position]
            change = step * data[position]
            for k in range(column_start[j], column_start[j + 1]):
                row = column_rows[k]
                margins[row] += change * column_data[k]
                touched[row] = 1
            entries += column_start[j + 1] - column_start[j]
        return entries

    return sparse
