"""Conjugate gradients in the span of the rows: the dual point that comes with each step is what the file says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dualfree as df
from dualfree.solvers.base import RandomSource
from dualfree.solvers.conjugate_gradients import ConjugateGradients
from dualfree.solvers.row_space_cg import RowSpaceCg

D = 2100  # more columns than a Hessian may have


def wide(n: int = 60, *, form: str = "dense", weights: bool = False, lam: float = 1e-4, **options: Any) -> df.Problem:
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(n, D)) * np.exp(rng.normal(size=D))
    y = X[:, :5].sum(axis=1) + rng.normal(size=n) + 3.0
    s = None
    if weights:
        s = rng.random(n)
        s[:3] = 0.0
    if form == "sparse":
        X = scipy.sparse.csr_matrix(np.where(rng.random(X.shape) < 0.05, X, 0.0))
    return df.Problem(X.astype(np.float32) if form == "float32" else X, y, "squared", lam, sample_weight=s, **options)


def exact(problem: df.Problem) -> tuple[np.ndarray, float]:
    """The optimum, by the normal equations of the dual."""
    X = problem.X.toarray() if scipy.sparse.issparse(problem.X) else np.asarray(problem.X, float)
    n, s = problem.n, problem.sample_weight
    used = s > 0
    Z, y, scale = X[used], problem.y[used], 1.0 / (problem.lam * n)
    system = np.diag(1.0 / s[used]) + scale * Z @ Z.T
    if problem.fit_intercept:
        ones = np.ones((used.sum(), 1))
        whole = np.block([[system, ones], [ones.T, np.zeros((1, 1))]])
        *alpha, b = np.linalg.solve(whole, np.append(y, 0.0))
        return scale * Z.T @ np.array(alpha), b
    return scale * Z.T @ np.linalg.solve(system, y), 0.0


def test_more_rows_than_columns_are_for_the_other_kind() -> None:
    """There the gap at α is behind by what no weights can explain of y."""
    X = np.random.default_rng(0).normal(size=(2600, D))
    tall = df.Problem(X, X[:, 0], "squared", 1e-4)
    assert not RowSpaceCg.suits(tall)
    assert RowSpaceCg.suits(wide())
    assert not RowSpaceCg.suits(df.Problem(X[:60], X[:60, 0] > 0, "logistic", 1e-4))
    assert {entry.phase for entry in df.solve(tall, tol=1e-6).trace} == {ConjugateGradients.name}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_agrees_with_the_normal_equations(form: str, fit_intercept: bool, weights: bool, threads: int) -> None:
    problem = wide(form=form, weights=weights, fit_intercept=fit_intercept)
    w, b = exact(problem)
    result = df.solve(problem, tol=1e-11, random_state=0, n_threads=threads)
    assert result.status is df.Status.CONVERGED
    if form != "sparse":  # begins with coordinate steps
        assert {entry.phase for entry in result.trace} == {RowSpaceCg.name}
    assert np.linalg.norm(result.w - w) <= result.certificate.distance_bound
    assert abs(result.intercept - b) <= 1e-4
    assert not problem.sample_weight.any() or not result.alpha[problem.sample_weight == 0].any()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("first", [0.0, 1e-3])
@pytest.mark.parametrize(("in_one_call", "calls"), [(False, 25), (True, 6)])
def test_every_step_brings_its_dual_point(
    in_one_call: bool, calls: int, first: float, weights: bool, fit_intercept: bool
) -> None:
    problem = wide(weights=weights, fit_intercept=fit_intercept)
    solver = RowSpaceCg(problem, RandomSource(0))
    solver.start(first * problem.sample_weight, 0.0)
    solver.in_one_call = in_one_call
    for _ in range(calls):
        solver.begin_epoch()
        solver.visit(problem.n)
        alpha, w, b = solver.candidate()
        assert w is not None
        assert b is not None
        assert not solver.dual_is_behind
        np.testing.assert_allclose(problem.weights_of(alpha), w, rtol=1e-9, atol=1e-9 * np.abs(w).max())
        assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum() or not fit_intercept
        certificate = df.certify(problem, w, b, alpha)
        assert solver.gap_estimate == pytest.approx(certificate.gap, rel=1e-3, abs=1e-13 * problem.at_zero)


@pytest.mark.parametrize("lam", [1e-2, 1e-6])
def test_far_fewer_passes_than_with_the_gradient_bound(monkeypatch: pytest.MonkeyPatch, lam: float) -> None:
    problem = wide(lam=lam)
    passes = df.solve(problem, tol=1e-6, random_state=0).trace[-1].passes
    monkeypatch.setattr(RowSpaceCg, "suits", staticmethod(lambda _: False))
    before = df.solve(problem, tol=1e-6, random_state=0).trace[-1].passes
    assert passes < 0.5 * before


def test_rows_that_cannot_explain_y() -> None:
    """The same rows twice with other targets: half of y is out of reach, where α follows slowly."""
    half = wide(40)
    X = np.vstack([half.X, half.X])
    problem = df.Problem(X, np.append(half.y, -half.y), "squared", 1e-5)
    assert RowSpaceCg.suits(problem)
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert result.trace[-1].passes < 60
    # the α that w alone says, not the one that came with the steps
    assert np.linalg.norm(result.alpha - (problem.y - X @ result.w)) <= 1e-6 * np.linalg.norm(problem.y)
    assert np.linalg.norm(result.w - exact(problem)[0]) <= result.certificate.distance_bound


def test_goes_on_from_a_point() -> None:
    """From α in a few steps; from weights that are not in the span of the rows with the method that can."""
    problem = wide(fit_intercept=True)
    first = df.solve(problem, tol=1e-6, random_state=0)
    second = df.solve(problem, tol=1e-9, random_state=0, warm_start=first.alpha)
    assert second.status is df.Status.CONVERGED
    assert second.trace[-1].passes < df.solve(problem, tol=1e-9, random_state=0).trace[-1].passes
    other = wide(fit_intercept=True, lam=2e-4)
    near = df.solve(other, tol=1e-6, random_state=0, warm_start=first)  # α and w of another λ: α is stretched
    assert near.trace[0].gap < 0.1 * other.at_zero
    assert near.trace[-1].passes < df.solve(other, tol=1e-6, random_state=0).trace[-1].passes
    stretched = first.alpha.copy()
    assert RowSpaceCg.stretch(other, stretched, first.w)
    np.testing.assert_allclose(other.weights_of(stretched), first.w, atol=1e-3 * np.abs(first.w).max())
    assert not RowSpaceCg.stretch(other, first.alpha.copy(), np.ones(D))
    third = df.solve(problem, tol=1e-9, random_state=0, warm_start={"w": first.w + 1e-3})
    assert third.status is df.Status.CONVERGED
    assert np.linalg.norm(third.w - second.w) <= third.certificate.distance_bound + second.certificate.distance_bound


@pytest.mark.parametrize(
    ("offset", "scale", "lam"), [(1e6, 1.0, 1e-4), (0.0, 1e100, 1e200)], ids=["large means", "overflow"]
)
def test_steps_that_end_before_the_target_give_way(offset: float, scale: float, lam: float) -> None:
    """Where centring leaves no digits, or squares overflow, the preconditioned method with an intercept of its own goes on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, D))
    y = X[:, 0] - X[:, 1] + rng.normal(size=200)
    result = df.solve(df.Problem(scale * (X + offset), y, "squared", lam, fit_intercept=offset > 0), random_state=0)
    assert result.status is df.Status.CONVERGED
    assert result.trace[-1].passes < 100


def test_a_rate_that_is_too_slow_gives_way() -> None:
    """Columns of very different scale, not many more than rows: a preconditioner is needed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, D)) * 10.0 ** rng.uniform(-4, 4, size=D)
    problem = df.Problem(X, rng.normal(size=1500) + X[:, 0] / X[:, 0].std(), "squared", 1 / 1500)
    result = df.solve(problem, tol=1e-4, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert result.trace[-1].passes < 500
