"""The squared loss, certified from XᵀX and Xᵀy: the sums that a Newton step has formed, not a pass over the rows.

Without weights P is quadratic, and with p = (w, b) and M = Σ x_i x_iᵀ + λn I (where there is an intercept, x_i has a 1 at its
end, and b has no penalty) the distance to the optimum is known exactly:

    P(p) − P* = rᵀ M⁻¹ r / (2n) ≤ ‖C⁻¹‖ ‖q‖² / (2n),     r = Σ y_i x_i − M p,   q = S⁻¹ r,   C = S⁻¹ M S⁻¹,   S² = diag M.

The same follows for p itself: S (p* − p) = C⁻¹ q. Neither depends on how columns are scaled, and λ hardly matters, which makes
this far sharper than bounds with ‖·‖²/(2λ) on data as they come.

What rounding can hide is bounded and added. Each sum of n terms is off by at most `error` times the sizes of its terms; those
are at most S_jj S_kk for entry jk of M and S_jj times |y| + Σ_k S_kk |p_k| for entry j of r. And ‖C⁻¹‖ ≤ ‖R‖ / (1 − ‖I − R C‖)
for any R, such as C's inverse as far as it was found.

α = y − X w − b is not needed for it; forming it, for those who ask, is the only pass left.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from . import rows as _rows
from ._checks import Array
from ._jit import kernel
from .certificate import Certificate, norm_of
from .problem import Problem
from .row_sums import EPS, EVALUATION
from .rows import TOGETHER
from .vector_math import dot, two_sum

_TOO_SMALL = 1e-250  # of Σ y²: the square of its rounding may underflow


class Moments(NamedTuple):
    """Sums over the rows of [X 1] (of X, where there is no intercept), without weights."""

    of_targets: Array
    """Σ y_i x_i."""
    products: Array
    """Σ x_i x_iᵀ."""
    squares: float
    """Σ y_i²."""
    error: float
    """What rounding did to each sum, at most, in the sum of its terms' sizes."""


class Distance(NamedTuple):
    """Bounds of a point: of P − P*, what rounding adds to that, of |b − b*|; and of ‖α − (y − X w − b)‖ when α is formed."""

    gap: float = math.inf
    rounding: float = math.inf
    intercept: float = math.inf
    residual_error: float = math.inf


def saves_time(problem: Problem) -> bool:
    """Whether a pass over the rows, several with an intercept, takes longer than to invert a matrix."""
    return problem.n > problem.d * problem.d


def certify_from_moments(
    problem: Problem, moments: Moments, w: Array, b: float, alpha: Array, enough: float
) -> Certificate | None:
    """Set α = y − X w − b and bound the gap of (w, b); None, and no α, where the bound is above `enough`."""
    bounds = distance(problem, moments, w, b)
    if not bounds.gap <= enough:
        return None
    n, lam, w_norm = problem.n, problem.lam, norm_of(w)
    total = _set_dual(problem.rows, problem.y, w, b, alpha)
    error = bounds.residual_error
    primal = 0.5 * (total / n + lam * w_norm * w_norm)
    primal_error = (math.sqrt(total) + error) * error / n + (TOGETHER + problem.d + 16.0) * EPS * primal
    return Certificate(
        primal=primal,
        dual=primal - bounds.gap - primal_error,
        weight_norm=w_norm,
        **_said_of(problem, bounds),
    )


def sharpened(problem: Problem, known: Certificate, moments: Moments, w: Array, b: float) -> Certificate:
    """The certificate of a point, with the bound from moments should that be the smaller one."""
    bounds = distance(problem, moments, w, b)
    if not bounds.gap < known.gap < math.inf:
        return known
    return replace(
        known,
        dual=known.dual + (known.gap - bounds.gap) - 4 * EPS * (abs(known.dual) + known.gap),
        **_said_of(problem, bounds),
    )


