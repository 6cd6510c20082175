"""Least squares certified from XᵀX and Xᵀy: against 60 digits, wherever the point is and however the columns are scaled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import dense, make_problem
from reference import Reference
from test_certificate import assert_certificate_holds, cases

import dualfree as df
from dualfree import moments
from dualfree.moments import Moments, certify_from_moments, distance, sharpened
from dualfree.solvers import small_step
from dualfree.solvers.driver import Run


def moments_of(problem: df.Problem) -> Moments:
    size = problem.d + problem.fit_intercept
    of_targets, products, direction = np.empty(size), np.empty((size, size)), np.empty(size)
    rest = small_step.normal_equations(problem.rows[0], problem.y, problem.lam, of_targets, products, direction)
    return Moments(of_targets, products, *rest)


def badly_scaled(n: int = 4000, fit_intercept: bool = False, lam: float = 1e-6, form: type = np.float64) -> df.Problem:
    """Columns as raw tables have them: a million times another, far from zero, and two that nearly agree."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) * [1.0, 1e3, 1e6, 1e-3, 1.0] + [0.0, 1e4, 1e6, 0.0, 3.0]
    X[:, 4] = X[:, 0] + 1e-3 * X[:, 4]
    y = X @ [1.0, 1e-3, 1e-6, 1e3, 1.0] + rng.normal(size=n)
    return df.Problem(X.astype(form), y, loss="squared", lam=lam, fit_intercept=fit_intercept)


@settings(max_examples=200)
@given(
    problem=cases(losses=["squared"], forms=["dense64", "dense32"]),
    columns=st.lists(st.integers(-6, 6), min_size=4, max_size=4),
    nearness=st.sampled_from([0.0, 1e-15, 1e-8, 0.1, 1e3]),
    seed=st.integers(0, 99),
)
def test_the_gap_holds_wherever_the_point_is(
    problem: df.Problem, columns: list[int], nearness: float, seed: int
) -> None:
    X = problem.X * 10.0 ** np.array(columns[: problem.d])
    problem = df.Problem(X, problem.y, loss="squared", lam=problem.lam, fit_intercept=problem.fit_intercept)
    reference, rng = Reference(problem), np.random.default_rng(seed)
    w_star, b_star, _ = reference.optimum
    w = np.array([float(v) for v in w_star]) * (1 + nearness * rng.normal(size=problem.d))
    b = float(b_star) * (1 + nearness * rng.normal()) if problem.fit_intercept else 0.0
    sums, alpha = moments_of(problem), np.empty(problem.n)
    found = certify_from_moments(problem, sums, w, b, alpha, math.inf)
    if found is not None and math.isfinite(found.gap):
        assert_certificate_holds(problem, reference, w, b, found)
        assert np.allclose(alpha, problem.y - dense(problem) @ w - b, rtol=1e-12, atol=1e-12 * np.abs(problem.y).max())
    known = df.certify(problem, w, b)
    better = sharpened(problem, known, sums, w, b)
    assert better.gap <= known.gap
    assert_certificate_holds(problem, reference, w, b, better)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.float64, np.float32])
