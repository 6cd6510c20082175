"""The multinomial engine: its certificate against arithmetic of more digits, its three linear solvers, threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from dualfree import Status
from dualfree.multinomial import MultinomialProblem, certify_multinomial, linear_systems, solve_multinomial

mpmath = pytest.importorskip("mpmath")
mp = mpmath.MPContext()
mp.dps = 50


def small_problem(seed, intercept, n=24, d=3, K=3, lam=0.02, scale_of_x=1.0, dtype=float):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * scale_of_x).astype(dtype)
    y = np.r_[np.arange(K), rng.integers(0, K, n - K)]
    return MultinomialProblem(X, y, lam, rng.uniform(0.0, 2.0, n) + (np.arange(n) < K), intercept)


class Reference:
    """P, its gradient and its Hessian in arithmetic of 50 digits; the unknowns are (W, b) without the last b."""

    def __init__(self, problem):
        self.p = problem
        ones = np.ones((problem.n, int(problem.fit_intercept)))
        self.rows = [[mp.mpf(float(v)) for v in row] for row in np.hstack([problem.X, ones])]
        self.s = [mp.mpf(float(v)) for v in problem.sample_weight]
        self.width = len(self.rows[0])

    def terms(self, theta):
        p, lam = self.p, mp.mpf(self.p.lam)
        K, width = p.K, self.width
        value = mp.mpf(0)
        gradient = mp.zeros(K * width, 1)
        hessian = mp.zeros(K * width, K * width)
        for i, x in enumerate(self.rows):
            z = [sum(theta[k * width + j] * x[j] for j in range(width)) for k in range(K)]
            top = max(z)
            e = [mp.exp(v - top) for v in z]
            total = sum(e)
            prob = [v / total for v in e]
            own = int(p.own[i])
            weight = self.s[i] / p.n
            value += weight * (top + mp.log(total) - z[own])
            for k in range(K):
                r = prob[k] - (1 if k == own else 0)
                for j in range(width):
                    gradient[k * width + j] += weight * r * x[j]
                for m in range(K):
                    h = weight * prob[k] * ((1 if k == m else 0) - prob[m])
                    for j in range(width):
                        for g in range(width):
                            hessian[k * width + j, m * width + g] += h * x[j] * x[g]
        for k in range(K):
            for j in range(p.d):
                index = k * width + j
                value += lam / 2 * theta[index] ** 2
                gradient[index] += lam * theta[index]
                hessian[index, index] += lam
        if p.fit_intercept:
            for k in range(K):
                for m in range(K):
                    hessian[k * width + p.d, m * width + p.d] += 1  # pins down the common constant
        return value, gradient, hessian

    def point(self, W, b):
        wide = np.column_stack([W, b]) if self.p.fit_intercept else W
        return mp.matrix([mp.mpf(float(v)) for v in wide.ravel()])

    def optimum(self, W, b):
        """Newton's method from a good point."""
        theta = self.point(W, b)
        for _ in range(6):
            _, gradient, hessian = self.terms(theta)
            theta = theta - mp.lu_solve(hessian, gradient)
        return theta


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("seed", "scale_of_x", "dtype"), [(0, 1.0, float), (1, 100.0, float), (2, 1.0, np.float32)])
def test_the_certificate_holds_in_more_digits(seed, scale_of_x, dtype, intercept):
    problem = small_problem(seed, intercept, scale_of_x=scale_of_x, dtype=dtype)
    reference = Reference(problem)
    exact = solve_multinomial(problem, tol=0)
    best = reference.optimum(exact.w, exact.intercept)
    least = reference.terms(best)[0]
    best_wide = np.array([float(v) for v in best]).reshape(problem.K, -1)
    assert np.abs(best_wide[:, : problem.d] - exact.w).max() < 1e-9 * max(1, np.abs(exact.w).max())
    rng = np.random.default_rng(seed)
    for distance in (0.0, 1e-12, 1e-8, 1e-5, 1e-2, 1.0):
        W = exact.w + distance * rng.normal(size=exact.w.shape)
        b = exact.intercept + distance * rng.normal(size=problem.K) * intercept
        for lower_bound in (-np.inf, exact.certificate.dual):
            certificate = certify_multinomial(problem, W, b, lower_bound)
            true_gap = reference.terms(reference.point(W, b))[0] - least
            assert 0 <= true_gap <= certificate.gap
            assert mp.mpf(certificate.dual) <= least
            assert np.linalg.norm(W - best_wide[:, : problem.d]) <= certificate.distance_bound
            if intercept:
                off = (b - b.mean()) - (best_wide[:, -1] - best_wide[:, -1].mean())
                assert np.linalg.norm(off) <= certificate.intercept_bound
    assert exact.certificate.relative_gap < 1e-14  # and it is not a loose one
    assert exact.certificate.intercept_bound < 1e-4


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_three_linear_solvers_agree(sparse, intercept, monkeypatch):
    X, y = load_wine(return_X_y=True)
    X = scipy.sparse.csr_matrix(X) if sparse else X
    problem = MultinomialProblem(X, y, 1e-3, np.linspace(0.0, 2.0, y.size), intercept)
    results = []
    for exact, gram in ((10**6, 10**6), (0, 10**6), (0, 0)):
        monkeypatch.setattr(linear_systems, "_EXACT_SIZE", exact)
        monkeypatch.setattr(linear_systems, "_GRAM_COLUMNS", gram)
        results.append(solve_multinomial(problem, tol=1e-13))
    assert {result.status for result in results} <= {Status.CONVERGED, Status.STALLED}
    assert [result.trace[-1].phase for result in results] == ["newton", "newton-cg", "newton-cg"]
    for result in results[1:]:
        np.testing.assert_allclose(result.w, results[0].w, atol=1e-5)
        np.testing.assert_allclose(result.intercept, results[0].intercept, atol=1e-4)


