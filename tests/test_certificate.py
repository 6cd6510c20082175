"""A certificate is never wrong: gap ≥ P(w) − P* at every evaluation, with P* from arithmetic of 60 digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import CORNERED, FORMS, LOSSES, SMOOTH, SOLVERS, WEIGHTS, dense, make_problem, solvers_of
from reference import Reference, mp
from sklearn.datasets import load_breast_cancer

import dualfree as df
from dualfree.dual_domain import project
from dualfree.losses import Huber, SmoothedHinge
from dualfree.team import Team


def assert_certificate_holds(
    problem: df.Problem, reference: Reference, w: Any, b: float, found: df.Certificate
) -> None:
    """Every number of a certificate against the reference."""
    w_star, b_star, best = reference.optimum
    primal = reference.primal(w, b)
    assert found.gap >= primal - best, f"gap {found.gap} < {mp.nstr(primal - best, 5)} from the {found.source} bound"
    assert found.dual <= best, f"dual {found.dual!r} > P* = {mp.nstr(best, 20)}"
    if math.isfinite(found.gap):  # P is within its own error bound, the rest of P − gap − dual
        error = mp.mpf(found.primal) - mp.mpf(found.gap) - mp.mpf(found.dual)
        assert abs(mp.mpf(found.primal) - primal) <= error + 1e-15 * (abs(primal) + found.gap)
    distance = mp.sqrt(sum((mp.mpf(float(a)) - e) ** 2 for a, e in zip(w, w_star, strict=True)))
    assert found.distance_bound + reference.distance_error >= distance
    if problem.fit_intercept and math.isfinite(found.intercept_bound):
        assert found.intercept_bound + mp.mpf(10) ** -17 * (1 + abs(b_star)) >= abs(mp.mpf(b) - b_star)


@st.composite
def cases(draw: Any, losses: list[str] = LOSSES, forms: list[str] = FORMS) -> df.Problem:
    """Problems of every kind: easy ones and such that overflow, underflow or cancel where they can."""
    lam = 10.0 ** draw(st.integers(-10, 3))
    scale = 10.0 ** draw(st.sampled_from([0, 0, 0, -8, -4, 4, 8]))
    return make_problem(
        draw(st.sampled_from(losses)),
        n=draw(st.integers(2, 14)),
        d=draw(st.integers(1, 4)),
        lam=lam * (scale**2 if draw(st.booleans()) else 1.0),
        fit_intercept=draw(st.booleans()),
        weights=draw(st.sampled_from(WEIGHTS)),
        form=draw(st.sampled_from(forms)),
        seed=draw(st.integers(0, 10_000)),
        scale=scale,
        y_scale=10.0 ** draw(st.sampled_from([0, 0, -8, 6])),
        empty_row=draw(st.booleans()),
        equal_rows=draw(st.booleans()),
        lone_positive=draw(st.booleans()),
    )


@settings(max_examples=150)
@given(problem=cases(), solver=st.integers(0, 100), epochs=st.sampled_from([1, 2, 5, 40]), seed=st.integers(0, 99))
def test_gap_holds_at_every_evaluation(problem: df.Problem, solver: int, epochs: int, seed: int) -> None:
    able = solvers_of(problem.loss.name)
    if isinstance(problem.X, np.ndarray) and problem.X.dtype == np.float64:
        able = [*able, "auto"]  # all its methods would take long to compile for each form
    reference = Reference(problem)
    evaluations = []

    def watch(state: df.State) -> None:
        if state.epoch <= 5 or state.epoch % 10 == 0:
            evaluations.append((state.w.copy(), state.intercept, state.certificate))

    result = df.solve(
        problem,
        able[solver % len(able)],
        tol=0.0,
        max_epochs=epochs,
        random_state=seed,
        callback=watch,
        evaluate_every=1,
    )
    evaluations.append((result.w, result.intercept, result.certificate))
    for w, b, certificate in evaluations:
        assert_certificate_holds(problem, reference, w, b, certificate)


@settings(max_examples=80)
@given(
    problem=cases(forms=["dense64"]), seed=st.integers(0, 99), nearness=st.sampled_from([0.0, 1e-15, 1e-8, 0.1, 1e3])
)
def test_certify_holds_anywhere(problem: df.Problem, seed: int, nearness: float) -> None:
    """At w near the optimum and far from it, with good, bad and no α."""
    reference = Reference(problem)
    rng = np.random.default_rng(seed)
    w_star, b_star, _ = reference.optimum
    w = np.array([float(v) for v in w_star]) * (1 + nearness * rng.normal(size=problem.d))
    b = float(b_star) * (1 + nearness * rng.normal()) if problem.fit_intercept else 0.0
    slopes = problem.residuals(w, np.zeros(problem.n), b)
    ends = np.where(rng.random(problem.n) < 0.5, 0.0, np.sign(slopes) * problem.sample_weight)
    for alpha in (None, -slopes, -slopes * (1 + 1e-3 * rng.normal(size=problem.n)), -ends, rng.normal(size=problem.n)):
        assert_certificate_holds(problem, reference, w, b, df.certify(problem, w, b, alpha))


# --- converged points, one by one -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_at_the_limit_of_precision(loss: str, fit_intercept: bool) -> None:
    problem = make_problem(loss, n=15, d=3, lam=1e-3, fit_intercept=fit_intercept, weights="random", seed=5)
    reference = Reference(problem)
    result = df.solve(problem, "prox-sdca", tol=0.0, max_epochs=30_000, random_state=0)
    assert result.status is df.Status.STALLED
    assert_certificate_holds(problem, reference, result.w, result.intercept, result.certificate)
    # Smooth losses: the closed forms see gaps far below the rounding error of P itself.
    assert result.certificate.relative_gap < (1e-17 if loss in SMOOTH else 1e-11)

    w_star, b_star, _ = reference.optimum
    if fit_intercept:
        assert result.certificate.intercept_bound < 1e-3
    scores = dense(problem) @ result.w + result.intercept
    best = reference.margins(w_star, b_star)
    for score, right, bound in zip(scores, best, result.certificate.score_bound(problem.X), strict=True):
        assert abs(mp.mpf(float(score)) - right) <= bound


def test_gaps_below_1e_20_are_true() -> None:
    for loss in ("squared", "logistic", "squared_hinge", "huber"):
        problem = make_problem(loss, n=12, d=3, lam=0.1, seed=2)
        result = df.solve(problem, "prox-sdca", tol=0.0, random_state=0)
        assert 0 < result.certificate.gap < 1e-20 * problem.at_zero
        assert result.certificate.gap >= Reference(problem).suboptimality(result.w)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_sums_over_many_rows(loss: str) -> None:
    """More rows than one block of the blocked sums."""
    problem = make_problem(loss, n=1500, d=2, lam=1e-3, weights="random", fit_intercept=True)
    result = df.solve(problem, "prox-sdca", tol=0.0, max_epochs=300, random_state=0)
    assert result.certificate.relative_gap < 1e-15
    assert_certificate_holds(problem, Reference(problem), result.w, result.intercept, result.certificate)


EXTREMES = [
    # loss, λ, scale of X, scale of y, weights, intercept
    ("logistic", 1e-10, 1.0, 1.0, "none", False),  # margins of a hundred
    ("logistic", 1e-10, 1.0, 1.0, "random", True),
    ("logistic", 1e3, 1e-8, 1.0, "none", True),  # w = 1e-11
    ("logistic", 1e-6, 1e4, 1.0, "wide", True),
    ("squared_hinge", 1e-9, 1e4, 1.0, "random", True),
    ("smoothed_hinge", 1e-9, 1e3, 1.0, "random", True),
    ("squared", 1e-10, 1e3, 1e6, "random", True),
    ("squared", 1e2, 1e-6, 1e-8, "random", True),
    ("squared", 1.0, 1.0, 1e-12, "none", False),
    ("huber", 1e-8, 1e2, 1e8, "wide", True),  # all rows on the linear parts
    ("huber", 1.0, 1.0, 1e-8, "random", True),
    ("squared_epsilon_insensitive", 1e-6, 1e2, 1e4, "zeros", True),
    ("hinge", 1e3, 1.0, 1.0, "random", True),  # all α at the ends of their intervals
    ("hinge", 1e-8, 1e2, 1.0, "wide", True),
    ("epsilon_insensitive", 1e-6, 1.0, 1e5, "random", True),
    ("epsilon_insensitive", 1.0, 1.0, 1e-8, "none", False),
]


@pytest.mark.parametrize(("loss", "lam", "scale", "y_scale", "weights", "fit_intercept"), EXTREMES)
def test_bounds_hold_at_extremes(
    loss: str, lam: float, scale: float, y_scale: float, weights: str, fit_intercept: bool
) -> None:
    problem = make_problem(
        loss,
        n=12,
        d=3,
        lam=lam,
        scale=scale,
        y_scale=y_scale,
        weights=weights,
        fit_intercept=fit_intercept,
        empty_row=True,
        equal_rows=True,
        seed=9,
    )
    reference = Reference(problem)
    for solver in ("prox-sdca", "auto"):
        result = df.solve(problem, solver, tol=0.0, max_epochs=3000, random_state=1)
        assert math.isfinite(result.certificate.gap)
        assert_certificate_holds(problem, reference, result.w, result.intercept, result.certificate)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_data_as_they_come(loss: str) -> None:
    """Columns from hundredths to thousands, not scaled."""
    X, y = load_breast_cancer(return_X_y=True)
    problem = df.Problem(X[:40, [0, 3, 4, 23]], y[:40], loss, 1 / 40, fit_intercept=True)
    reference = Reference(problem)
    for solver, epochs in (("auto", 1000), ("prox-sdca", 20)):
        result = df.solve(problem, solver, tol=1e-9, max_epochs=epochs, random_state=0)
        assert_certificate_holds(problem, reference, result.w, result.intercept, result.certificate)


# --- points that once were hard to certify ----------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_hinge_with_every_alpha_at_an_end(weighted: bool) -> None:
    """λ so large that all rows are on the slope: α_i = s_i y_i, and Σ α = 0 leaves no row that can move."""
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], [12, 6 if weighted else 12])
    weights = np.where(y > 0, 0.75, 1.5) if weighted else None
    X = rng.normal(size=(y.size, 3))
    problem = df.Problem(X, y, "hinge", 50.0, sample_weight=weights, fit_intercept=True)
    for solver in ("prox-sdca", "adfsdca+", "auto"):
        result = df.solve(problem, solver, tol=1e-9, random_state=0)
        assert result.status is df.Status.CONVERGED
        assert result.certificate.gap >= Reference(problem).suboptimality(result.w, result.intercept)


def test_a_flat_intercept_is_no_rounding_error() -> None:
    """P(w, ·) of Huber's loss may be flat: b is then uncertain, but the run goes on."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [-1.0, 0.0]])
    problem = df.Problem(X, [-2.6, 10.1, -8.6, -5.5], Huber(1.0), 8.0, fit_intercept=True)
    result = df.solve(problem, "prox-sdca", tol=1e-6, max_epochs=20_000, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert result.certificate.gap >= Reference(problem).suboptimality(result.w, result.intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "squared_epsilon_insensitive", "huber"])
