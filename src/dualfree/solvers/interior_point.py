"""An interior-point method: for losses with a corner, and for their squares where Newton's method does not come along.

All of them are sums of pieces of t_j − a_j z, a_j = ±1: one for the hinge (t = 1, a = y), one on each side of the tube
(t = −y − ε, a = −1 and t = y − ε, a = 1). With slacks ξ_j ≥ 0 and q_j = ξ_j − t_j + a_j z ≥ 0 the problem is a quadratic
programme, of c_j ξ_j or of c_j ξ_j²/2, and its optimum is where, with multipliers β_j ≥ 0,

    λn w = Σ α_i x_i,   Σ α_i = 0 (with an intercept),   α_i = Σ a_j β_j over the pieces of row i,   β_j q_j = 0,
    (c_j − β_j) ξ_j = 0 and β_j ≤ c_j where the loss has a corner, β_j = c_j ξ_j where it is squared.

Mehrotra's predictor–corrector method follows the path where the products are μ instead of 0, μ → 0. Each step solves a system
with the matrix (1/n) Σ D_i x_i x_iᵀ + λ I, D_i = Σ 1/(q_j/β_j + r_j) with r_j = dξ_j/dβ_j: the Hessian of Newton's method with
other curvatures. Ten to twenty steps end at the optimum, however badly the data are scaled. One epoch is one step.

A squared loss has Newton steps, and few of them as a rule. But where there are hardly more rows than columns and nearly all are
on its flat part, the others do not hold w: a step soon runs into rows that it knew nothing of, and ends there; hundreds of them
follow. On the path every row has a curvature from the beginning.
"""

from __future__ import annotations

import numpy as np

from .. import rows as _rows
from .._checks import Array
from ..certificate import Shape
from ..losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from .hessian import curvature_sum, factorised
from .newton import Newton

_TO_THE_WALL = 0.995
_LEAST_MU = 1e-25
_FIRST_MU = 4.0  # in P(0)
# Some thirty numbers a row; a fit must not take much more memory than its data.
_BYTES_PER_ROW = 240
_VARIABLES_BYTES = 1 << 26


