"""X Δ of a direction, added up from what products with the Hessian saw: it is X times that direction."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from problems import FORMS, make_problem

import dualfree as df
from dualfree.solvers import margins_on_the_way
from dualfree.solvers.hessian import hessian_product
from dualfree.solvers.linear_cg import LinearCg
from dualfree.solvers.margins_on_the_way import MarginsOnTheWay
from dualfree.solvers.newton import Newton
from dualfree.team import Team


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_they_are_x_times_the_direction(
    form: str, fit_intercept: bool, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualfree.team._LEAST_ENTRIES", 1)
    problem = make_problem("logistic", n=300, d=12, form=form, fit_intercept=fit_intercept, weights="zeros")
    rng = np.random.default_rng(0)
    curvatures = problem.sample_weight * rng.random(300)
    curvatures[::7] = 0.0  # saturated: without a part in the Hessian, but not without a margin
    width = problem.d + fit_intercept
    with Team(problem, size) as team:
        on_the_way, solution = MarginsOnTheWay(team), LinearCg(np.zeros(width), rng.normal(size=width), np.copy)
        assert not on_the_way.is_known
        for made in range(1, 10):
            solution.step(lambda vector: on_the_way.product(curvatures, vector))
            on_the_way.went(solution.length)
            assert on_the_way.is_known == (made <= margins_on_the_way._MOST and not problem.is_dense)
            if on_the_way.is_known:
                expected = problem.margins(solution.point[: problem.d])
                assert np.allclose(on_the_way.total, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("form", FORMS)
def test_a_product_is_the_same(form: str) -> None:
    problem = make_problem("logistic", n=300, d=12, form=form, fit_intercept=True)
    rng = np.random.default_rng(0)
    curvatures, vector = rng.random(300), rng.normal(size=13)
    curvatures[:40] = 0.0
    seen = np.empty(300)
    product = hessian_product(Team(problem), curvatures, vector, seen)
    assert np.allclose(product, hessian_product(Team(problem), curvatures, vector), rtol=1e-12)
    assert np.allclose(seen, problem.margins(vector[:12]), rtol=1e-12)


def test_where_it_would_not_pay_nothing_is_kept() -> None:
    """Flat parts, whose rows a product leaves out; entries that are all 1."""
    ones = (np.random.default_rng(0).random((300, 50)) < 0.2).astype(float)
    few_ones = scipy.sparse.csr_matrix(ones)
    labels = ones[:, 0] > 0
    for problem in (make_problem("squared_hinge", form="csr64"), df.Problem(few_ones, labels, "logistic", 0.1)):
        assert not problem.is_dense
        on_the_way = MarginsOnTheWay(Team(problem))
        on_the_way.product(np.ones(problem.n), np.ones(problem.d))
        on_the_way.went(1.0)
        assert not on_the_way.is_known


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_newton_keeps_the_margins_of_its_weights(fit_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step after step, some with few products and others with many."""
    monkeypatch.setattr(Newton, "direct", staticmethod(lambda problem: False))
    problem = make_problem("logistic", n=500, d=16, lam=1e-5, form="csr64", fit_intercept=fit_intercept)
    assert not problem.is_dense
    steps = Newton(problem, np.random.default_rng(0))
    steps.target = 1e-9 * problem.at_zero
    steps.start(np.zeros(500), 0.0)
    steps.begins_on_sample = False
    products = set()
    for _ in range(9):
        steps.visit(500)
        assert np.allclose(steps.margins, problem.margins(steps.w), rtol=1e-9, atol=1e-9)
        products.add(steps.on_the_way.is_known)
    assert products == {True, False}
    assert (
        df.certify(problem, steps.w, problem.best_intercept(steps.margins) if fit_intercept else 0.0).relative_gap
        < 1e-6
    )