def test_threads_share_the_passes_and_change_only_rounding():
    X, y = load_wine(return_X_y=True)
    problem = MultinomialProblem(scale(X), y, 1e-2, fit_intercept=True)
    one, two, again = (solve_multinomial(problem, tol=1e-10, n_threads=k) for k in (1, 2, 2))
    np.testing.assert_allclose(one.w, two.w, atol=1e-10)
    np.testing.assert_array_equal(two.w, again.w)


def test_two_classes_are_the_logistic_problem():
    from dualfree import Problem, solve

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60) > 0
    softmax = solve_multinomial(MultinomialProblem(X, y, 0.02, fit_intercept=True), tol=0)
    # w₁ − w₀ = w and ‖w₀‖² + ‖w₁‖² = ‖w‖²/2: twice the penalty of the logistic problem
    logistic = solve(Problem(X, y, lam=0.01, fit_intercept=True), tol=0, random_state=0)
    np.testing.assert_allclose(softmax.w[1] - softmax.w[0], logistic.w, atol=1e-8)
    assert softmax.certificate.primal == pytest.approx(logistic.certificate.primal, rel=1e-12)


def test_warm_starts_and_limits():
    problem = small_problem(0, True)
    result = solve_multinomial(problem, tol=1e-10)
    assert solve_multinomial(problem, tol=1e-10, warm_start=result).n_epochs == 0
    closer = problem.with_lam(0.9 * problem.lam)
    assert solve_multinomial(closer, tol=1e-10, warm_start=result).n_epochs < result.n_epochs
    from_alpha = solve_multinomial(problem, tol=1e-6, warm_start={"alpha": result.alpha})
    assert from_alpha.trace.gap[0] < 1e-3
    assert solve_multinomial(problem, max_epochs=1, tol=1e-12).status is Status.MAX_EPOCHS
    assert solve_multinomial(problem, max_time=0.0).status is Status.MAX_TIME
    stopped = solve_multinomial(problem, tol=0, callback=lambda state: state.epoch >= 2)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.n_epochs == 2


def test_what_is_refused():
    X = np.eye(4)
    with pytest.raises(ValueError, match="at least two classes"):
        MultinomialProblem(X, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="sample_weight leaves no row of class 2"):
        MultinomialProblem(X, [0, 1, 2, 2], 0.1, [1, 1, 0, 0], True)
    problem = MultinomialProblem(X, [0, 1, 2, 2], 0.1)
    with pytest.raises(ValueError, match=r"W must have shape \(3, 4\)"):
        certify_multinomial(problem, np.zeros((2, 4)), np.zeros(3))
    with pytest.raises(ValueError, match="b must be 0 for a problem without an intercept"):
        certify_multinomial(problem, np.zeros((3, 4)), np.ones(3))
    with pytest.raises(ValueError, match="warm_start must be a result, or a mapping"):
        solve_multinomial(problem, warm_start=np.zeros(3))
