"""The certificate of a multinomial fit.

G(W) = min_b P(W, b) is λ-strongly convex, so with b̂ the best intercepts of W

    P(W, b) − P* ≤ ‖∇_W P(W, b̂)‖² / (2λ) + P(W, b) − P(W, b̂).

b is known only up to rounding. How far b̂ can be away follows from the loss itself: along any direction u of scores its
third derivative is at most (max u − min u) times the second, so a curvature μ at b decays at most like e^(−√2 r) at distance
r. With γ = ‖∇_b P‖ and μ the least curvature of P(W, ·) orthogonal to 1,

    ‖b̂ − b‖ ≤ −log(1 − √2 γ/μ)/√2      where √2 γ < μ.

The same bound, with γ and μ taken at their worst within ‖W − W*‖ ≤ √(2 gap/λ), covers the optimal intercepts. A distance δ
of scores becomes one of probabilities by the largest curvature on the way, at most min(½, e^(√2 δ) Σ_k p_k (1 − p_k)). What
rounding can hide is bounded and added, as in `dualfree.certificate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._checks import Array
from ..certificate import Certificate
from .passes import Passes
from .problem import MultinomialProblem

_EPS = 2.0**-52
_ROOT2 = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class MultinomialCertificate(Certificate):
    """How far a multinomial fit is from the optimum, at most.

    The fields are those of `dualfree.Certificate`: `distance_bound` is for ‖W − W*‖ (Frobenius), `intercept_bound` for
    ‖b − b*‖, both b summing to zero.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualfree.multinomial import MultinomialProblem, solve_multinomial
    >>> X, y = load_iris(return_X_y=True)
    >>> result = solve_multinomial(MultinomialProblem(X, y, lam=0.01, fit_intercept=True), tol=1e-8)
    >>> result.certificate.relative_gap <= 1e-8
    True
    >>> bool(result.certificate.difference_bound(X).max() < 0.05)
    True
    """

    def difference_bound(self, X: Any) -> Array:
        """Bound, for each row of X, how much the difference of two classes' scores can change towards the optimum.

        Where the largest score leads by more than this, no better optimisation can change the predicted class.
        """
        # ‖(e_k − e_m)ᵀ (W − W*)‖ ≤ √2 ‖W − W*‖, and likewise for b; two scores have twice the rounding of one.
        twice_rounding = replace(self, weight_norm=_ROOT2 * self.weight_norm)
        return np.asarray(_ROOT2 * Certificate.score_bound(twice_rounding, X))


def certify_multinomial(
    problem: MultinomialProblem, W: Any, b: Any, lower_bound: float = -math.inf
) -> MultinomialCertificate:
    """Certify any point (W, b) of a multinomial problem.

    Parameters
    ----------
    problem : MultinomialProblem
        The problem that (W, b) is meant to solve.
    W : array of shape (K, d)
        A row of weights per class.
    b : array of shape (K,)
        The intercepts; zero when the problem has none.
    lower_bound : float, optional
        A lower bound on P*, such as `dual` of the certificate of another point.

    Returns
    -------
    MultinomialCertificate

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.multinomial import MultinomialProblem, certify_multinomial
    >>> problem = MultinomialProblem(np.eye(3), ["a", "b", "c"], lam=0.1)
    >>> certificate = certify_multinomial(problem, np.zeros((3, 3)), np.zeros(3))
    >>> 0 < certificate.gap < 1.2
    True
    """
    matrix, vector = problem.checked_point(W, b)
    passes = Passes(problem)
    Z = passes.scores(matrix)
    R = np.empty_like(Z)
    loss, slope = passes.residuals(Z, vector, R)
    gradient = passes.gradient(R) / problem.n + problem.lam * matrix
    return bound_gap(problem, passes, matrix, vector, Z, R, loss, slope, gradient, lower_bound, final=True)


def bound_gap(
    problem: MultinomialProblem,
    passes: Passes,
    W: Array,
    b: Array,
    Z: Array,
    R: Array,
    loss: float,
    slope: Array,
    gradient: Array,
    lower_bound: float = -math.inf,
    *,
    final: bool = False,
) -> MultinomialCertificate:
    """Bound P(W, b) − P* given Z = X Wᵀ, the residuals R, Σ s loss, Σ s R and ∇_W P.

    A `lower_bound` of P* from elsewhere is used where it is the better one. `final` bounds b* as well.
    """
    n, lam = problem.n, problem.lam
    inflate = 1 + W.size * _EPS
    w_norm = float(np.linalg.norm(W)) * inflate
    slack, sums = passes.rounding(Z, b, R, w_norm)
    sums *= 1 + 4 * n * _EPS
    row_error, slope_error, row_size, slope_size, loss_error = sums / n

    size = float(np.linalg.norm(gradient)) * inflate
    error = row_error + (n + 4) * _EPS * row_size + 4 * _EPS * lam * w_norm
    move, cost, gamma = 0.0, 0.0, 0.0
    if problem.fit_intercept:
        gamma = float(np.linalg.norm(slope)) / n + slope_error + 4 * _EPS * slope_size
        move = _intercept_move(passes, R, slack, gamma, 0.0)
        cost = gamma * move
        error += move * passes.weighted_curvatures(R, slack, move, 0.0) / n if math.isfinite(move) else math.inf
    worst = size + error
    gap, source = (worst * worst / (2 * lam) + cost) * (1 + 8 * _EPS), "gradient"
    rounding = gap - size * size / (2 * lam) if math.isfinite(gap) else math.inf

    primal = loss / n + 0.5 * lam * w_norm * w_norm
    primal_error = loss_error + 8 * _EPS * primal + W.size * _EPS * lam * w_norm * w_norm
    if primal + primal_error - lower_bound < gap:
        gap, source, rounding = max(0.0, primal + primal_error - lower_bound), "dual", primal_error
    distance = math.sqrt(2 * gap / lam) * (1 + 8 * _EPS) if math.isfinite(gap) else math.inf
    intercept_bound = 0.0
    if problem.fit_intercept:
        intercept_bound = math.inf
        if final and math.isfinite(distance):
            # Towards W* the scores of row i move by at most distance · ‖x_i‖.
            slope_there = gamma + distance * passes.weighted_curvatures(R, slack, 0.0, distance) / n
            intercept_bound = _intercept_move(passes, R, slack, slope_there, distance)
    return MultinomialCertificate(
        primal=float(primal),
        dual=float(max(lower_bound, primal - gap - primal_error)),
        gap=float(gap),
        relative_gap=float(gap / problem.at_zero),
        distance_bound=distance,
        intercept_bound=float(intercept_bound),
        source=source,
        rounding=float(rounding),
        weight_norm=w_norm,
    )


def _intercept_move(passes: Passes, R: Array, slack: Array, gamma: float, radius: float) -> float:
    """Bound the distance from b to the minimiser of Σ s loss / n, whose slope at b is at most γ."""
    problem = passes.problem
    n, K = problem.n, problem.K
    hessian = passes.intercept_hessian(R, slack, radius) / n
    trace = float(np.trace(hessian))
    # On 1 the Hessian is zero; the added multiple of 1 1ᵀ lifts that eigenvalue out of the way.
    least = float(np.linalg.eigvalsh(hessian + trace / K)[0])
    # Off from the true one by the rounding of n sums, of the probabilities and of the eigenvalues themselves
    mu = least - (n + 16.0 * K + 32.0) * _EPS * trace
    if not mu > 0.0 or not _ROOT2 * gamma < mu * (1 - 8 * _EPS):
        return math.inf
    return -math.log1p(-_ROOT2 * gamma / mu) / _ROOT2 * (1 + 16 * _EPS)
