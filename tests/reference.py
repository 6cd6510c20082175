"""The optimum of a small problem in arithmetic of 60 digits, from the definitions alone.

Nothing here calls the package's kernels: a `Reference` takes only the data of a `Problem` (X, y, weights, λ, the loss's
name and parameter) and does everything else with mpmath. The optimum comes from Newton's method with a line search or,
for a loss with a corner (hinge, ε-insensitive), from a primal–dual interior-point method.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import scipy.sparse

mp = mpmath.MPContext()
mp.dps = 60
ZERO, ONE, HALF = mp.mpf(0), mp.mpf(1), mp.mpf(1) / 2

CORNERED = ("hinge", "epsilon_insensitive")


def _corner(e: Any, width: Any) -> tuple[Any, Any, Any]:
    """max(0, e) rounded over `width` (0: not at all): value, slope, curvature."""
    if e <= 0:
        return ZERO, ZERO, ZERO
    if e >= width:
        return e - width / 2, ONE, ZERO
    return e * e / (2 * width), e / width, 1 / width


def _square(e: Any) -> tuple[Any, Any, Any]:
    """½ max(0, e)²: value, slope, curvature."""
    return (e * e / 2, e, ONE) if e > 0 else (ZERO, ZERO, ZERO)


def loss_terms(name: str, p: Any, z: Any, y: Any) -> tuple[Any, Any, Any]:
    """φ, φ', φ'' of the loss of that name with parameter p."""
    if name == "logistic":
        m = y * z
        small = mp.exp(-abs(m))
        wrong = small / (1 + small) if m > 0 else 1 / (1 + small)
        return mp.log1p(small) + max(ZERO, -m), -y * wrong, small / (1 + small) ** 2
    if name in ("squared_hinge", "smoothed_hinge", "hinge"):
        e = 1 - y * z
        if name == "squared_hinge":
            value, slope, curvature = _square(e)
        else:
            value, slope, curvature = _corner(e, p if name == "smoothed_hinge" else ZERO)
        return value, -y * slope, curvature
    r = z - y
    side, size = (ONE, r) if r >= 0 else (-ONE, -r)
    if name == "squared":
        return r * r / 2, r, ONE
    if name == "huber":
        return (r * r / 2, r, ONE) if size <= p else (p * (size - p / 2), side * p, ZERO)
    if name == "squared_epsilon_insensitive":
        value, slope, curvature = _square(size - p)
    else:
        assert name == "epsilon_insensitive", name
        value, slope, curvature = _corner(size - p, ZERO)
    return value, side * slope, curvature


def conjugate(name: str, p: Any, a: Any, y: Any) -> Any:
    """φ*(−a; y) with parameter p; +∞ outside its domain."""
    b = a * y
    if name == "logistic":
        if not 0 <= b <= 1:
            return mp.inf
        return sum((t * mp.log(t) for t in (b, 1 - b) if t > 0), ZERO)
    if name == "squared_hinge":
        return b * b / 2 - b if b >= 0 else mp.inf
    if name in ("smoothed_hinge", "hinge"):
        return p * b * b / 2 - b if 0 <= b <= 1 else mp.inf
    if name == "squared":
        return a * a / 2 - b
    if name == "huber":
        return a * a / 2 - b if abs(a) <= p else mp.inf
    if name == "squared_epsilon_insensitive":
        return a * a / 2 - b + p * abs(a)
    assert name == "epsilon_insensitive", name
    return p * abs(a) - b if abs(a) <= 1 else mp.inf


def exact(values: Any) -> list[Any]:
    """Floating-point numbers as they are, without rounding."""
    return [mp.mpf(float(v)) for v in np.asarray(values).ravel()]