def test_the_unit_of_y_does_not_matter(loss: str, fit_intercept: bool) -> None:
    """y in farads or in pounds: the same relative gap is reached."""
    for y_scale in (1e-12, 1e12):
        kind = {"squared": df.losses.Squared, "huber": Huber}.get(loss, df.losses.SquaredEpsilonInsensitive)
        instance = kind() if loss == "squared" else kind(0.1 * y_scale)
        problem = make_problem(instance, y_scale=y_scale, fit_intercept=fit_intercept, lam=0.1)
        assert df.solve(problem, tol=1e-12, random_state=0).status is df.Status.CONVERGED


def test_nothing_to_fit_is_converged_at_once() -> None:
    """P(0) = 0: no loss is negative, so w = 0 is the optimum, with a gap of exactly 0."""
    X = np.random.default_rng(0).normal(size=(10, 3))
    for problem in (
        df.Problem(X, np.zeros(10), "squared", 0.1),
        df.Problem(X, np.full(10, 3.0), "squared", 0.1, fit_intercept=True),
        df.Problem(X, np.full(10, 0.05), "squared_epsilon_insensitive", 0.1),
        df.Problem(X, np.full(10, 7.0), "epsilon_insensitive", 0.1, fit_intercept=True),
    ):
        result = df.solve(problem, random_state=0)
        assert (result.status, result.n_epochs, result.certificate.gap) == (df.Status.CONVERGED, 0, 0.0)