def _said_of(problem: Problem, bounds: Distance) -> dict[str, Any]:
    """What a certificate says of the distance to the optimum."""
    at_zero = problem.at_zero
    return {
        "gap": bounds.gap,
        "relative_gap": bounds.gap / at_zero if at_zero > 0 else (0.0 if bounds.gap == 0.0 else math.inf),
        "distance_bound": math.sqrt(2 * bounds.gap / problem.lam) * (1 + 8 * EPS),
        "intercept_bound": bounds.intercept,
        "source": "gradient",
        "rounding": bounds.rounding,
    }


def distance(problem: Problem, moments: Moments, w: Array, b: float) -> Distance:
    """Bound how far a point is from the optimum; infinite, where rounding hides it."""
    point = np.append(w, b) if problem.fit_intercept else w
    if not moments.squares > _TOO_SMALL:
        return Distance()
    try:
        return Distance(*_bounds(*moments, point, problem.n, problem.d, problem.lam))
    except np.linalg.LinAlgError:
        return Distance()


@kernel
def _bounds(
    of_targets: Any, products: Any, squares: float, sum_error: float, point: Any, n: int, d: int, lam: float
) -> tuple[float, float, float, float]:
    """`Distance`, in one call: with few columns the interpreter would take longer than the pass that is saved."""
    unknown = (np.inf, np.inf, np.inf, np.inf)
    size = point.size
    scale = np.empty(size)
    for j in range(size):
        scale[j] = np.sqrt(products[j, j] + (lam * n if j < d else 0.0))
        if not 0.0 < scale[j] < np.inf:
            return unknown

    slack = 1.0 + sum_error + (size + 8.0) * EPS  # for sums of squares that were rounded themselves
    error = sum_error + (size + 8.0) * EPS  # a product with M is rounded as well
    scaled = np.empty((size, size))
    margins, known = 0.0, 0.0
    for j in range(size):
        left_over = of_targets[j]
        for k in range(size):
            entry = products[j, k] + (lam * n if j == k and j < d else 0.0)
            left_over -= entry * point[k]
            scaled[j, k] = entry / scale[k] / scale[j]
        margins += scale[j] * abs(point[j])
        known += (left_over / scale[j]) ** 2
    margins *= slack  # at least √(Σ_i (Σ_k |x_ik p_k|)²)
    terms = np.sqrt(squares) * slack + margins
    known = np.sqrt(known) * (1.0 + (size + 4.0) * EPS)
    residual = known + error * np.sqrt(size) * slack * terms
    if not np.isfinite(scaled).all():
        return unknown

    inverse = np.linalg.inv(scaled)
    away = inverse @ scaled
    reach, left = 0.0, 0.0
    for j in range(size):
        away[j, j] -= 1.0
        for k in range(size):
            reach += inverse[j, k] * inverse[j, k]
            left += away[j, k] * away[j, k]
    reach = np.sqrt(reach) * (1.0 + (size * size + 4.0) * EPS)
    # R C was rounded, and C is not the one of exact sums
    left = np.sqrt(left) * (1.0 + (size * size + 4.0) * EPS) + reach * (error + 8.0 * EPS) * size * slack * slack
    if not left < 0.5:
        return unknown
    reach /= 1.0 - left
    return (
        reach * residual * residual / (2.0 * n) * (1 + 16 * EPS),
        reach * (residual - known) * (residual + known) / (2.0 * n),
        reach * residual / scale[-1] * slack if size > d else 0.0,
        EPS * (d + 4.0) * margins + 2.0 * EVALUATION * terms,
    )


@kernel
def _set_dual(rows: Any, y: Any, w: Any, b: float, alpha: Any) -> float:
    """α = y − X w − b; return Σ α_i²."""
    total, lost = 0.0, 0.0
    for first in range(0, y.size, TOGETHER):
        last = min(first + TOGETHER, y.size)
        for i in range(first, last):
            alpha[i] = y[i] - _rows.row_dot(rows, i, w) - b
        part = alpha[first:last]
        total, error = two_sum(total, dot(part, part, part.size))
        lost += error
    return total + lost
