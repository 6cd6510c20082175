"""adfsdca keeps its margins up to date through columns, and visits what a plain O(nnz) implementation visits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from problems import dense, make_problem

import dualfree as df


def slope(problem: df.Problem, z: np.ndarray) -> np.ndarray:
    """s φ'(z), written once more."""
    y, s = problem.y, problem.sample_weight
    if problem.loss.name == "logistic":
        return -s * y / (1 + np.exp(y * z))
    if problem.loss.name == "squared_hinge":
        return -s * y * np.maximum(0.0, 1 - y * z)
    return s * (z - y)


def naive(problem: df.Problem, uniforms: np.ndarray, extra: float) -> tuple[list[int], np.ndarray]:
    """Algorithm 1 (heuristic = False) as printed: all residuals at every iteration, draws by cumulative sums."""
    s, nlam = problem.sample_weight, problem.n * problem.lam
    X = problem.X.astype(np.float64)
    used = s > 0
    smooth = np.where(used, problem.loss.smoothness * s, 1.0)
    v = (dense(problem) ** 2).sum(axis=1) + extra  # the intercept's constant column
    a, c = used / smooth, used * np.sqrt(1 / smooth + v / nlam)
    alpha, visited = np.zeros(problem.n), []
    for u in uniforms:
        w = X.T @ alpha / nlam
        kappa = slope(problem, X @ w + extra * alpha.sum() / nlam) + alpha
        weights = c * np.abs(kappa)
        i = int(np.searchsorted(np.cumsum(weights), u * weights.sum(), side="right"))
        visited.append(i)
        best = np.sum(a * kappa**2) / weights.sum() ** 2  # Θ*
        alpha[i] -= best / (weights[i] / weights.sum()) * kappa[i]
    return visited, alpha


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["dense64", "csr64", "csr32-int64"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_same_coordinates_as_the_naive_algorithm(loss: str, form: str, fit_intercept: bool) -> None:
    problem = make_problem(
        loss, n=50, d=6, form=form, weights="zeros", fit_intercept=fit_intercept, empty_row=True, lam=0.02
    )
    solver = df.SOLVERS["adfsdca"](problem, np.random.default_rng(7))
    solver.start(np.zeros(problem.n), 0.0)
    solver.begin_epoch()
    solver.visit(200)
    visited, alpha = naive(problem, np.random.default_rng(7).random(200), solver.extra)
    assert (solver.extra > 0) == fit_intercept
    assert solver.visited.tolist() == visited
    assert np.allclose(solver.alpha, alpha, rtol=1e-8, atol=1e-12)


def test_few_neighbours() -> None:
    """Many rows with hardly a common feature: single leaves of the tree are renewed instead of all."""
    rng = np.random.default_rng(3)
    n = 3000
    X = scipy.sparse.csr_matrix(
        (rng.normal(size=2 * n), (np.repeat(np.arange(n), 2), rng.integers(0, 2000, size=2 * n)))
    )
    problem = df.Problem(X, rng.normal(size=n), "squared", 1e-3)
    solver = df.SOLVERS["adfsdca"](problem, np.random.default_rng(7))
    solver.start(np.zeros(n), 0.0)
    solver.begin_epoch()
    solver.visit(300)
    visited, alpha = naive(problem, np.random.default_rng(7).random(300), 0.0)
    assert solver.visited.tolist() == visited
    assert np.allclose(solver.alpha, alpha, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("weights", ["even", "random"])
@pytest.mark.parametrize("values", ["ones", "single", "double"])
def test_many_rows(values: str, weights: str) -> None:
    """Three blocks of rows and more; columns whose values fit in single precision, and others; weights all alike, and not."""
    rng = np.random.default_rng(5)
    n, d = 9000, 30
    X = scipy.sparse.random(n, d, density=0.2, format="csr", random_state=5)
    if values != "double":
        X.data[:] = 1.0 if values == "ones" else rng.normal(size=X.nnz).astype(np.float32)
    s = rng.random(n) if weights == "random" else None
    problem = df.Problem(X, rng.random(n) > 0.4, "logistic", 1e-3, sample_weight=s)
    solver = df.SOLVERS["adfsdca"](problem, np.random.default_rng(7))
    assert solver.columns[0].dtype == (np.float64 if values == "double" else np.float32)
    solver.start(np.zeros(n), 0.0)
    solver.begin_epoch()
    solver.visit(60)
    visited, alpha = naive(problem, np.random.default_rng(7).random(60), 0.0)
    assert max(visited) > 8192
    assert solver.visited.tolist() == visited
    assert np.allclose(solver.alpha, alpha, rtol=1e-8, atol=1e-12)


def test_visits_are_counted_in_passes() -> None:
    """A dense visit touches every row: an epoch is n passes and more, and the trace says so."""
    problem = make_problem("logistic", n=30)
    trace = df.solve(problem, "adfsdca", tol=0.0, max_epochs=3, evaluate_every=1, random_state=0).trace
    assert np.diff(trace.passes).min() >= problem.n


def test_at_the_optimum_nothing_is_drawn() -> None:
    """All residuals zero: no row can be drawn, and nothing moves."""
    problem = df.Problem(np.eye(4), np.zeros(4), "squared", 1.0)
    solver = df.SOLVERS["adfsdca"](problem, np.random.default_rng(0))
    solver.start(np.zeros(4), 0.0)
    solver.begin_epoch()
    solver.visit(4)
    assert solver.visited.tolist() == [-1] * 4
    assert not solver.alpha.any()