def test_certify_far_from_the_optimum_does_not_overflow() -> None:
    problem = make_problem("logistic", fit_intercept=True)
    for size in (1e3, 1e100, 1e200):
        certificate = df.certify(problem, np.full(problem.d, size), intercept=-size)
        assert certificate.gap > 0
        assert not math.isnan(certificate.dual)


@pytest.mark.parametrize("loss", [SmoothedHinge(1e-4), SmoothedHinge(1e4), Huber(1e-5)])
def test_parameters_of_extreme_size(loss: df.Loss) -> None:
    problem = make_problem(loss, n=10, d=3, lam=1e-3, weights="random", fit_intercept=True)
    result = df.solve(problem, "prox-sdca", tol=0.0, max_epochs=2000, random_state=0)
    assert_certificate_holds(problem, Reference(problem), result.w, result.intercept, result.certificate)


# --- what a certificate says ------------------------------------------------------------------------------------------


def test_certificate_of_a_result_can_be_recomputed() -> None:
    problem = make_problem("logistic", fit_intercept=True)
    result = df.solve(problem, tol=1e-8, random_state=0)
    again = df.certify(problem, result.w, result.intercept, result.alpha)
    # a solve is content with the bound that meets tol, certify takes the smaller of both
    assert again.gap <= result.certificate.gap * (1 + 1e-3) <= 1.001e-8 * problem.at_zero
    assert again.primal == pytest.approx(problem.primal(result.w, result.intercept), rel=1e-14)
    assert again.relative_gap == again.gap / problem.at_zero
    assert again.distance_bound == pytest.approx(math.sqrt(2 * again.gap / problem.lam))
    assert "above the optimum" in str(again)