class Reference:
    """A problem in arithmetic of 60 digits."""

    def __init__(self, problem: Any) -> None:
        X = problem.X.toarray() if scipy.sparse.issparse(problem.X) else problem.X
        self.X = [exact(row) for row in X]
        self.n, self.d = problem.n, problem.d
        self.y, self.s, self.lam = exact(problem.y), exact(problem.sample_weight), mp.mpf(problem.lam)
        self.name = problem.loss.name
        self.parameter = mp.mpf(problem.loss.params[0]) if problem.loss.params else ZERO
        self.fit_intercept = problem.fit_intercept
        self._optimum: tuple[list[Any], Any, Any] | None = None

    def margins(self, w: list[Any], b: Any) -> list[Any]:
        return [mp.fdot(x, w) + b for x in self.X]

    def primal(self, w: Any, b: Any = 0.0) -> Any:
        """P(w, b)."""
        w, b = [mp.mpf(v) for v in w], mp.mpf(b)
        total = ZERO
        for z, y, s in zip(self.margins(w, b), self.y, self.s, strict=True):
            if s:
                total += s * loss_terms(self.name, self.parameter, z, y)[0]
        return total / self.n + self.lam / 2 * mp.fdot(w, w)

    def dual(self, alpha: Any) -> Any:
        """D(α); −∞ outside the domain, the constraint Σ α = 0 of an intercept left aside."""
        alpha = [mp.mpf(v) for v in alpha]
        total = ZERO
        for a, y, s in zip(alpha, self.y, self.s, strict=True):
            if s:
                total += s * conjugate(self.name, self.parameter, a / s, y)
            elif a:
                return -mp.inf
        w = self.weights_of(alpha)
        return -total / self.n - self.lam / 2 * mp.fdot(w, w)

    def weights_of(self, alpha: Any) -> list[Any]:
        """w(α) = (1/(λn)) Σ α_i x_i."""
        alpha = [mp.mpf(v) for v in alpha]
        return [mp.fdot(alpha, [x[j] for x in self.X]) / (self.lam * self.n) for j in range(self.d)]

    @property
    def distance_error(self) -> Any:
        """How far the reference's own w may be from w*."""
        return mp.sqrt(2 * mp.mpf(10) ** -33 * (self.primal([ZERO] * self.d) + 1) / self.lam)

    def suboptimality(self, w: Any, b: Any = 0.0) -> Any:
        """P(w, b) − P*."""
        return self.primal(w, b) - self.optimum[2]

    @property
    def optimum(self) -> tuple[list[Any], Any, Any]:
        """(w*, b*, P*)."""
        if self._optimum is None:
            point = self._interior_point() if self.name in CORNERED else self._newton()
            w, b = point[: self.d], point[self.d] if self.fit_intercept else ZERO
            self._optimum = w, b, self.primal(w, b)
        return self._optimum

    @property
    def _extended_rows(self) -> list[list[Any]]:
        """The rows, with a 1 for the intercept."""
        return [[*x, ONE] for x in self.X] if self.fit_intercept else self.X

    def _system(self, weights: list[Any], rows: list[list[Any]]) -> Any:
        """λ I (not for b) + Σ weights_i x_i x_iᵀ."""
        size = self.d + self.fit_intercept
        matrix = mp.matrix(size, size)
        for j in range(self.d):
            matrix[j, j] = self.lam
        for weight, x in zip(weights, rows, strict=True):
            if weight:
                for j in range(size):
                    for k in range(j + 1):
                        matrix[j, k] += weight * x[j] * x[k]
        for j in range(size):
            for k in range(j):
                matrix[k, j] = matrix[j, k]
        return matrix

    def _newton(self) -> list[Any]:
        rows, size = self._extended_rows, self.d + self.fit_intercept
        point = [ZERO] * size

        def value(v: list[Any]) -> Any:
            return self.primal(v[: self.d], v[self.d] if self.fit_intercept else ZERO)

        here = start = value(point)
        for _ in range(500):
            terms = [
                loss_terms(self.name, self.parameter, mp.fdot(x, point), y) for x, y in zip(rows, self.y, strict=True)
            ]
            slopes = [s * term[1] / self.n for s, term in zip(self.s, terms, strict=True)]
            gradient = [mp.fdot(slopes, [x[j] for x in rows]) for j in range(size)]
            for j in range(self.d):
                gradient[j] += self.lam * point[j]
            hessian = self._system([s * term[2] / self.n for s, term in zip(self.s, terms, strict=True)], rows)
            if self.fit_intercept:  # P may be flat in b: the least curvature that tells up from down
                hessian[self.d, self.d] += mp.mpf(10) ** -30 * (1 + hessian[self.d, self.d])
            step = list(mp.lu_solve(hessian, mp.matrix([-g for g in gradient])))
            decrement = -mp.fdot(gradient, step)
            if decrement <= mp.mpf(10) ** -48 * start:
                return point
            t = ONE
            new = [v + t * move for v, move in zip(point, step, strict=True)]
            while (there := value(new)) > here - t * decrement / 10:
                t /= 2
                if t < mp.mpf(10) ** -40:
                    return point  # the last digits
                new = [v + t * move for v, move in zip(point, step, strict=True)]
            point, here = new, there
        raise AssertionError("the reference did not converge")

    def _interior_point(self) -> list[Any]:
        """min λ/2 ‖w‖² + Σ c ξ  with  ξ ≥ 0 and t = ξ − h + g·v ≥ 0, one pair (g, h) for each piece max(0, h − g·v)."""
        pieces = []
        for x, y, s in zip(self._extended_rows, self.y, self.s, strict=True):
            if s and self.name == "hinge":
                pieces.append((s / self.n, [y * v for v in x], ONE))
            elif s:
                pieces.append((s / self.n, x, y - self.parameter))
                pieces.append((s / self.n, [-v for v in x], -y - self.parameter))
        rows = [g for _, g, _ in pieces]
        size = self.d + self.fit_intercept
        v = [ZERO] * size
        xi = [max(h, ZERO) + 1 for _, _, h in pieces]
        u = [c / 2 for c, _, _ in pieces]
        while True:
            t = [x - h + mp.fdot(g, v) for x, (_, g, h) in zip(xi, pieces, strict=True)]
            q = [c - a for a, (c, _, _) in zip(u, pieces, strict=True)]
            mu = (mp.fdot(u, t) + mp.fdot(q, xi)) / (2 * len(pieces))
            stationarity = [
                (self.lam * v[j] if j < self.d else ZERO) - mp.fdot(u, [g[j] for g in rows]) for j in range(size)
            ]
            if mu < mp.mpf(10) ** -34 * (1 + sum(xi)):
                return v
            mu /= 30
            bottom = [t[i] + u[i] * xi[i] / q[i] for i in range(len(u))]
            top = [mu - u[i] * t[i] - u[i] * mu / q[i] + u[i] * xi[i] for i in range(len(u))]
            ratio = [a / b for a, b in zip(top, bottom, strict=True)]
            right = [mp.fdot(ratio, [g[j] for g in rows]) - stationarity[j] for j in range(size)]
            dv = list(
                mp.lu_solve(self._system([a / b for a, b in zip(u, bottom, strict=True)], rows), mp.matrix(right))
            )
            moves = [mp.fdot(g, dv) for g in rows]
            du = [ratio[i] - u[i] * moves[i] / bottom[i] for i in range(len(u))]
            dxi = [(mu - q[i] * xi[i] + xi[i] * du[i]) / q[i] for i in range(len(u))]
            dt = [a + b for a, b in zip(dxi, moves, strict=True)]
            length = ONE
            for values, changes in ((u, du), (q, [-a for a in du]), (xi, dxi), (t, dt)):
                for value, change in zip(values, changes, strict=True):
                    if change < 0:
                        length = min(length, -value / change * mp.mpf("0.99"))
            v = [a + length * b for a, b in zip(v, dv, strict=True)]
            u = [a + length * b for a, b in zip(u, du, strict=True)]
            xi = [a + length * b for a, b in zip(xi, dxi, strict=True)]
