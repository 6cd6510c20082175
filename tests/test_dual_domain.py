"""The dual domain: sums without error, and room to move."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from problems import make_problem

import dualfree as df
from dualfree._jit import kernel
from dualfree.dual_domain import bounds, exact_sum, farthest_row, project, room_to_shift
from dualfree.problem import loss_sum
from dualfree.team import Team


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 5, 255, 256, 257, 1000])
def test_sums_that_cancel(n: int, weighted: bool) -> None:
    """Against arithmetic without rounding: the error is within its bound, and the bound is small."""
    rng = np.random.default_rng(n)
    alpha = rng.normal(size=n) * 10.0 ** rng.integers(-12, 12, size=n)
    alpha[n // 2 :] = -alpha[: n - n // 2]
    s = rng.random(n) + 0.1 if weighted else np.ones(n)
    total, error = exact_sum(alpha, s)
    # what the certificate speaks of: s_i times α_i/s_i, rounded
    terms = [Fraction(w) * Fraction(a / w) for a, w in zip(alpha.tolist(), s.tolist(), strict=True)]
    assert abs(Fraction(total) - sum(terms)) <= Fraction(error)
    assert error <= 1e-15 * abs(total) + 1e-29 * n * n * float(np.abs(alpha).max())


@kernel
def _bounds(loss: Any, y: float, s: float) -> tuple[float, float]:
    lower, upper = bounds(loss, y, s)
    return lower, upper


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber", "hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("total", [-1.0, 1.0])
def test_room(loss: str, total: float) -> None:
    problem = make_problem(loss, n=700, weights="random", fit_intercept=True)
    feasible = np.empty(problem.n)
    project(Team(problem), np.random.default_rng(0).normal(size=problem.n), feasible)
    y, s = problem.y, problem.sample_weight
    ends = np.array([_bounds(problem.loss.compiled, *row) for row in zip(y.tolist(), s.tolist(), strict=True)])
    down, up = feasible - ends[:, 0], ends[:, 1] - feasible
    space = down if total > 0 else up
    unlimited, room = room_to_shift(problem.loss.compiled, y, s, feasible, total)
    assert unlimited == pytest.approx(s[np.isinf(space)].sum())
    assert room == pytest.approx(space[np.isfinite(space)].sum())
    both = np.minimum(down, up)
    both = np.where(np.isinf(both), s * np.max(np.abs(feasible) / s), both)
    assert farthest_row(problem.loss.compiled, y, s, feasible) == (int(both.argmax()), both.max())


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weights", ["none", "random"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "smoothed_hinge", "huber"])
def test_the_objective_at_zero(loss: str, weights: str, fit_intercept: bool) -> None:
    problem = make_problem(loss, n=700, weights=weights, fit_intercept=fit_intercept)
    b = problem.intercept_at_zero if fit_intercept else 0.0
    losses = [problem.loss(b, float(y)) for y in problem.y]
    assert problem.at_zero == pytest.approx(math.fsum(problem.sample_weight * losses) / problem.n, rel=1e-14)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "smoothed_hinge", "huber"])
def test_sums_of_losses(loss: str) -> None:
    rng = np.random.default_rng(0)
    problem = make_problem(loss, n=700, weights="random")
    z, s = 30.0 * rng.normal(size=problem.n), problem.sample_weight.copy()
    s[::3] = 0.0
    terms = [w * problem.loss(float(m) + 0.3, float(y)) for w, m, y in zip(s, z, problem.y, strict=True)]
    assert loss_sum(problem.loss.compiled, z, 0.3, problem.y, s) == pytest.approx(math.fsum(terms), rel=1e-14)
    z[0] = math.inf  # a row without weight
    assert math.isfinite(loss_sum(problem.loss.compiled, z, 0.3, problem.y, s))
    z[1] = math.nan
    assert math.isnan(loss_sum(problem.loss.compiled, z, 0.3, problem.y, s))


def test_the_best_intercept_leaves_the_variance() -> None:
    problem = df.Problem(np.eye(3), [1.0, 2.0, 4.0], loss="squared", lam=1.0, fit_intercept=True)
    assert problem.at_zero == pytest.approx(0.5 * np.var([1.0, 2.0, 4.0]))
