"""The paper's claims, checked as they are printed: the theorem, the expected step, the lemma, and what an update keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from problems import FORMS, SMOOTH, SOLVERS, dense, formed, make_problem
from reference import Reference

import dualfree as df
from dualfree.sampling import lemma_scales, optimal_probabilities, theta


class Bowl(df.Loss):
    """½ y z² + z + 1 with y of either sign: a single loss may be concave, the average over the data below is convex."""

    name, task, convex, smoothness = "bowl", "regression", False, 2.0

    @staticmethod
    def value(z: float, y: float) -> float:
        return 0.5 * y * z * z + z + 1.0

    @staticmethod
    def derivative(z: float, y: float) -> float:
        return y * z + 1.0


def bowl_problem(seed: int = 0) -> df.Problem:
    """Each row twice, once with curvature 2 and once with −1: every sum of two is convex."""
    X = np.random.default_rng(seed).normal(size=(10, 3)).repeat(2, axis=0)
    return df.Problem(X, np.tile([2.0, -1.0], 10), Bowl(), lam=0.3)


def bowl_optimum(problem: df.Problem) -> tuple[np.ndarray, np.ndarray]:
    X, n = problem.X, problem.n
    hessian = (X.T * problem.y) @ X / n + problem.lam * np.eye(problem.d)
    w = np.linalg.solve(hessian, -X.mean(axis=0))
    return w, -(problem.y * (X @ w) + 1.0)


def optimum(problem: df.Problem) -> tuple[np.ndarray, np.ndarray]:
    """(w*, α*), all digits right."""
    w = np.array([float(v) for v in Reference(problem).optimum[0]])
    return w, -problem.residuals(w, np.zeros(problem.n))


class Potential:
    """(1/n) Σ a_i (α_i − α_i*)² + g ‖w − w*‖² and its exact expectation after one step."""

    def __init__(self, problem: df.Problem, best: tuple[np.ndarray, np.ndarray], a: np.ndarray, g: float) -> None:
        self.problem, self.a, self.g = problem, a, g
        self.w_star, self.alpha_star = best
        self.X = dense(problem)

    def __call__(self, alpha: np.ndarray, w: np.ndarray) -> float:
        return float(np.mean(self.a * (alpha - self.alpha_star) ** 2) + self.g * np.sum((w - self.w_star) ** 2))

    def expected(self, alpha: np.ndarray, w: np.ndarray, kappa: np.ndarray, p: np.ndarray, step: float) -> float:
        """E over i ~ p of the value after α_i −= (θ/p_i) κ_i, w −= θ/(nλ p_i) κ_i x_i."""
        nlam = self.problem.n * self.problem.lam
        total = 0.0
        for i in np.flatnonzero(p):
            new = alpha.copy()
            new[i] -= step / p[i] * kappa[i]
            total += p[i] * self(new, w - step / (nlam * p[i]) * kappa[i] * self.X[i])
        return total


def states(problem: df.Problem, count: int = 4) -> Any:
    """Random α, w = w(α), κ, and two p that are coherent with κ: a random one and the lemma's."""
    rng = np.random.default_rng(42)
    for k in range(count):
        alpha = rng.normal(size=problem.n) * (0.1 if k % 2 else 1.0) * (problem.sample_weight > 0)
        w = problem.weights_of(alpha)
        kappa = problem.residuals(w, alpha)
        random = rng.random(problem.n) * (kappa != 0)
        for p in (random / random.sum(), optimal_probabilities(problem, kappa)):
            yield alpha, w, kappa, p