def test_sums_are_as_exact_as_they_say(fit_intercept: bool, form: type) -> None:
    problem = badly_scaled(n=3001, fit_intercept=fit_intercept, form=form)
    sums = moments_of(problem)
    rows = np.hstack([dense(problem).astype(np.float64), np.ones((problem.n, int(fit_intercept)))])
    for j, column in enumerate(rows.T):
        for k, other in enumerate(rows.T):
            terms = [float(a) * float(b) for a, b in zip(column, other, strict=True)]
            off = abs(math.fsum([*terms, -sums.products[j, k]]))
            assert off <= sums.error * math.fsum(map(abs, terms))
        terms = [float(a) * float(b) for a, b in zip(column, problem.y, strict=True)]
        assert abs(math.fsum([*terms, -sums.of_targets[j]])) <= sums.error * math.fsum(map(abs, terms))
    assert sums.squares == pytest.approx(math.fsum(problem.y**2), rel=sums.error)
    assert sums.error < 1e-12


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scales_and_the_penalty_hardly_matter(fit_intercept: bool) -> None:
    """The bound with ‖∇P‖²/(2λ) says next to nothing here; this one is at rounding level."""
    problem = badly_scaled(n=9000, fit_intercept=fit_intercept)
    result = df.solve(problem, tol=1e-6, random_state=0)
    general = df.certify(problem, result.w, result.intercept, result.alpha)
    assert result.certificate.gap <= 1e-15 * problem.at_zero
    assert result.certificate.gap <= 1e-6 * general.gap
    assert result.certificate.source == "gradient"
    if fit_intercept:
        assert result.certificate.intercept_bound < 1e-3 * general.intercept_bound
    assert result.alpha == pytest.approx(problem.y - dense(problem) @ result.w - result.intercept, abs=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_no_digits_wanted_in_vain(fit_intercept: bool) -> None:
    """A tolerance that cannot be met does not make the certificate worse."""
    problem = badly_scaled(fit_intercept=fit_intercept)
    loose, tight = (df.solve(problem, tol=tol, random_state=0).certificate for tol in (1e-3, 0.0))
    assert tight.gap <= loose.gap


def test_a_matrix_that_rounding_makes_singular_is_left_to_others() -> None:
    rng = np.random.default_rng(0)
    column = rng.normal(size=300)
    problem = df.Problem(np.stack([column, column], axis=1), rng.normal(size=300), loss="squared", lam=1e-19)
    w = np.array([0.5, 0.25])
    assert distance(problem, moments_of(problem), w, 0.0).gap == math.inf
    assert certify_from_moments(problem, moments_of(problem), w, 0.0, np.empty(300), 1.0) is None
    known = df.certify(problem, w)
    assert sharpened(problem, known, moments_of(problem), w, 0.0) is known


@pytest.mark.parametrize("apart", [1e-6, 1e-7, 3e-8, 1e-8, 1e-9])
def test_columns_that_nearly_agree(apart: float) -> None:
    rng = np.random.default_rng(0)
    column = rng.normal(size=60)
    X = np.stack([column, column + apart * rng.normal(size=60)], axis=1)
    problem = df.Problem(X, X @ [1.0, 2.0] + rng.normal(size=60), loss="squared", lam=1e-21)
    w, reference = np.array([2.0, 1.0]), Reference(problem)
    known = df.certify(problem, w)
    assert_certificate_holds(problem, reference, w, 0.0, sharpened(problem, known, moments_of(problem), w, 0.0))
    assert distance(problem, moments_of(problem), w, 0.0).gap > 0.0


def test_the_rounding_of_a_small_primal_is_bounded() -> None:
    """Margins that cancel: P is all rounding of α, and its error is said."""
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(40, 3)) * [1.0, 1e4, 1e8], np.array([1.0, 1.0, 1.0])
    problem = df.Problem(X, X @ w, loss="squared", lam=1e-30)
    found = certify_from_moments(problem, moments_of(problem), w, 0.0, np.empty(40), math.inf)
    assert found is not None
    assert_certificate_holds(problem, Reference(problem), w, 0.0, found)


def test_an_overflow_is_not_certified() -> None:
    problem = make_problem("squared", n=300, d=3)
    with np.errstate(over="ignore", invalid="ignore"):
        assert distance(problem, moments_of(problem), np.full(3, 1e200), 0.0).gap == math.inf
        assert certify_from_moments(problem, moments_of(problem), np.full(3, np.inf), 0.0, np.empty(300), 1.0) is None


def test_targets_whose_squares_underflow_are_left_to_others() -> None:
    problem = make_problem("squared", n=300, d=3, y_scale=1e-140)
    assert distance(problem, moments_of(problem), np.zeros(3), 0.0).gap == math.inf
    larger = make_problem("squared", n=300, d=3, y_scale=1e-100)
    assert 0.0 < distance(larger, moments_of(larger), np.zeros(3), 0.0).gap < math.inf


def test_when_it_is_worth_an_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = make_problem("squared", n=300, d=20), make_problem("squared", n=600, d=20)
    assert [moments.saves_time(problem) for problem in (few, many)] == [False, True]
    small = make_problem("squared", n=600, d=5, fit_intercept=True)
    monkeypatch.setattr(Run, "_certify_candidate", None)  # not a pass more than that which forms α
    assert df.solve(small, tol=1e-9, random_state=0).certificate.relative_gap <= 1e-9