class InteriorPoint(Newton):
    """Predictor–corrector steps, of a loss with a corner; not offered by name, `auto` turns to it."""

    name = "interior-point"
    needs_smooth = False
    evaluate_each_epoch = True
    may_be_worse_than_none = False

    @staticmethod
    def suits(problem: Shape) -> bool:
        """Whether the loss is made of such pieces, and the matrix and the variables fit in memory."""
        return type(problem.loss) in (Hinge, EpsilonInsensitive) and _fits(problem)

    def start(self, alpha: Array, intercept: float) -> None:
        """Take the point to begin from."""
        problem = self.problem
        self.alpha, self.intercept = alpha, intercept
        self.w = np.zeros(problem.d)
        self.kept = np.flatnonzero(problem.sample_weight > 0)
        y, s = problem.y[self.kept], problem.sample_weight[self.kept]
        if isinstance(problem.loss, (Hinge, SquaredHinge)):
            self.t, self.a, self.c = np.ones((1, s.size)), y[None], s[None]
        else:
            width = problem.loss.params[0]
            self.t = np.array([-y - width, y - width])
            self.a = np.array([np.full(s.size, -1.0), np.ones(s.size)])
            self.c = np.array([s, s])
        self._begin()
        self._follow_pieces()

    def _begin(self) -> None:
        """Begin in the middle: the path does not profit from a point near the boundary, α only tells where b is."""
        violation = self._violation(np.zeros(self.problem.n))
        self.xi = np.maximum(violation, 0.0) + np.abs(violation).mean() + 1e-3
        self.q = self.xi - violation
        self.beta = 0.5 * self.c
        self.room = 0.5 * self.c

    def _violation(self, z: Array) -> Array:
        """t − a (z + b)."""
        return np.asarray(self.t - self.a * (z[self.kept] + self.intercept))

    def _follow_pieces(self) -> None:
        """Set α from the multipliers."""
        self.alpha[:] = 0.0
        self.alpha[self.kept] = (self.a * self.beta).sum(axis=0)

    def visit(self, count: int) -> None:
        """Make one predictor–corrector step."""
        problem, n, d = self.problem, self.problem.n, self.problem.d
        beta, q = self.beta, self.q
        resistance = self._resistance()
        weights = 1.0 / (q / beta + resistance)
        curvatures = np.zeros(n)
        curvatures[self.kept] = weights.sum(axis=0)
        factor = factorised(curvature_sum(self.team, curvatures), problem, self.team)

        def direction(product: Array, pull: Array | float) -> tuple[Array, Array, Array, Array, float]:
            """Solve for this change of β q, and for dξ = pull + r dβ."""
            g = weights * (product / beta - pull)
            pulled = self.alpha.copy()
            pulled[self.kept] += (self.a * g).sum(axis=0)
            right = problem.lam * (problem.weights_of(pulled) - self.w)
            if problem.fit_intercept:
                right = np.append(right, pulled.sum() / n)
            solution = factor.divided(right)
            dw, db = np.ascontiguousarray(solution[:d]), float(solution[d]) if problem.fit_intercept else 0.0
            dz = np.empty(n)
            _rows.margins_into(problem.rows, dw, dz)
            dz += db
            dbeta = g - weights * self.a * dz[self.kept]
            dxi = pull + resistance * dbeta
            return dbeta, dxi, dxi + self.a * dz[self.kept], dw, db

        nothing = np.zeros_like(beta)
        mu = self._mean_product(0.0, nothing, nothing, nothing)
        dbeta, dxi, dq, _, _ = direction(-beta * q, self._pull(0.0, nothing, nothing))
        t = self._largest_step(dbeta, dxi, dq)
        ahead = self._mean_product(t, dbeta, dxi, dq)
        centre = max(_LEAST_MU, mu * min(1.0, max(0.0, ahead / mu)) ** 3)
        dbeta, dxi, dq, dw, db = direction(centre - beta * q - dbeta * dq, self._pull(centre, dbeta, dxi))
        t = min(1.0, _TO_THE_WALL * self._largest_step(dbeta, dxi, dq))
        self.w += t * dw
        self.intercept += t * db
        z = np.empty(n)
        _rows.margins_into(problem.rows, self.w, z)
        self._move_pieces(t, dbeta, dxi, dq, self._violation(z))
        self._follow_pieces()
        self.rows_touched += 6 * n

    def _resistance(self) -> Array:
        """r, by how much ξ has to grow with β."""
        return np.asarray(self.xi / self.room)

    def _pull(self, centre: float, dbeta: Array, dxi: Array) -> Array | float:
        """What brings (c − β) ξ to `centre`, given the changes of a first direction, besides what follows from dβ."""
        return np.asarray((centre - self.room * self.xi + dbeta * dxi) / self.room)

    def _mean_product(self, t: float, dbeta: Array, dxi: Array, dq: Array) -> float:
        """The mean of β q and (c − β) ξ after a step."""
        first = (self.beta + t * dbeta) * (self.q + t * dq)
        return float((first + (self.room - t * dbeta) * (self.xi + t * dxi)).mean()) / 2

    def _largest_step(self, dbeta: Array, dxi: Array, dq: Array) -> float:
        """The largest t ≤ 1/0.995 that keeps every variable non-negative."""
        return _to_the_wall((self.beta, dbeta), (self.xi, dxi), (self.q, dq), (self.room, -dbeta))

    def _move_pieces(self, t: float, dbeta: Array, dxi: Array, dq: Array, violation: Array) -> None:
        """Make a step, and restore β + room = c and ξ − q = t − a z, which rounding wears away, by the larger of each pair."""
        self.beta += t * dbeta
        self.room -= t * dbeta
        self.xi += t * dxi
        self.q += t * dq
        low = self.beta < self.room
        self.room[low] = (self.c - self.beta)[low]
        self.beta[~low] = (self.c - self.room)[~low]
        up = violation > 0
        self.xi[up] = (self.q + violation)[up]
        self.q[~up] = (self.xi - violation)[~up]

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return α and w; a small difference between w and w(α) costs its square, while w(α) would miss the corners by it."""
        return self.alpha, self.w, self.intercept

    def renew(self, w: Array, error: float) -> None:
        """Keep the own w, which is a part of the path."""


class InteriorPointOfSquares(InteriorPoint):
    """The same of a squared loss: ξ = β/c, and β q is the only product."""

    needs_smooth = True

    @staticmethod
    def suits(problem: Shape) -> bool:
        """Whether the loss is made of such pieces, and the matrix and the variables fit in memory."""
        return type(problem.loss) in (SquaredHinge, SquaredEpsilonInsensitive) and _fits(problem)

    def _begin(self) -> None:
        """Begin at the weights given, if any, with all products alike: any w has such a point, ξ (ξ − t + a z) = μ/c.

        Good weights save a step or two, if the products are large: α is not good, and w has to leave the walls first.
        """
        if self.given_w is not None:
            self.w[:] = self.given_w
        mu = _FIRST_MU * self.problem.at_zero
        violation = self._violation(self.problem.margins(self.w))
        half, product = 0.5 * np.abs(violation), mu / self.c
        larger = half + np.sqrt(half * half + product)
        self.xi = np.where(violation > 0.0, larger, product / larger)
        self.q = np.where(violation > 0.0, product / larger, larger)
        self.beta = self.c * self.xi

    def _resistance(self) -> Array:
        return 1.0 / self.c

    def _pull(self, centre: float, dbeta: Array, dxi: Array) -> Array | float:
        return 0.0

    def _mean_product(self, t: float, dbeta: Array, dxi: Array, dq: Array) -> float:
        return float(((self.beta + t * dbeta) * (self.q + t * dq)).mean())

    def _largest_step(self, dbeta: Array, dxi: Array, dq: Array) -> float:
        return _to_the_wall((self.beta, dbeta), (self.q, dq))

    def _move_pieces(self, t: float, dbeta: Array, dxi: Array, dq: Array, violation: Array) -> None:
        self.beta += t * dbeta
        self.q += t * dq
        up = violation > 0
        self.beta[up] = (self.c * (self.q + violation))[up]
        self.q[~up] = (self.beta / self.c - violation)[~up]


def _fits(problem: Shape) -> bool:
    return Newton.direct(problem) and _BYTES_PER_ROW * problem.n <= _VARIABLES_BYTES


def _to_the_wall(*moving: tuple[Array, Array]) -> float:
    """The largest t ≤ 1/0.995 that keeps variables non-negative, each given with its change."""
    largest = 1.0 / _TO_THE_WALL
    for value, change in moving:
        falling = change < 0
        if falling.any():
            largest = min(largest, float((value[falling] / -change[falling]).min()))
    return largest
