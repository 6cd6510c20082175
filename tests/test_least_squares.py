"""The squared loss in one pass: α, w(α) and the certificate at w, against the general path and 60 digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import FORMS, WEIGHTS, dense, make_problem
from reference import Reference
from sklearn.linear_model import Ridge
from test_certificate import assert_certificate_holds, cases

import dualfree as df
from dualfree import least_squares, team
from dualfree.certificate import norm_of
from dualfree.dual_domain import Balance
from dualfree.least_squares import LeastSquaresSums, certify_least_squares
from dualfree.row_sums import LocalSums
from dualfree.team import Team


def certified(problem: df.Problem, w: np.ndarray, n_threads: int = 1) -> tuple[df.Certificate, np.ndarray, np.ndarray]:
    alpha, sums = np.empty(problem.n), np.empty(problem.d)
    with Team(problem, n_threads) as several:
        found = certify_least_squares(problem, w, alpha, sums, np.empty(problem.d), np.empty(problem.n), 0.0, several)
    return found, alpha, sums


@settings(max_examples=150)
@given(cases(losses=["squared"]), st.floats(-3, 3), st.integers(0, 100))
def test_the_gap_holds_wherever_w_is(problem: df.Problem, log_distance: float, seed: int) -> None:
    if problem.fit_intercept:
        assert not least_squares.suits(problem)
        problem.fit_intercept = False
    assert least_squares.suits(problem)
    reference = Reference(problem)
    best = np.array([float(value) for value in reference.optimum[0]])
    away = np.random.default_rng(seed).normal(size=problem.d) * 10.0**log_distance * (seed % 3)
    w = best * (1 + away)
    found, _, _ = certified(problem, w)
    assert_certificate_holds(problem, reference, w, 0.0, found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_as_the_general_path(form: str, weights: str) -> None:
    problem = make_problem("squared", n=300, d=5, weights=weights, form=form)
    w = np.random.default_rng(1).normal(size=5)
    X, s = dense(problem), problem.sample_weight
    found, alpha, sums = certified(problem, w)
    assert np.allclose(alpha, s * (problem.y - X @ w), rtol=1e-13, atol=1e-13 * np.abs(s).max())
    assert np.allclose(sums, alpha @ X, rtol=1e-12, atol=1e-12 * np.abs(alpha).max())
    general = df.certify(problem, w, alpha=alpha)
    assert found.primal == pytest.approx(general.primal, rel=1e-14)
    assert found.gap == pytest.approx(general.gap, rel=1e-9)
    assert found.rounding <= 1e-9 * found.gap


def test_threads_give_the_same_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "_LEAST_ENTRIES", 1)
    problem = make_problem("squared", n=501, d=5, weights="random")
    w = np.random.default_rng(1).normal(size=5)
    (one, alpha, _), (three, same, _) = certified(problem, w), certified(problem, w, 3)
    assert np.array_equal(alpha, same)
    assert three.gap == pytest.approx(one.gap, rel=1e-12)
    assert three.primal == pytest.approx(one.primal, rel=1e-14)


@pytest.mark.parametrize("d", [3, 40, 60])  # few columns, many
def test_ridge_is_one_step_and_one_pass(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem("squared", n=400, d=d, lam=1e-3)
    calls: list[Any] = []
    general = Team.margins_and_sum_into
    monkeypatch.setattr(Team, "margins_and_sum_into", lambda *given: calls.append(1) or general(*given))
    result = df.solve(problem, tol=1e-9, random_state=0)
    peer = Ridge(alpha=problem.lam * problem.n, fit_intercept=False, solver="svd").fit(dense(problem), problem.y)
    assert [entry.epoch for entry in result.trace] == [0, 1]
    assert not calls
    assert np.allclose(result.w, peer.coef_, rtol=1e-9, atol=1e-12)
    assert np.allclose(result.alpha, problem.y - dense(problem) @ result.w, rtol=1e-10, atol=1e-12)
    assert result.trace[-1].residual_quantiles == (0.0,) * 4


def test_more_steps_follow_where_more_digits_are_wanted() -> None:
    problem = make_problem("squared", n=200, d=4, lam=1e-9, scale=100.0, weights="random")
    result = df.solve(problem, tol=0.0, random_state=0)
    assert result.n_epochs > 1
    assert result.certificate.gap <= df.solve(problem, tol=1e-3, random_state=0).certificate.gap


def test_an_overflow_is_not_certified() -> None:
    problem = make_problem("squared", n=20, d=3)
    with np.errstate(over="ignore", invalid="ignore"):
        found, _, _ = certified(problem, np.full(3, 1e200))
    assert found.gap == np.inf


@pytest.mark.parametrize("form", FORMS)
def test_rounding_is_bounded_as_in_the_general_path(form: str) -> None:
    problem = make_problem("squared", n=1500, d=5, form=form)
    w = np.random.default_rng(1).normal(size=5)
    alpha, sums, z = np.empty(problem.n), np.empty(problem.d), np.empty(problem.n)
    with Team(problem) as one:
        rows = LeastSquaresSums(problem, w, alpha, sums, z, one)
    assert rows.sum_error >= problem.sum_error
    found = rows.gap_terms()[0]
    margins = problem.margins(w)
    general = LocalSums(problem, norm_of(w), 0.0, alpha, Balance(0.0, 0, 1.0), margins, problem.n).gap_terms()[0]
    assert found.fenchel_young == 0.0
    assert found.alpha_size == pytest.approx(general.alpha_size, rel=1e-12, abs=0)
    assert found.rounding == pytest.approx(general.fenchel_young + general.rounding, rel=1e-6, abs=0)
    assert found.primal_error == pytest.approx(general.primal_error, rel=0.5, abs=0)
