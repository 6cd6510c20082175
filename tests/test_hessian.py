"""The Hessian and the gradient of P, formed in every way, against their definition."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from problems import FORMS, SMOOTH, WEIGHTS, dense, make_problem

import dualfree as df
from dualfree.solvers import hessian
from dualfree.solvers.blas import add_square, dsyrk_address
from dualfree.solvers.hessian import (
    curvature_sum,
    derivatives,
    derivatives_and_diagonal,
    factorised,
    hessian_product,
)
from dualfree.team import Team


def by_definition(problem: df.Problem, z: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = dense(problem).astype(float)
    if problem.fit_intercept:
        X = np.column_stack([X, np.ones(problem.n)])
    loss, y, s = problem.loss, problem.y, problem.sample_weight
    kind, points = type(loss), [(zi + b, yi, *loss.params) for zi, yi in zip(z, y, strict=True)]
    slopes = s * np.array([kind.derivative(*point) for point in points])  # type: ignore[attr-defined]
    curvatures = s * np.array([kind.curvature(*point) for point in points])  # type: ignore[misc]
    return slopes @ X, (X.T * curvatures) @ X, curvatures


@pytest.mark.parametrize("narrow", [0, 48])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("weights", WEIGHTS[:3])
def test_derivatives(
    loss: str, form: str, fit_intercept: bool, weights: str, narrow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hessian, "FEW_COLUMNS", narrow)
    monkeypatch.setattr(hessian, "_BLOCK_BYTES", 8 * 6 * 100)  # several blocks
    problem = make_problem(loss, n=900, d=6, weights=weights, form=form, fit_intercept=fit_intercept)
    z, b = np.random.default_rng(3).normal(size=problem.n), 0.3 if fit_intercept else 0.0
    gradient, total, curvatures = by_definition(problem, z, b)
    out = np.empty(problem.n)
    found, matrix = derivatives(Team(problem), z, b, out, True)
    upper = np.triu_indices(total.shape[0])
    assert np.allclose(found, gradient, rtol=1e-11, atol=1e-11 * np.abs(gradient).max())
    assert np.allclose(matrix[upper], total[upper], rtol=1e-11, atol=1e-11 * np.abs(total).max())
    assert np.allclose(out, curvatures, rtol=1e-13, atol=0)
    again = curvature_sum(Team(problem), curvatures)
    assert np.allclose(again[upper], total[upper], rtol=1e-11, atol=1e-11 * np.abs(total).max())


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_gradient_and_diagonal_in_one_pass(
    loss: str, form: str, fit_intercept: bool, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualfree.team._LEAST_ENTRIES", 1)
    problem = make_problem(loss, n=900, d=6, weights="zeros", form=form, fit_intercept=fit_intercept)
    z, b = np.random.default_rng(3).normal(size=problem.n), 0.3 if fit_intercept else 0.0
    gradient, total, curvatures = by_definition(problem, z, b)
    out = np.empty(problem.n)
    with Team(problem, size) as team:
        assert team.size == size
        found, diagonal = derivatives_and_diagonal(team, z, b, out)
    assert np.allclose(found, gradient, rtol=1e-11, atol=1e-11 * np.abs(gradient).max())
    assert np.allclose(diagonal, np.diag(total) / problem.n + problem.lam, rtol=1e-11)
    assert np.allclose(out, curvatures, rtol=1e-13, atol=0)
    assert found.flags.c_contiguous
    assert diagonal.flags.c_contiguous


def test_many_blocks_of_few_columns() -> None:
    # more rows than one block of the compiled loop, and not a multiple of it
    problem = make_problem("logistic", n=5001, d=2)
    z = np.random.default_rng(3).normal(size=problem.n)
    gradient, total, _ = by_definition(problem, z, 0.0)
    found, matrix = derivatives(Team(problem), z, 0.0, np.empty(problem.n), True)
    assert np.allclose(found, gradient, rtol=1e-11)
    assert np.allclose(np.triu(matrix), np.triu(total), rtol=1e-11)


def test_a_matrix_that_rounding_made_indefinite_is_solved_nearly() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    X = np.column_stack([X, X[:, 0]])  # singular without the penalty
    problem = df.Problem(X, X[:, 0], loss="squared", lam=1e-18)
    right = X.T @ X[:, 0] / 50
    solution = factorised(curvature_sum(Team(problem), np.ones(50)), problem).divided(right)
    assert np.allclose(X.T @ (X @ solution) / 50, right, rtol=1e-6, atol=1e-8)


@numba.njit
def _add_square(address: int, block: Any, total: Any) -> None:
    add_square(address, block, total)


def test_symmetric_products_add_to_the_upper_triangle() -> None:
    total = np.zeros((3, 3))
    _add_square(dsyrk_address(), np.array([[1.0, 2.0], [3.0, 4.0]]), total)
    assert np.array_equal(np.triu(total), [[10, 14, 0], [0, 20, 0], [0, 0, 0]])


@pytest.mark.parametrize("case", ["order", "total", "kind"])
def test_symmetric_products_check_what_they_are_given(case: str) -> None:
    block, total = np.ones((3, 2)), np.zeros((2, 2))
    if case == "order":
        block = np.asfortranarray(block)
    elif case == "total":
        total = np.zeros((1, 1))
    else:
        block = block.astype(np.float32)
    with pytest.raises(ValueError, match=r"^block and total must be in C order and hold double precision"):
        _add_square(dsyrk_address(), block, total)


def test_how_large_a_hessian_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hessian, "_HESSIAN_BYTES", 8 * 21**2)
    monkeypatch.setattr(hessian, "_DENSE_HESSIAN_BYTES", 8 * 31**2)

    def fits(n: int, d: int, form: str) -> bool:
        return hessian.fits(make_problem("logistic", n=n, d=d, form=form))

    assert fits(10, 20, "dense64")
    assert fits(100, 20, "csr64")
    assert not fits(100, 21, "csr64")
    assert fits(100, 21, "dense64")
    assert not fits(20, 21, "dense64")  # larger than the data
    assert fits(100, 30, "dense64")
    assert not fits(100, 31, "dense64")


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["dense64", "dense32", "csr64"])
@pytest.mark.parametrize("d", [7, 403])
def test_products_with_the_hessian(d: int, form: str, fit_intercept: bool) -> None:
    """By one row at a time and by four; rows without a curvature, wherever they are, have no part in it."""
    problem = make_problem("squared", n=41, d=d, form=form, fit_intercept=fit_intercept)
    rng = np.random.default_rng(4)
    curvatures = rng.uniform(size=41) * (rng.random(41) < 0.6)
    X = np.column_stack([dense(problem).astype(float), np.ones((41, int(fit_intercept)))])
    penalty = np.full(X.shape[1], problem.lam)
    penalty[d:] = 0.0
    vector = rng.normal(size=X.shape[1])
    expected = X.T @ (curvatures * (X @ vector)) / 41 + penalty * vector
    found = hessian_product(Team(problem), curvatures, vector)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["dense64", "dense32", "csr64"])
@pytest.mark.parametrize("d", [7, 403])
@pytest.mark.parametrize("n", [1, 4, 70])
def test_margins_and_sums_of_long_rows(n: int, d: int, form: str) -> None:
    problem = make_problem("squared", n=n, d=d, form=form)
    X, rng = dense(problem).astype(float), np.random.default_rng(5)
    w, factors = rng.normal(size=d), rng.normal(size=n)
    z, again, out = np.empty(n), np.empty(n), np.empty(d)
    team = Team(problem)
    team.margins_into(w, z)
    team.margins_and_sum_into(w, factors, again, out, np.empty(d))
    for found, expected in ((z, X @ w), (again, X @ w), (out, factors @ X)):
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())
