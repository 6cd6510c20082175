"""Conjugate gradients for the squared loss, where the Hessian is dear or does not fit in memory: `auto` begins with it.

P is quadratic, so one run of the method, never restarted, minimises it. It is preconditioned with the Hessian's diagonal, and
each step costs a pass over the rows in their order, about half of a coordinate epoch. The method's own residual
is −∇P, so the gradient bound ‖∇P‖²/(2λ) is known at every step without a certificate: it says when one is due.

One epoch is a few steps. Where they are short, they are made in one call: the interpreter would take as long as they do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import least_squares
from .._checks import Array
from .._jit import kernel
from ..losses import Squared
from ..problem import Problem
from ..vector_math import dot
from .base import Solver
from .exactness import gap_within_digits
from .hessian import add_rows, hessian_diagonal, hessian_product, part_of_product
from .line_search import TINY
from .linear_cg import LinearCg, step_along

STEPS_PER_EPOCH = 4
SHORT = 1 << 18  # entries of the rows, up to which an epoch is one call


class ConjugateGradients(Solver):
    """Preconditioned conjugate gradients; not offered by name, `auto` turns to it."""

    name = "conjugate-gradients"
    needs_convex = True
    gap_estimate: float

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
        self.diagonal = diagonal
        self.in_one_call = self.team.size == 1 and problem.nnz <= SHORT and bool(problem.sample_weight.any())
        self.rows_touched += 3 * problem.n
        self._estimate()
        self.made = self.steps = 0
        self.first_estimate = self.gap_estimate

    def _set_dual(self) -> None:
        """α = s (y − Xw − b)."""
        problem = self.problem
        self.intercept = float(self.point[-1]) if problem.fit_intercept else 0.0
        if self.w.any():
            self.team.margins_into(self.w, self.alpha)
        else:
            self.alpha[:] = 0.0
        self.alpha += self.intercept
        np.subtract(problem.y, self.alpha, out=self.alpha)
        self.alpha *= problem.sample_weight

    def _estimate(self) -> None:
        part = self.solution.residual[: self.problem.d]
        self.gap_estimate = float(part @ part) / (2.0 * self.problem.lam)

    @property
    def visits_per_call(self) -> int:
        """A quarter of an epoch is one step."""
        return self.problem.n if self.in_one_call else -(-self.problem.n // STEPS_PER_EPOCH)

    def begin_epoch(self) -> None:
        """Make one step at least."""
        self.steps = 0

    def visit(self, count: int) -> None:
        """Make one step, or those of an epoch, where that is still worth its price."""
        problem, solution = self.problem, self.solution
        if not solution.energy > 0.0 or (self.steps > 0 and self.gap_estimate <= self.target):
            return
        if self.in_one_call:
            vectors = solution.point, solution.residual, solution.search
            made, solution.energy = _steps(
                problem.rows,
                problem.sample_weight,
                problem.lam,
                self.diagonal,
                problem.d,
                *vectors,
                solution.energy,
                self.target,
                STEPS_PER_EPOCH,
            )
        else:
            made = 1
            solution.step(lambda vector: hessian_product(self.team, problem.sample_weight, vector))
        self.steps += made
        self.made += made
        self.rows_touched += made * problem.n
        self._estimate()

    def steps_left(self) -> float:
        """About how many steps are left, at the rate until now."""
        gained = math.log(max(self.first_estimate, TINY) / max(self.gap_estimate, TINY))
        wanted = math.log(max(self.gap_estimate, TINY) / gap_within_digits(self.problem, self.target))
        return self.made * wanted / gained if gained > 0.0 else math.inf

    def end_epoch(self) -> None:
        """Nothing: the intercept is one of the variables."""

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b)."""
        self._set_dual()
        return self.alpha, self.w, None


@kernel
def _steps(
    rows: Any,
    weights: Any,
    lam: float,
    diagonal: Any,
    d: int,
    point: Any,
    residual: Any,
    search: Any,
    energy: float,
    target: float,
    most: int,
) -> tuple[int, float]:
    """Do what `LinearCg.step` does so often, or until the gradient bound is `target`; return how often, and the energy."""
    n, size = weights.size, point.size
    all_rows, products = np.array([0, n]), np.empty((1, size))
    product = products[0]
    made = 0
    while made < most and energy > 0.0:
        made += 1
        part_of_product(0, all_rows, rows, weights, search, size > d, n, products)
        for j in range(d):
            product[j] += lam * search[j]
        energy, _, _ = step_along(product, diagonal, point, residual, search, energy)
        if dot(residual, residual, d) <= 2.0 * lam * target:
            break
    return made, energy
