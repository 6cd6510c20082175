"""The interior-point phase: losses with a corner, and their squares, on data that other methods cannot solve."""

from __future__ import annotations

import numpy as np
import pytest
from reference import Reference
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import dualfree as df
from dualfree.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource
from dualfree.solvers.driver import Run
from dualfree.solvers.interior_point import InteriorPoint, InteriorPointOfSquares
from dualfree.solvers.newton import Newton


def run(problem, tol, epochs=60):
    kind = InteriorPoint if InteriorPoint.suits(problem) else InteriorPointOfSquares
    assert kind.suits(problem)
    solver = kind(problem, np.random.default_rng(0))
    driver = Run(problem, solver, tol=tol, max_epochs=epochs, max_time=None, callback=None, evaluate_every=None)
    return driver.go(np.zeros(problem.n), 0.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hinge_on_raw_data(loss, load, C, intercept):
    X, y = load(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    problem = df.Problem(X, y > 0, loss, 1 / (C * y.size), weights, intercept)
    result = run(problem, 1e-7)
    assert result.status is df.Status.CONVERGED
    assert result.n_epochs <= 45
    automatic = df.solve(problem, tol=1e-7, random_state=0)
    assert automatic.status is df.Status.CONVERGED
    assert automatic.certificate.primal == pytest.approx(result.certificate.primal, abs=2e-7 * problem.at_zero)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 10.0])
@pytest.mark.parametrize("loss", [EpsilonInsensitive, SquaredEpsilonInsensitive])
def test_the_tube_on_raw_data(loss, epsilon, intercept):
    X, y = load_diabetes(return_X_y=True)
    problem = df.Problem(X * 1000.0 ** np.linspace(-1, 1, 10), y, loss(epsilon), 1e-3, None, intercept)
    assert run(problem, 1e-9).status is df.Status.CONVERGED


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "squared_hinge", "squared_epsilon_insensitive"])
def test_the_optimum_to_many_digits(loss, intercept):
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.arange(0, 569, 12)
    X, y = X[rows, :4], y[rows]
    problem = df.Problem(X, y if "hinge" in loss else X[:, 0] / 10 + y, loss, 1e-2, np.arange(rows.size) % 3, intercept)
    w = np.array([float(v) for v in Reference(problem).optimum[0]])
    for result in (run(problem, 0.0), df.solve(problem, tol=0, random_state=0)):
        np.testing.assert_allclose(result.w, w, atol=1e-9 * np.abs(w).max())


def nearly_separable(lam_n: float = 0.01, fit_intercept: bool = False) -> df.Problem:
    """Hardly more rows than columns, which have much in common: nearly all rows end on the flat part of the loss."""
    rng = np.random.default_rng(0)
    n, d = 700, 300
    X = rng.normal(size=(n, 20)) @ rng.normal(size=(20, d)) + rng.normal(size=(n, d))
    score = X @ rng.normal(size=d)
    y = score + 0.5 * score.std() * rng.normal(size=n) > 0.0
    return df.Problem(X, y, "squared_hinge", lam_n / n, fit_intercept=fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_short_newton_steps_are_given_up_for_the_path(fit_intercept, monkeypatch):
    problem = nearly_separable(fit_intercept=fit_intercept)
    found = df.solve(problem, tol=1e-7, random_state=0)
    assert found.status is df.Status.CONVERGED
    assert [entry.phase for entry in found.trace][-1] == "interior-point"
    monkeypatch.setattr(Auto, "_steps_are_short", lambda self: False)
    without = df.solve(problem, tol=1e-7, random_state=0)
    assert without.status is df.Status.CONVERGED
    assert [entry.phase for entry in without.trace][-1] == "newton"
    assert found.n_epochs < 0.5 * without.n_epochs
    assert found.certificate.primal == pytest.approx(without.certificate.primal, abs=2e-7 * problem.at_zero)


def test_a_path_that_ends_before_the_target_is_left_to_newton():
    problem = nearly_separable()
    run = Auto(problem, RandomSource(0))
    run.start(np.zeros(problem.n), 0.0)
    run._change(InteriorPointOfSquares)
    run.settled = run.may_follow_path = False
    w = run.active.w
    w[:] = 1e-3
    for _ in range(12):
        run.rows_touched += 6 * problem.n
        run.observe(1e-3, 1e-12)
    assert type(run.active) is Newton
    assert run.settled
    assert np.allclose(run.active.w / run.active.w[0], 1.0)  # on the ray through the weights of the path


def test_the_path_leads_to_all_digits():
    result = df.solve(nearly_separable(), tol=0.0, random_state=0)
    phases = [entry.phase for entry in result.trace]
    assert "interior-point" in phases
    assert result.certificate.relative_gap < 1e-12
    assert result.status is df.Status.STALLED


def test_any_weights_have_a_point_with_equal_products():
    problem = nearly_separable()
    solver = InteriorPointOfSquares(problem, np.random.default_rng(0))
    solver.given_w = np.random.default_rng(1).normal(size=problem.d)
    solver.start(np.zeros(problem.n), 0.0)
    assert np.ptp(solver.beta * solver.q) < 1e-9 * problem.at_zero
    assert min(solver.beta.min(), solver.q.min()) > 0.0
    z = problem.margins(solver.given_w)
    np.testing.assert_allclose(solver.beta[0] - solver.q[0], 1.0 - problem.y * z, rtol=1e-9, atol=1e-9)
