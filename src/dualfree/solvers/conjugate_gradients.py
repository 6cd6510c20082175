"""Conjugate gradients for the squared loss, where the Hessian does not fit in memory: `auto` begins with it.

P is quadratic, so one run of the method, never restarted, minimises it. It is preconditioned with the Hessian's diagonal, and
each step costs a pass over the rows in their order, about half of a coordinate epoch. The method's own residual
is −∇P, so the gradient bound ‖∇P‖²/(2λ) is known at every step without a certificate: it says when one is due.

One epoch is a few steps.
"""

from __future__ import annotations

import numpy as np

from .. import least_squares
from .._checks import Array
from ..losses import Squared
from ..problem import Problem
from .base import Solver
from .hessian import add_rows, hessian_diagonal, hessian_product
from .linear_cg import LinearCg

_STEPS_PER_EPOCH = 4


class ConjugateGradients(Solver):
    """Preconditioned conjugate gradients; not offered by name, `auto` turns to it."""

    name = "conjugate-gradients"
    needs_convex = True

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Whether P is quadratic."""
        return isinstance(problem.loss, Squared)

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin at w(α), or at the weights given."""
        super().start(alpha, intercept)
        problem, d = self.problem, self.problem.d
        size = d + problem.fit_intercept
        self.dual_follows = least_squares.suits(problem)
        self.point = np.zeros(size)
        self.point[:d] = self.w if self.given_w is None else self.given_w
        self.w = self.point[:d]
        if problem.fit_intercept:
            self.point[d] = intercept
        diagonal = hessian_diagonal(self.team, problem.sample_weight)
        self._set_dual()
        residual = np.zeros(size)  # −∇P
        add_rows(problem.rows, self.alpha, residual[:d])
        if problem.fit_intercept:
            residual[d] = self.alpha.sum()
        residual /= problem.n
        residual[:d] -= problem.lam * self.w
        self.solution = LinearCg(self.point, residual, lambda vector: vector / diagonal)
        self.rows_touched += 3 * problem.n
        self._estimate()

    def _set_dual(self) -> None:
        """α = s (y − Xw − b)."""
        problem = self.problem
        self.intercept = float(self.point[-1]) if problem.fit_intercept else 0.0
        self.team.margins_into(self.w, self.alpha)
        self.alpha += self.intercept
        np.subtract(problem.y, self.alpha, out=self.alpha)
        self.alpha *= problem.sample_weight

    def _estimate(self) -> None:
        part = self.solution.residual[: self.problem.d]
        self.gap_estimate = float(part @ part) / (2.0 * self.problem.lam)

    @property
    def visits_per_call(self) -> int:
        """A quarter of an epoch is one step."""
        return -(-self.problem.n // _STEPS_PER_EPOCH)

    def visit(self, count: int) -> None:
        """Make one step."""
        if not self.solution.energy > 0.0:
            return
        self.solution.step(lambda vector: hessian_product(self.team, self.problem.sample_weight, vector))
        self.rows_touched += self.problem.n
        self._estimate()

    def end_epoch(self) -> None:
        """Nothing: the intercept is one of the variables."""

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b)."""
        self._set_dual()
        return self.alpha, self.w, None
