"""Newton's equation H p = −g for the multinomial problem: three ways, by size.

- `ExactStep`: assemble H, (K (d+1))² numbers, and factorise it. For few classes times features.
- `ConjugateGradients` otherwise: H is only ever multiplied with, one pass over the data each time. Preconditioned by

  - the eigenvectors of XᵀSX, computed once, where d is moderate. The Hessian lies between 0 and ½ (XᵀSX/n) + λ for each
    class, so this takes away whatever the scales and correlations of the columns do to the condition number;
  - the diagonal of H where d is large.

The intercepts are a column of ones at the end of each class's block, without the penalty. They are determined up to a
common constant only; the gradient has no component along it, and `ExactStep` pins it down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg

from .._checks import Array
from ..solvers.cholesky import solve_positive
from .passes import Passes
from .problem import MultinomialProblem

_EXACT_SIZE = 1200
_GRAM_COLUMNS = 1000
_BLOCK_ENTRIES = 1 << 18
_MAX_PRODUCTS = 400

Pair = tuple[Array, Array]


def choose_method(problem: MultinomialProblem, passes: Passes) -> ExactStep | ConjugateGradients:
    """Return the method for this size of problem."""
    if problem.K * (problem.d + 1) <= _EXACT_SIZE:
        return ExactStep(problem)
    kind = GramPreconditioner if problem.d <= _GRAM_COLUMNS else DiagonalPreconditioner
    return ConjugateGradients(problem, passes, kind(problem, passes))


def dense_blocks(problem: MultinomialProblem) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of consecutive rows as dense float64 with a column of ones where there is an intercept."""
    height = max(1, _BLOCK_ENTRIES // (problem.d + 1))
    ones = int(problem.fit_intercept)
    for start in range(0, problem.n, height):
        part = slice(start, min(problem.n, start + height))
        block = problem.X[part]
        wide = np.ones((part.stop - start, problem.d + ones))
        wide[:, : problem.d] = block if isinstance(block, np.ndarray) else block.toarray()
        yield part, wide


class ExactStep:
    """Assemble the Hessian and solve by Cholesky's method."""

    name = "newton"

    def __init__(self, problem: MultinomialProblem) -> None:
        self.problem = problem

    def solve(self, R: Array, gradient: Array, slope: Array, out_of_time: Callable[[], bool]) -> Pair:
        """Return the Newton direction (V, c) for the residuals R; `gradient` and `slope` are those of P."""
        p = self.problem
        D = p.d + int(p.fit_intercept)
        hessian = self._hessian(R, D)
        right = gradient if not p.fit_intercept else np.column_stack([gradient, slope])
        step = -solve_positive(hessian, right.ravel()).reshape(p.K, D)
        if not p.fit_intercept:
            return step, np.zeros(p.K)
        return np.ascontiguousarray(step[:, :-1]), step[:, -1].copy()

    def _hessian(self, R: Array, D: int) -> Array:
        p = self.problem
        K, s = p.K, p.sample_weight
        total = np.zeros((K * D, K * D))
        for part, x in dense_blocks(p):
            probability = R[part].copy()
            probability[np.arange(x.shape[0]), p.own[part]] += 1.0
            # Σ s [diag(p) − p pᵀ] ⊗ x xᵀ: the second term is one product of matrices, the first fills the diagonal blocks.
            wide = (np.sqrt(s[part])[:, None] * probability)[:, :, None] * x[:, None, :]
            wide = wide.reshape(x.shape[0], K * D)
            total -= wide.T @ wide
            for k in range(K):
                own = slice(k * D, (k + 1) * D)
                total[own, own] += x.T @ ((s[part] * probability[:, k])[:, None] * x)
        total /= p.n
        penalised = np.full((K, D), p.lam)
        if p.fit_intercept:
            penalised[:, -1] = 0.0
            ones = np.arange(K) * D + p.d
            total[np.ix_(ones, ones)] += max(float(total[ones, ones].sum()), 1e-300) / K
        total[np.arange(K * D), np.arange(K * D)] += penalised.ravel()
        return total


class GramPreconditioner:
    """(c XᵀSX/n + λ)⁻¹ for each class, from one eigendecomposition."""

    def __init__(self, problem: MultinomialProblem, passes: Passes) -> None:
        self.problem = problem
        D = problem.d + int(problem.fit_intercept)
        gram = np.zeros((D, D))
        for part, x in dense_blocks(problem):
            gram += x.T @ (problem.sample_weight[part][:, None] * x)
        passes.count += 1
        gram /= problem.n
        values, vectors = scipy.linalg.eigh(gram, check_finite=False)
        self.values, self.vectors = np.maximum(values, 0.0), vectors
        self.curvature = np.full(problem.K, 0.25)

    def update(self, R: Array) -> None:
        """Take each class's mean curvature p (1 − p) from the residuals."""
        p = self.problem
        size = np.abs(R)
        mean = (p.sample_weight @ (size * (1.0 - size))) / p.sample_weight.sum()
        self.curvature = np.maximum(mean, 1e-8)

    def __call__(self, V: Array, c: Array) -> Pair:
        """Apply it."""
        p = self.problem
        wide = np.column_stack([V, c]) if p.fit_intercept else V
        inner = (wide @ self.vectors) / (self.curvature[:, None] * self.values[None, :] + p.lam)
        wide = inner @ self.vectors.T
        if not p.fit_intercept:
            return wide, np.zeros_like(c)
        return np.ascontiguousarray(wide[:, :-1]), wide[:, -1].copy()


class DiagonalPreconditioner:
    """The inverse of the Hessian's diagonal."""

    def __init__(self, problem: MultinomialProblem, passes: Passes) -> None:
        self.problem, self.passes = problem, passes

    def update(self, R: Array) -> None:
        """Take the diagonal at the current residuals."""
        D, Dc = self.passes.hessian_diagonal(R)
        self.inverse = 1.0 / (D / self.problem.n + self.problem.lam)
        self.inverse_c = 1.0 / np.maximum(Dc / self.problem.n, 1e-12)

    def __call__(self, V: Array, c: Array) -> Pair:
        """Apply it."""
        return self.inverse * V, self.inverse_c * c


class ConjugateGradients:
    """Solve Newton's equation inexactly: a tenth of the gradient at first, ever more closely near the optimum."""

    name = "newton-cg"

    def __init__(
        self, problem: MultinomialProblem, passes: Passes, precondition: GramPreconditioner | DiagonalPreconditioner
    ) -> None:
        self.problem, self.passes, self.precondition = problem, passes, precondition
        self.first_size = 0.0

    def solve(self, R: Array, gradient: Array, slope: Array, out_of_time: Callable[[], bool]) -> Pair:
        """Return a direction (V, c) that solves Newton's equation closely enough."""
        p = self.problem
        self.precondition.update(R)
        V, c = np.zeros_like(gradient), np.zeros_like(slope)
        r, q = -gradient, -slope
        if not p.fit_intercept:
            q = np.zeros_like(slope)
        y, t = self.precondition(r, q)
        rho = _dot(r, q, y, t)
        size = math.sqrt(rho)
        self.first_size = max(self.first_size, size)
        enough = min(0.1, math.sqrt(size / self.first_size)) * size
        u, e = y, t
        for _ in range(_MAX_PRODUCTS):
            if math.sqrt(rho) <= enough or out_of_time():
                break
            HU, He = self.passes.hessian_times(R, u, e)
            HU /= p.n
            He /= p.n
            HU += p.lam * u
            if not p.fit_intercept:
                He[:] = 0.0
            curvature = _dot(u, e, HU, He)
            if not curvature > 0.0:
                break  # rounding; what has been found so far descends
            a = rho / curvature
            V += a * u
            c += a * e
            r = r - a * HU
            q = q - a * He
            y, t = self.precondition(r, q)
            previous, rho = rho, _dot(r, q, y, t)
            u = y + (rho / previous) * u
            e = t + (rho / previous) * e
        if not V.any() and not c.any():
            V, c = self.precondition(-gradient, -slope if p.fit_intercept else np.zeros_like(slope))
        return V, c - c.mean()


def _dot(A: Array, a: Array, B: Array, b: Array) -> float:
    return float(np.vdot(A, B) + a @ b)