# --- the theorem ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", SMOOTH)
def test_theorem_as_printed(loss: str) -> None:
    """a = 1, γ = λ L̃, one L̃ for all rows: the inequality with its right-hand side, for every θ."""
    problem = make_problem(loss, n=12, d=3, lam=0.05)
    smoothness, n, lam = float(problem.loss.smoothness), problem.n, problem.lam
    gamma, v = lam * smoothness, problem.row_norms_squared
    potential = Potential(problem, optimum(problem), np.ones(n), gamma)
    for alpha, w, kappa, p in states(problem):
        largest = n * lam**2 * np.sum(kappa**2) / np.sum((v * gamma + n * lam**2) * kappa**2 / p)
        assert theta(problem, kappa, p) == pytest.approx(largest, rel=1e-12)
        here = potential(alpha, w)
        for step in largest * np.array([1e-3, 0.3, 1.0, 1.7]):
            there = potential.expected(alpha, w, kappa, p, step)
            right = np.sum((-step / n * (1 - step / p) + step**2 * v * gamma / (n**2 * lam**2 * p)) * kappa**2)
            assert there - (1 - step) * here <= right + 1e-12 * here
            if step <= largest:
                assert there <= (1 - step) * here * (1 + 1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_theorem_with_weights(loss: str) -> None:
    """a_i = 1/L_i and g = λ: rows with their own smoothness."""
    problem = make_problem(loss, n=12, d=3, lam=0.05, weights="zeros")
    a, _ = lemma_scales(problem)
    potential = Potential(problem, optimum(problem), a, problem.lam)
    for alpha, w, kappa, p in states(problem):
        largest = theta(problem, kappa, p)
        here = potential(alpha, w)
        for step in largest * np.array([1e-3, 0.5, 1.0]):
            assert potential.expected(alpha, w, kappa, p, step) <= (1 - step) * here * (1 + 1e-12)


def test_theorem_for_an_average_convex_loss() -> None:
    """γ = (1/n) Σ L̃² ‖x_i‖², for losses that are not convex one by one."""
    problem = bowl_problem()
    gamma = float(np.mean(4.0 * problem.row_norms_squared))
    potential = Potential(problem, bowl_optimum(problem), np.ones(problem.n), gamma)
    for alpha, w, kappa, p in states(problem):
        n, lam, v = problem.n, problem.lam, problem.row_norms_squared
        largest = n * lam**2 * np.sum(kappa**2) / np.sum((v * gamma + n * lam**2) * kappa**2 / p)
        assert theta(problem, kappa, p) == pytest.approx(largest, rel=1e-12)
        here = potential(alpha, w)
        for step in largest * np.array([1e-3, 0.5, 1.0]):
            assert potential.expected(alpha, w, kappa, p, step) <= (1 - step) * here * (1 + 1e-12)


def test_average_convex_problems_are_solved_and_certified() -> None:
    problem = bowl_problem()
    w, _ = bowl_optimum(problem)
    best = problem.primal(w)
    for solver in ("dfsdca", "importance", "adfsdca"):
        result = df.solve(problem, solver, tol=1e-9, max_epochs=20_000, random_state=0)
        assert result.status is df.Status.CONVERGED
        assert result.certificate.source == "gradient"
        assert result.certificate.gap >= problem.primal(result.w) - best - 1e-15
        assert np.linalg.norm(result.w - w) <= result.certificate.distance_bound * (1 + 1e-6)


@pytest.mark.parametrize("loss", SMOOTH)
def test_expected_step_is_a_gradient_step(loss: str) -> None:
    """E[w⁺] = w − (θ/λ) ∇P(w)."""
    problem = make_problem(loss, n=12, d=3, weights="random")
    X, nlam = dense(problem), problem.n * problem.lam
    for _, w, kappa, p in states(problem):
        step = 0.37
        expected = sum(p[i] * (w - step / (nlam * p[i]) * kappa[i] * X[i]) for i in np.flatnonzero(p))
        right = w - step / problem.lam * problem.gradient(w)
        assert np.allclose(expected, right, rtol=1e-11, atol=1e-11 * np.linalg.norm(right))


# --- the lemma --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_lemma(weights: str) -> None:
    """Θ(κ, p*) is at least Θ(κ, p) for every coherent p, and what a numerical maximiser finds."""
    problem = make_problem("logistic", n=10, d=3, weights=weights)
    rng = np.random.default_rng(0)
    for _ in range(3):
        kappa = rng.normal(size=10) * (problem.sample_weight > 0) * (rng.random(10) < 0.8)
        support = np.flatnonzero(kappa)
        best = theta(problem, kappa, optimal_probabilities(problem, kappa))
        for _ in range(200):
            p = np.zeros(10)
            p[support] = rng.dirichlet(np.full(support.size, rng.choice([0.3, 1.0, 30.0])))
            assert theta(problem, kappa, p) <= best * (1 + 1e-12)

        def minus_theta(logits: np.ndarray, kappa: np.ndarray = kappa, support: np.ndarray = support) -> float:
            p = np.zeros(10)
            p[support] = scipy.special.softmax(logits)
            return -theta(problem, kappa, p)

        found = scipy.optimize.minimize(minus_theta, np.zeros(support.size), method="BFGS", options={"gtol": 1e-12})
        assert -found.fun == pytest.approx(best, rel=1e-7)


def test_probabilities_are_coherent_with_the_residuals() -> None:
    """p_i > 0 exactly where κ_i ≠ 0, and Σ p = 1."""
    problem = make_problem("squared", n=20, weights="zeros")
    kappa = np.random.default_rng(0).normal(size=20) * (problem.sample_weight > 0)
    kappa[4:8] = 0.0
    p = optimal_probabilities(problem, kappa)
    assert np.array_equal(p > 0, kappa != 0)
    assert p.sum() == pytest.approx(1.0, rel=1e-15)
    assert not optimal_probabilities(problem, np.zeros(20)).any()
    assert theta(problem, np.zeros(20), p) == 1.0
    assert theta(problem, np.ones(20) * (problem.sample_weight > 0), p * (p > p.max() / 2)) == 0.0


# --- what an update keeps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_w_stays_the_image_of_alpha(solver: str, form: str) -> None:
    """w = (1/(λn)) Σ α_i x_i: the solver's own running w after many updates, and the result's."""
    problem = make_problem("logistic", n=40, d=5, form=form, weights="random", fit_intercept=True, lam=1e-3)
    instance = df.SOLVERS[solver](problem, np.random.default_rng(0))
    instance.start(np.zeros(problem.n), 0.0)
    for _ in range(20):
        instance.begin_epoch()
        instance.visit(problem.n)
        instance.end_epoch()
    result = df.solve(problem, solver, max_epochs=5, random_state=0)
    for alpha, w in ((instance.alpha, instance.w), (result.alpha, result.w)):
        right = dense(problem).T @ alpha / (problem.lam * problem.n)
        assert np.linalg.norm(w - right) <= 1e-10 * np.linalg.norm(right)
        assert np.linalg.norm(w) > 0


@pytest.mark.parametrize("form", ["dense64", "csr64"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_without_a_residual_stay_as_they_are(solver: str, form: str) -> None:
    """Rows with κ_i = 0 for ever: y_i = 0 on features of their own. Neither α_i nor their part of w moves, by a single bit."""
    rng = np.random.default_rng(0)
    X = np.zeros((20, 6))
    X[:10, :3], X[10:, 3:] = rng.normal(size=(10, 3)), rng.normal(size=(10, 3))
    y = np.concatenate([rng.normal(size=10), np.zeros(10)])
    problem = df.Problem(formed(X, form), y, "squared", 0.1)
    instance = df.SOLVERS[solver](problem, np.random.default_rng(1))
    instance.start(np.zeros(20), 0.0)
    for _ in range(5):
        instance.begin_epoch()
        instance.visit(20)
        if solver == "adfsdca":
            assert instance.visited.max() < 10
        instance.end_epoch()
    assert not instance.alpha[10:].any()
    assert not instance.w[3:].any()
    assert instance.alpha[:10].any()
