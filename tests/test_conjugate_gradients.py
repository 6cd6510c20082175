"""Conjugate gradients for the squared loss where a Hessian fits in memory, but is dear."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

import dualfree as df
from dualfree.solvers import hessian
from dualfree.solvers.conjugate_gradients import ConjugateGradients


def _sparse_regression(badly_conditioned: bool) -> df.Problem:
    """So many columns that a Hessian costs as much as twenty products."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(6_000, 700, 0.04, format="csr", random_state=0)
    if badly_conditioned:
        mixed = scipy.sparse.diags([np.ones(700), np.full(699, 0.99)], [0, 1])
        X = scipy.sparse.csr_matrix(X @ mixed @ scipy.sparse.diags(np.geomspace(1.0, 1e-3, 700)))
    y = X @ rng.normal(size=700) + rng.normal(size=6_000)
    return df.Problem(X, y, "squared", 1e-6 / 6_000)


def test_one_run_of_conjugate_gradients_where_a_hessian_is_dear() -> None:
    problem = _sparse_regression(badly_conditioned=False)
    assert 10 < hessian.in_products(problem) < 40
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert {entry.phase for entry in result.trace} == {ConjugateGradients.name}
    assert result.certificate.relative_gap <= 1e-9
    assert result.trace[-1].passes < 2 * hessian.in_products(problem)


def test_a_hessian_is_formed_where_conjugate_gradients_would_cost_more() -> None:
    problem = _sparse_regression(badly_conditioned=True)
    assert 10 < hessian.in_products(problem) < 40
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert result.trace[0].phase == ConjugateGradients.name
    assert result.trace[-1].phase == "newton"
    assert result.certificate.relative_gap <= 1e-9
    assert result.trace[-1].passes < 3 * hessian.in_products(problem)


def test_no_step_more_than_the_estimate_asks_for() -> None:
    """An epoch is four steps; where the second one is enough, the other two are not made."""
    problem = _sparse_regression(badly_conditioned=False)
    steps = ConjugateGradients(problem, np.random.default_rng(0))
    steps.target = 0.3 * problem.at_zero
    steps.start(np.zeros(problem.n), 0.0)
    while steps.gap_estimate > steps.target:
        steps.begin_epoch()
        for _ in range(4):
            steps.visit(problem.n // 4)
    enough = steps.made
    steps.visit(problem.n // 4)
    assert steps.made == enough
    steps.begin_epoch()
    steps.visit(problem.n // 4)
    assert steps.made == enough + 1  # asked for more, it goes on
    assert steps.steps_left() <= 0.0


def test_the_rate_foretells_the_steps() -> None:
    problem = _sparse_regression(badly_conditioned=False)
    steps = ConjugateGradients(problem, np.random.default_rng(0))
    steps.target = 1e-10 * problem.at_zero
    steps.start(np.zeros(problem.n), 0.0)
    assert steps.steps_left() == math.inf  # nobody knows
    foretold = []
    while steps.gap_estimate > steps.target:
        steps.begin_epoch()
        steps.visit(problem.n // 4)
        foretold.append(steps.made + steps.steps_left())
    assert foretold[len(foretold) // 2] == pytest.approx(steps.made, rel=0.3)
