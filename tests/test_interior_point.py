"""The interior-point phase: losses with a corner on data that coordinate methods cannot solve."""

from __future__ import annotations

import numpy as np
import pytest
from reference import Reference
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import dualfree as df
from dualfree.losses import EpsilonInsensitive
from dualfree.solvers.driver import Run
from dualfree.solvers.interior_point import InteriorPoint


def run(problem, tol, epochs=60):
    solver = InteriorPoint(problem, np.random.default_rng(0))
    driver = Run(problem, solver, tol=tol, max_epochs=epochs, max_time=None, callback=None, evaluate_every=None)
    return driver.go(np.zeros(problem.n), 0.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_hinge_on_raw_data(load, C, intercept):
    X, y = load(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    problem = df.Problem(X, y > 0, "hinge", 1 / (C * y.size), weights, intercept)
    result = run(problem, 1e-7)
    assert result.status is df.Status.CONVERGED
    assert result.n_epochs <= 45
    automatic = df.solve(problem, tol=1e-7, random_state=0)
    assert automatic.status is df.Status.CONVERGED
    assert automatic.certificate.primal == pytest.approx(result.certificate.primal, abs=2e-7 * problem.at_zero)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 10.0])
def test_the_tube_on_raw_data(epsilon, intercept):
    X, y = load_diabetes(return_X_y=True)
    problem = df.Problem(X * 1000.0 ** np.linspace(-1, 1, 10), y, EpsilonInsensitive(epsilon), 1e-3, None, intercept)
    assert run(problem, 1e-9).status is df.Status.CONVERGED


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_the_optimum_to_many_digits(loss, intercept):
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.arange(0, 569, 12)
    X, y = X[rows, :4], y[rows]
    problem = df.Problem(X, y if loss == "hinge" else X[:, 0] / 10 + y, loss, 1e-2, np.arange(rows.size) % 3, intercept)
    w = np.array([float(v) for v in Reference(problem).optimum[0]])
    for result in (run(problem, 0.0), df.solve(problem, tol=0, random_state=0)):
        np.testing.assert_allclose(result.w, w, atol=1e-9 * np.abs(w).max())
