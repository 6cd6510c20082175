"""Conjugate gradients for the squared loss where a Hessian fits in memory, but is dear."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

import dualfree as df
from dualfree.solvers import hessian
from dualfree.solvers.conjugate_gradients import ConjugateGradients
from dualfree.solvers.row_space_cg import RowSpaceCg


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


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("kind", "n", "d"), [(ConjugateGradients, 90, 40), (RowSpaceCg, 30, 70)])
def test_an_epoch_in_one_call_is_four_steps(
    kind: type[ConjugateGradients], n: int, d: int, fit_intercept: bool, weights: bool
) -> None:
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(n, d, 0.3, format="csr", random_state=1) + scipy.sparse.csr_matrix(np.eye(n, d))
    s = rng.random(n) if weights else None
    problem = df.Problem(X, rng.normal(size=n) + 1.0, "squared", 1e-2, sample_weight=s, fit_intercept=fit_intercept)
    runs = []
    for in_one_call in (True, False):
        run = kind(problem, np.random.default_rng(0))
        run.target = 1e-6 * problem.at_zero
        run.start(np.zeros(n), 0.0)
        assert run.in_one_call
        run.in_one_call = in_one_call
        calls = 0
        run.begin_epoch()
        for _ in range(-(-n // run.visits_per_call)):
            run.visit(run.visits_per_call)
            calls += 1
        assert calls == (1 if in_one_call else 4)
        runs.append((run, *run.candidate()))
    (one, *point), (four, *expected) = runs
    for found, wanted in zip(point[:2], expected[:2], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
    assert one.intercept == pytest.approx(four.intercept, rel=1e-9)
    assert one.gap_estimate == pytest.approx(four.gap_estimate, rel=1e-6)
    assert one.rows_touched == four.rows_touched
    assert 0.0 < one.gap_estimate < 0.1 * problem.at_zero
    enough = one.rows_touched
    one.target = 2.0 * one.gap_estimate  # at one step at least, no more than that
    one.begin_epoch()
    one.visit(n)
    assert one.rows_touched == enough + n


def test_large_problems_make_one_step_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps Ctrl-C is heard."""
    monkeypatch.setattr("dualfree.solvers.conjugate_gradients.SHORT", 100)
    problem = _sparse_regression(badly_conditioned=False)
    steps = ConjugateGradients(problem, np.random.default_rng(0))
    steps.start(np.zeros(problem.n), 0.0)
    assert steps.visits_per_call == problem.n // 4
    steps.visit(steps.visits_per_call)
    assert steps.made == 1
