"""Passes over the rows, split among threads.

The kernels release the GIL, so plain threads are enough. Each thread owns a block of consecutive rows and its own sums;
the sums are added in the order of the blocks, so the same number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import Array
from . import kernels

if TYPE_CHECKING:
    from .problem import MultinomialProblem


class Passes:
    """Sums over all rows of a problem, counted in `count` (1 is one pass over the data)."""

    def __init__(self, problem: MultinomialProblem, n_threads: int = 1) -> None:
        self.problem = problem
        self.count = 0.0
        self._by_column = not problem.is_dense
        n_threads = min(n_threads, problem.n)
        edges = np.linspace(0, problem.n, n_threads + 1).astype(int)
        self._blocks = [(int(edges[t]), int(edges[t + 1])) for t in range(n_threads)]
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _each(self, work: Callable[[int, int], Any]) -> list[Any]:
        if self._pool is None:
            return [work(*self._blocks[0])]
        return list(self._pool.map(lambda block: work(*block), self._blocks))

    def _laid_out(self, W: Array) -> Array:
        """W (K, d) in the layout of the kernels."""
        return np.ascontiguousarray(W.T if self._by_column else W)

    def _empty(self) -> Array:
        p = self.problem
        return np.empty((p.d, p.K) if self._by_column else (p.K, p.d))

    def _summed(self, parts: list[Array]) -> Array:
        total = _total(parts)
        return np.ascontiguousarray(total.T) if self._by_column else total

    def scores(self, W: Array) -> Array:
        """Return Z = X Wᵀ."""
        p = self.problem
        Z = np.empty((p.n, p.K))
        laid_out = self._laid_out(W)
        self._each(lambda start, stop: kernels.scores_into(p.rows, start, stop, laid_out, Z))
        self.count += 1
        return Z

    def residuals(self, Z: Array, b: Array, R: Array) -> tuple[float, Array]:
        """Fill R with p − e; return Σ s_i loss_i and Σ s_i R_i. Does not touch X."""
        p = self.problem

        def work(start: int, stop: int) -> tuple[float, Array]:
            slope = np.empty(p.K)
            return kernels.residuals_into(start, stop, Z, b, p.own, p.sample_weight, R, slope), slope

        parts = self._each(work)
        return float(sum(part[0] for part in parts)), np.sum([part[1] for part in parts], axis=0)

    def gradient(self, R: Array) -> Array:
        """Return Σ s_i R_iᵀ x_i, shape (K, d)."""
        p = self.problem

        def work(start: int, stop: int) -> Array:
            G = self._empty()
            kernels.gradient_into(p.rows, start, stop, R, p.sample_weight, G)
            return G

        self.count += 1
        return self._summed(self._each(work))

    def hessian_times(self, R: Array, V: Array, c: Array) -> tuple[Array, Array]:
        """Return the loss's Hessian (a sum over rows) times (V, c)."""
        p = self.problem
        laid_out = self._laid_out(V)

        def work(start: int, stop: int) -> tuple[Array, Array]:
            HV, Hc = self._empty(), np.empty(p.K)
            kernels.hessian_times_into(p.rows, start, stop, R, p.own, p.sample_weight, laid_out, c, HV, Hc)
            return HV, Hc

        self.count += 1
        parts = self._each(work)
        return self._summed([part[0] for part in parts]), _total([part[1] for part in parts])

    def hessian_diagonal(self, R: Array) -> tuple[Array, Array]:
        """Return the diagonal of the loss's Hessian."""
        p = self.problem

        def work(start: int, stop: int) -> tuple[Array, Array]:
            D, Dc = self._empty(), np.empty(p.K)
            kernels.hessian_diagonal_into(p.rows, start, stop, R, p.own, p.sample_weight, D, Dc)
            return D, Dc

        self.count += 1
        parts = self._each(work)
        return self._summed([part[0] for part in parts]), _total([part[1] for part in parts])

    def intercept_hessian(self, R: Array, slack: Array, radius: float) -> Array:
        """Return the Hessian in b of Σ s_i loss_i, made smaller for scores that may be off by radius ‖x_i‖ + slack_i."""
        p = self.problem

        def work(start: int, stop: int) -> Array:
            H = np.empty((p.K, p.K))
            kernels.intercept_hessian_into(start, stop, R, p.own, p.sample_weight, p.row_norms, slack, radius, H)
            return H

        lower = _total(self._each(work))
        return np.asarray(np.tril(lower) + np.tril(lower, -1).T)

    def weighted_curvatures(self, R: Array, slack: Array, move: float, radius: float) -> float:
        """Return Σ s_i ‖x_i‖ c_i, c_i bounding row i's curvature where scores are off by move + radius ‖x_i‖ + slack_i."""
        p = self.problem

        def work(start: int, stop: int) -> float:
            return kernels.weighted_curvatures(start, stop, R, p.own, p.sample_weight, p.row_norms, slack, move, radius)

        return float(sum(self._each(work)))

    def rounding(self, Z: Array, b: Array, R: Array, w_norm: float) -> tuple[Array, Array]:
        """Return each row's slack and the sums of `kernels.rounding_into`."""
        p = self.problem
        slack = np.empty(p.n)

        def work(start: int, stop: int) -> Array:
            sums = np.empty(5)
            kernels.rounding_into(
                p.rows, start, stop, Z, b, R, p.own, p.sample_weight, p.row_norms, w_norm, slack, sums
            )
            return sums

        return slack, _total(self._each(work))


def _total(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