def test_without_alpha_the_gradient_decides() -> None:
    """α = −s φ'(Xw): the gap is ‖∇P‖²/(2λ), as on paper."""
    problem = make_problem("logistic", weights="random")
    w = np.random.default_rng(1).normal(size=problem.d)
    bound = float(np.sum(problem.gradient(w) ** 2)) / (2 * problem.lam)
    assert df.certify(problem, w).gap == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_an_alpha_that_is_worse_than_none(loss: str, fit_intercept: bool) -> None:
    """Newton's first steps leave an α that was cut off at the ends of its domain: P* ≥ 0 says more."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(300, 6)))
    problem = df.Problem(X, np.where(rng.random(300) < 0.1, 1, -1), loss, lam=1e-9, fit_intercept=fit_intercept)
    optimum = df.solve(problem, tol=1e-10, random_state=0).certificate
    seen = []

    def look(state: df.State) -> None:
        seen.append((state.certificate, df.certify(problem, state.w, state.intercept, state.alpha)))

    df.solve(problem, tol=1e-10, random_state=0, evaluate_every=1, callback=look)
    at_primal = [(mine, again) for mine, again in seen if mine.gap >= mine.primal]
    assert len(at_primal) >= 2  # the first is w = 0
    for mine, _ in seen:
        assert mine.primal - optimum.primal <= mine.gap + 1e-15 <= mine.primal * (1 + 1e-12)
    for mine, again in at_primal:
        assert mine.gap == pytest.approx(mine.primal, rel=1e-12)
        assert again.gap <= mine.gap * (1 + 1e-12)  # α = 0 came with the point


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "huber", "epsilon_insensitive"])
def test_an_alpha_outside_the_dual_domain_is_brought_back(loss: str, fit_intercept: bool) -> None:
    """Any α will do: it is projected first, so that P − D is finite."""
    problem = make_problem(loss, weights="zeros", fit_intercept=fit_intercept)
    wild = 100.0 * np.random.default_rng(0).normal(size=problem.n)
    feasible = np.empty(problem.n)
    balance, is_finite, is_unchanged = project(Team(problem), wild, feasible)
    assert is_finite
    assert not is_unchanged
    assert math.isfinite(problem.dual(feasible))
    assert not feasible[problem.sample_weight == 0].any()
    assert balance.excess <= 1e-12
    if fit_intercept:
        assert abs(math.fsum(feasible)) <= 1e-12
    else:
        inside = np.empty(problem.n)
        assert project(Team(problem), feasible, inside).is_unchanged
        assert np.array_equal(inside, feasible)
    assert math.isfinite(df.certify(problem, np.zeros(problem.d), 0.0, wild).gap)


def test_score_bound() -> None:
    """‖x‖ · distance + what is not known of b, for each row; an empty row's score is b whatever w is."""
    problem = make_problem("logistic", fit_intercept=True)
    known = df.solve(problem, tol=1e-6, random_state=0).certificate
    rows = np.array([[3.0, 0.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    right = [5.0 * known.distance_bound + known.intercept_bound, known.intercept_bound]
    assert np.allclose(known.score_bound(rows), right, rtol=1e-9)
    unknown = df.certify(make_problem("hinge"), np.full(4, 1e200))
    assert unknown.gap == math.inf
    assert known.score_bound(rows).dtype == np.float64
    assert unknown.score_bound(rows).tolist() == [math.inf, 0.0]


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_intercept_bound_where_it_is_sharp(loss: str) -> None:
    """All rows that count are one number c: w and b make up for each other, and |b − b*| = c ‖w − w*‖, the most it can be."""
    c, away = 3.0, 1e-3
    y = np.tile([1.0, -1.0, 1.0, 1.0, -1.0, 1.0], 10)
    weights = np.repeat([1.0, 0.0], [6, 54])
    problem = df.Problem(c * weights[:, None], y, loss, 0.1, sample_weight=weights, fit_intercept=True)
    best = problem.best_intercept(np.zeros(60))  # w* = 0
    alpha = -problem.residuals(np.zeros(1), np.zeros(60), best)
    certificate = df.certify(problem, [away], best - c * away, alpha)
    assert away <= certificate.distance_bound <= away * (1 + 1e-6)
    assert c * away <= certificate.intercept_bound <= 2 * c * away


def test_sources() -> None:
    problem = make_problem("logistic")
    result = df.solve(problem, "prox-sdca", tol=1e-9, random_state=0)
    assert df.certify(problem, result.w, alpha=result.alpha).source in ("dual", "gradient")
    assert df.certify(problem, result.w, alpha=np.zeros(problem.n)).source == "gradient"
    away = df.certify(problem, result.w + 0.1, alpha=result.alpha)
    assert away.source == "dual"
    for loss in CORNERED:
        problem = make_problem(loss)
        assert df.solve(problem, tol=1e-6, random_state=0).certificate.source == "dual"


def test_converged_means_that_the_certificate_says_so() -> None:
    for solver in SOLVERS:
        for fit_intercept in (False, True):
            problem = make_problem("squared_hinge", fit_intercept=fit_intercept, weights="random")
            result = df.solve(problem, solver, tol=1e-7, max_epochs=20_000, random_state=0)
            assert result.status is df.Status.CONVERGED
            assert result.certificate.relative_gap <= 1e-7
