"""An interior-point method for losses with a corner (hinge, ε-insensitive), where Newton's method does not apply.

Both losses are sums of pieces c_j max(0, t_j − a_j z), a_j = ±1: one for the hinge (t = 1, a = y), one on each side of the
tube (t = −y − ε, a = −1 and t = y − ε, a = 1). With slacks ξ_j ≥ 0 and q_j = ξ_j − t_j + a_j z ≥ 0 the problem is a quadratic
programme, and its optimum is where, with multipliers 0 ≤ β_j ≤ c_j,

    λn w = Σ α_i x_i,   Σ α_i = 0 (with an intercept),   α_i = Σ a_j β_j over the pieces of row i,
    β_j q_j = 0,   (c_j − β_j) ξ_j = 0.

Mehrotra's predictor–corrector method follows the path where both products are μ instead of 0, μ → 0. Each step solves a
system with the matrix (1/n) Σ D_i x_i x_iᵀ + λ I, D_i = Σ 1/(q_j/β_j + ξ_j/(c_j − β_j)): the Hessian of Newton's method with
other curvatures. Some twenty steps end at the optimum, however badly the data are scaled. One epoch is one step.
"""

from __future__ import annotations

import numpy as np

from .. import rows as _rows
from .._checks import Array
from ..certificate import Shape
from ..losses import EpsilonInsensitive, Hinge
from .hessian import curvature_sum, regularised, solve_positive
from .newton import Newton

_TO_THE_WALL = 0.995
_LEAST_MU = 1e-25
# Some thirty numbers a row; a fit must not take much more memory than its data.
_BYTES_PER_ROW = 240
_VARIABLES_BYTES = 1 << 26


class InteriorPoint(Newton):
    """Predictor–corrector steps; not offered by name, `auto` turns to it."""

    name = "interior-point"
    needs_smooth = False
    evaluate_each_epoch = True
    may_be_worse_than_none = False

    @staticmethod
    def suits(problem: Shape) -> bool:
        """Whether the loss is made of such pieces, and the matrix and the variables fit in memory."""
        small = _BYTES_PER_ROW * problem.n <= _VARIABLES_BYTES
        return type(problem.loss) in (Hinge, EpsilonInsensitive) and Newton.direct(problem) and small

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin in the middle: the path does not profit from a point near the boundary, α only tells where b is."""
        problem = self.problem
        self.alpha, self.intercept = alpha, intercept
        self.w = np.zeros(problem.d)
        self.kept = np.flatnonzero(problem.sample_weight > 0)
        y, s = problem.y[self.kept], problem.sample_weight[self.kept]
        if isinstance(problem.loss, Hinge):
            self.t, self.a, self.c = np.ones((1, s.size)), y[None], s[None]
        else:
            width = problem.loss.params[0]
            self.t = np.array([-y - width, y - width])
            self.a = np.array([np.full(s.size, -1.0), np.ones(s.size)])
            self.c = np.array([s, s])
        violation = self.t - self.a * intercept
        self.xi = np.maximum(violation, 0.0) + np.abs(violation).mean() + 1e-3
        self.q = self.xi - violation
        self.beta = 0.5 * self.c
        self.room = 0.5 * self.c
        self._follow_pieces()

    def _follow_pieces(self) -> None:
        """Set α from the multipliers."""
        self.alpha[:] = 0.0
        self.alpha[self.kept] = (self.a * self.beta).sum(axis=0)

    def visit(self, count: int) -> None:
        """Make one predictor–corrector step."""
        problem, n, d = self.problem, self.problem.n, self.problem.d
        beta, xi, q, room = self.beta, self.xi, self.q, self.room
        mu = float((beta * q + room * xi).mean()) / 2
        weights = 1.0 / (q / beta + xi / room)
        curvatures = np.zeros(n)
        curvatures[self.kept] = weights.sum(axis=0)
        hessian = regularised(curvature_sum(self.team, curvatures), self.problem)

        def direction(first: Array, second: Array) -> tuple[Array, Array, Array, Array, float]:
            """Solve for targets `first` of β q and `second` of (c − β) ξ, both less their values now."""
            g = weights * (first / beta - second / room)
            pulled = self.alpha.copy()
            pulled[self.kept] += (self.a * g).sum(axis=0)
            right = problem.lam * (problem.weights_of(pulled) - self.w)
            if problem.fit_intercept:
                right = np.append(right, pulled.sum() / n)
            solution = solve_positive(hessian, right)
            dw, db = np.ascontiguousarray(solution[:d]), float(solution[d]) if problem.fit_intercept else 0.0
            dz = np.empty(n)
            _rows.margins_into(problem.rows, dw, dz)
            dz += db
            dbeta = g - weights * self.a * dz[self.kept]
            dxi = (second + xi * dbeta) / room
            dq = dxi + self.a * dz[self.kept]
            return dbeta, dxi, dq, dw, db

        dbeta, dxi, dq, _, _ = direction(-beta * q, -room * xi)
        t = _largest_step(beta, dbeta, xi, dxi, q, dq, room)
        ahead = float(((beta + t * dbeta) * (q + t * dq) + (room - t * dbeta) * (xi + t * dxi)).mean()) / 2
        centre = max(_LEAST_MU, mu * min(1.0, max(0.0, ahead / mu)) ** 3)
        dbeta, dxi, dq, dw, db = direction(centre - beta * q - dbeta * dq, centre - room * xi + dbeta * dxi)
        t = min(1.0, _TO_THE_WALL * _largest_step(beta, dbeta, xi, dxi, q, dq, room))
        self.w += t * dw
        self.intercept += t * db
        beta += t * dbeta
        room -= t * dbeta
        xi += t * dxi
        q += t * dq
        self._renew_pairs()
        self._follow_pieces()
        self.rows_touched += 6 * n

    def _renew_pairs(self) -> None:
        """Restore β + room = c and ξ − q = t − a z, which rounding wears away, by changing the larger one of each pair."""
        low = self.beta < self.room
        self.room[low] = (self.c - self.beta)[low]
        self.beta[~low] = (self.c - self.room)[~low]
        z = np.empty(self.problem.n)
        _rows.margins_into(self.problem.rows, self.w, z)
        violation = self.t - self.a * (z[self.kept] + self.intercept)
        up = violation > 0
        self.xi[up] = (self.q + violation)[up]
        self.q[~up] = (self.xi - violation)[~up]

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return α and w; a small difference between w and w(α) costs its square, while w(α) would miss the corners by it."""
        return self.alpha, self.w, self.intercept

    def renew(self, w: Array, error: float) -> None:
        """Keep the own w, which is a part of the path."""


def _largest_step(beta: Array, dbeta: Array, xi: Array, dxi: Array, q: Array, dq: Array, room: Array) -> float:
    """The largest t ≤ 1/0.995 that keeps every variable non-negative."""
    largest = 1.0 / _TO_THE_WALL
    for value, change in ((beta, dbeta), (xi, dxi), (q, dq), (room, -dbeta)):
        falling = change < 0
        if falling.any():
            largest = min(largest, float((value[falling] / -change[falling]).min()))
    return largest
