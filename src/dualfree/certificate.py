"""Certificates: an upper bound on P(w) − P* that holds in floating point as well as on paper.

For any w, b and any dual-feasible α (Σ α = 0 where there is an intercept),

    P(w, b) − D(α) = (1/n) Σ_i FY_i + (λ/2) ‖w − w(α)‖²,     FY_i = s_i φ(z_i) + s_i φ*(−α_i/s_i) + α_i z_i ≥ 0,

z_i = x_i·w + b. No large numbers cancel here: each loss supplies FY_i in closed form, so the sum can be trusted down to
gaps far below the rounding error of P itself. The second bound needs no conjugate:

    P(w, b) − P* ≤ ‖∇_w P(w, b)‖² / (2λ)     where b minimises P(w, ·).

What rounding can hide is bounded and *added*:

- z_i is off by at most δ_i = (nnz_i + 4) ε ‖x_i‖ ‖w‖ + 4 ε |b| plus what evaluating the loss costs, which the closed forms
  turn into a relative error of a few ε and a shift of z_i of a few ε (1 + |z_i| + |y_i| + |a_i|). A shift of δ moves FY_i
  by at most |κ_i| δ + L_i δ²/2.
- w(α) is summed in blocks, so its error is at most about (1024 + n/1024) ε (1/(λn)) Σ |α_i| ‖x_i‖.
- Σ α = 0 holds up to `Balance.excess`; its removal costs at most excess/reach times FY at distance `reach` (convexity).
- b is known up to a bracket in which the derivative of P(w, ·) changes sign beyond doubt.

Constants are rounded up generously; the tests compare with arithmetic of 60 digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import rows as _rows
from ._checks import Array, finite_matrix, real_number
from ._jit import device, kernel
from ._threads import one_blas_thread
from .dual_domain import Balance, project
from .losses.calls import loss_derivative, loss_fenchel_young, loss_slopes, loss_terms_into, residual
from .problem import Problem, slope_sum

_EPS = 2.0**-52
_EVALUATION = 32.0 * _EPS  # what evaluating a closed form may cost, relative and as a shift of z
_BRACKET_STEPS = 40
# Rows are certified so many at a time, on vector registers; what is kept of each: six numbers and scratch for the loss.
_AT_A_TIME, _TERMS = 128, 11


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far a point is from the optimum, at most.

    Attributes
    ----------
    primal : float
        P(w, b) at the returned point.
    dual : float
        A lower bound on P*, rounded down.
    gap : float
        An upper bound on P(w, b) − P*. Sharper than ``primal - dual`` in floating point.
    relative_gap : float
        gap / P(0), P(0) being the objective at w = 0 (and the best intercept): what `tol` is compared with.
    distance_bound : float
        ‖w − w*‖ ≤ √(2 gap / λ), by strong convexity.
    intercept_bound : float
        |b − b*| is at most this: 0 without an intercept, infinite where it is not known.
    source : str
        Which bound is the smaller one: "dual" (P − D) or "gradient" (‖∇P‖²/(2λ)).
    rounding : float
        The part of `gap` that stands for rounding errors.
    weight_norm : float
        ‖w‖.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> problem = df.Problem(X, X[:, 0] > 0, loss="logistic", lam=0.01)
    >>> certificate = df.solve(problem, tol=1e-6, random_state=0).certificate
    >>> certificate.gap <= 1e-6 * problem.at_zero
    True
    >>> bool(np.all(certificate.score_bound(X) < 0.05))
    True
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    distance_bound: float
    intercept_bound: float
    source: str
    rounding: float
    weight_norm: float

    def score_bound(self, X: Any) -> Array:
        """Bound |x·w + b − (x·w* + b*)| for each row of X, rounding of the score included.

        Where a score is farther from zero than its bound, no better optimisation can change the sign.
        """
        matrix = finite_matrix(X)
        rows = _rows.as_rows(matrix)
        norms = np.sqrt(_rows.squared_norms(rows))
        lengths = np.diff(matrix.indptr) if len(rows) == 3 else matrix.shape[1]
        per_unit = self.distance_bound + (lengths + 4.0) * _EPS * self.weight_norm  # the rounding of x·w included
        spread = np.zeros_like(norms)
        np.multiply(norms, per_unit, out=spread, where=norms > 0)  # an empty row has none, whatever is known of w
        return np.asarray((spread + self.intercept_bound) * (1 + 8 * _EPS))

    def __str__(self) -> str:
        return (
            f"P = {self.primal:.10g}, at most {self.gap:.2e} above the optimum "
            f"({self.relative_gap:.2e} of P(0); from the {self.source} bound)"
        )


class KnownWeights(NamedTuple):
    """What is known of w(α): Σ α_i x_i, with an error of at most `error` Σ |α_i| ‖x_i‖; or, without it, ‖w − w(α)‖ ≤ `error`."""

    sums: Array | None
    error: float


def certify(problem: Problem, w: Any, intercept: float = 0.0, alpha: Any = None) -> Certificate:
    """Certify any point: bound P(w, b) − P* from the data alone.

    Parameters
    ----------
    problem : Problem
        The problem that w is meant to solve.
    w : array of shape (d,)
        The weights.
    intercept : float, default=0.0
        b; it must be 0 when the problem has no intercept.
    alpha : array of shape (n,), optional
        A dual vector; any will do, a good one gives a tight bound. Without it α = −s φ'(Xw + b).

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> X = np.array([[1.0], [2.0]])
    >>> problem = df.Problem(X, [1.0, 2.0], loss="squared", lam=0.5)
    >>> df.certify(problem, w=[5 / 6]).gap < 1e-25
    True
    """
    vector = np.ascontiguousarray(w, dtype=np.float64)
    if vector.shape != (problem.d,):
        raise ValueError(f"w must have one entry per column of X ({problem.d}), got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        raise ValueError("w must be finite, it contains NaN or infinity.")
    b = real_number("intercept", intercept)
    if b != 0.0 and not problem.fit_intercept:
        raise ValueError(f"intercept must be 0 for a problem without one, got {intercept!r}.")
    z = problem.margins(vector)
    if alpha is None:
        dual_point = -problem.residuals(vector, np.zeros(problem.n), b)
    else:
        dual_point = problem.dual_vector(alpha)
        if not np.isfinite(dual_point).all():
            raise ValueError("alpha must be finite, it contains NaN or infinity.")
    feasible = np.empty(problem.n)
    balance = project(problem, dual_point, feasible)
    sums, scratch = np.empty(problem.d), np.empty(problem.d)
    error = problem.sum_rows_into(feasible, sums, scratch)
    # any w is allowed; what overflows is certified as infinite
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return bound_gap(problem, vector, b, feasible, balance, z, KnownWeights(sums, error), scratch, final=True)


def at_zero_weights(problem: Problem, b: float) -> Certificate:
    """Certify w = 0 with α = 0: no built-in loss is negative and each has φ*(0) = 0, so D(0) = 0 and the gap is P(0, b)."""
    primal = problem.at_zero
    rounding = (problem.n + 64.0) * _EPS * primal
    gap = primal + rounding
    return Certificate(
        primal=primal,
        dual=0.0,
        gap=gap,
        relative_gap=gap / primal if primal > 0 else 0.0,
        distance_bound=math.sqrt(2 * gap / problem.lam) * (1 + 8 * _EPS),
        intercept_bound=math.inf if problem.fit_intercept else 0.0,
        source="dual",
        rounding=rounding,
        weight_norm=0.0,
    )


def bound_gap(
    problem: Problem,
    w: Array,
    b: float,
    alpha: Array,
    balance: Balance,
    z: Array,
    known: KnownWeights,
    gradient: Array,
    *,
    enough: float = 0.0,
    trusts_dual: bool = False,
    final: bool = False,
) -> Certificate:
    """Compute both bounds at (w, b), given feasible α, z = X w and what is known of w(α); `gradient` is scratch.

    The gradient bound costs a pass over the data. It is left out where the dual bound is at most `enough`, where w(α) was not
    summed and, with `trusts_dual`, as long as the dual bound is more than rounding errors.
    With `final` the intercept is bounded, too. On return z holds |κ_i|.
    """
    loss, y, s, v = problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
    lam, n = problem.lam, problem.n
    # Classification losses have a 1 in them (1 − yz); those of regression scale with y, and so does their rounding error.
    unit = 0.0 if problem.loss.builtin_id is not None and problem.loss.task == "regression" else 1.0
    smoothness, lipschitz = float(problem.loss.smoothness), float(problem.loss.lipschitz)
    w_norm = float(np.linalg.norm(w)) * (1 + problem.d * _EPS)

    dual_sum, rounding_sum, primal_sum, primal_error, alpha_size = _gap_terms(
        problem.rows, loss, y, s, v, w_norm, b, alpha, z, smoothness, lipschitz, unit
    )
    # ‖w − w(α)‖, the rounding of w(α) and of the difference included
    if known.sums is None:
        distance, sum_error = known.error, 0.0
    else:
        gradient[:] = w - known.sums / (lam * n)
        sum_error = (known.error + 4.0 * _EPS) * alpha_size / (lam * n) + 8.0 * _EPS * w_norm
        distance = float(np.linalg.norm(gradient)) * (1 + problem.d * _EPS)

    primal = primal_sum / n + 0.5 * lam * w_norm * w_norm
    primal_error = primal_error / n + 8.0 * _EPS * abs(primal) + problem.d * _EPS * lam * w_norm * w_norm

    gap, rounding, source = math.inf, math.inf, "dual"
    if problem.loss.convex and math.isfinite(balance.excess):
        away, shift = 0.0, 0.0
        if balance.excess > 0.0:
            k = balance.row
            farther = max(
                _weighted_fenchel_young(loss, z[k] + b, y[k], s[k], alpha[k] + side * balance.reach)
                for side in (-1.0, 1.0)
            )
            away = balance.excess / balance.reach * farther
            shift = balance.excess * math.sqrt(v[k]) / (lam * n)
        losses = (dual_sum + rounding_sum + away) / n * (1 + _EVALUATION + n * _EPS)
        gap = (losses + 0.5 * lam * _square(distance + sum_error + shift)) * (1 + 8 * _EPS)
        rounding = gap - (dual_sum / n + 0.5 * lam * _square(distance))

    hopeful = not trusts_dual or rounding >= 0.5 * gap  # both are infinite where nothing is known of the gap yet
    if not gap <= enough and hopeful and math.isfinite(smoothness) and known.sums is not None:
        slope_error, h = 0.0, 0.0
        usable, flat = True, False
        if problem.fit_intercept:
            spread = 8.0 * _EPS * (abs(b) + float(np.abs(z).max(initial=0.0)) + unit)
            usable, flat, h, slope_error = _intercept_bracket(
                loss, z, b, y, s, v, w_norm, smoothness, problem.nnz_per_row_max, spread, unit
            )
        if usable:
            # ∇P = λ (w − w(α)) + (1/n) Σ κ_i x_i; both parts are small near the optimum
            gradient *= lam
            kappa_error, kappa_size, spill = _add_residual_rows(
                problem.rows, loss, y, s, v, w_norm, b, alpha, z, smoothness, h, n, gradient
            )
            size = float(np.linalg.norm(gradient)) * (1 + (problem.d + n) * _EPS)
            error = (kappa_error + n * _EPS * kappa_size) / n + lam * sum_error
            spill, slack = spill / n, slope_error * h / n  # what not knowing b costs
            bound = (_square(size + spill + error) / (2 * lam) + slack) * (1 + 8 * _EPS)
            if not bound >= gap:
                # Where P(w, ·) is flat, b is uncertain, but not because of rounding.
                certain = _square(size + spill) / (2 * lam) + slack if flat else _square(size) / (2 * lam)
                gap, source, rounding = bound, "gradient", bound - certain
    if primal == 0.0 and problem.loss.builtin_id is not None:
        gap, source, rounding = 0.0, "dual", 0.0  # no built-in loss is negative: D(0) ≥ 0
    if math.isnan(gap):
        gap, rounding = math.inf, math.inf  # the sums overflowed: nothing is known

    intercept_bound = 0.0
    distance_bound = math.sqrt(2 * gap / lam) * (1 + 8 * _EPS) if math.isfinite(gap) else math.inf
    if problem.fit_intercept:
        intercept_bound = math.inf
        if final and problem.loss.convex and math.isfinite(distance_bound):
            intercept_bound = _bound_intercept(loss, z, b, y, s, v, distance_bound, w_norm, problem.nnz_per_row_max)
    absolute_residuals(loss, z, b, y, s, alpha)
    at_zero = problem.at_zero
    return Certificate(
        primal=float(primal),
        dual=float(primal - gap - primal_error) if math.isfinite(gap) else -math.inf,
        gap=float(gap),
        relative_gap=float(gap / at_zero) if at_zero > 0 else (0.0 if gap == 0.0 else math.inf),
        distance_bound=float(distance_bound),
        intercept_bound=float(intercept_bound),
        source=source,
        rounding=float(rounding),
        weight_norm=w_norm,
    )


def _square(x: float) -> float:
    return x * x  # x**2 would raise where this is infinite


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _weighted_fenchel_young(loss: Any, z: float, y: float, s: float, alpha: float) -> float:
    if s == 0.0:
        return 0.0
    value, error = loss_fenchel_young(loss, z, y, alpha / s)
    return s * (value + error)


@kernel
def _gap_terms(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    w_norm: float,
    b: float,
    alpha: Any,
    z: Any,
    smoothness: float,
    lipschitz: float,
    unit: float,
) -> tuple[float, float, float, float, float]:
    """Return Σ FY_i, what rounding may hide of it, Σ s φ(z), its rounding error, and Σ |α_i| ‖x_i‖."""
    total, rounding, primal, lost, primal_error, alpha_size = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    block = np.empty((_TERMS, _AT_A_TIME))
    for first in range(0, z.size, _AT_A_TIME):
        last = min(first + _AT_A_TIME, z.size)
        size = last - first
        for k in range(size):
            block[0, k] = alpha[first + k] / s[first + k] if s[first + k] > 0.0 else 0.0
        for k in range(size):
            block[5, k] = (_rows.row_length(rows, first + k) + 4.0) * w_norm
        # contiguous pieces, one by one: the loops over them run on vector registers
        a, values, slopes, gaps, errors = (
            block[0][:size],
            block[1][:size],
            block[2][:size],
            block[3][:size],
            block[4][:size],
        )
        z_part, y_part, s_part = z[first:last], y[first:last], s[first:last]
        loss_terms_into(loss, z_part, b, y_part, a, values, slopes, gaps, errors, block[6:])
        sums = _add_up(
            z_part, b, y_part, s_part, v[first:last], alpha[first:last], a, values, slopes, gaps, errors, block[5][:size],
            smoothness, lipschitz, unit
        )  # fmt: skip
        total += sums[0]
        rounding += sums[1]
        new = primal + sums[2]
        back = new - primal
        lost += (primal - (new - back)) + (sums[2] - back)
        primal = new
        primal_error += sums[3]
        alpha_size += sums[4]
    return total, rounding, primal + lost, primal_error, alpha_size


@device(reassociate=True)
def _add_up(
    z: Any,
    b: float,
    y: Any,
    s: Any,
    v: Any,
    alpha: Any,
    a: Any,
    values: Any,
    slopes: Any,
    gaps: Any,
    errors: Any,
    stretch: Any,
    smoothness: float,
    lipschitz: float,
    unit: float,
) -> tuple[float, float, float, float, float]:
    """The five sums over one block of rows; with at most 128 terms each, the order of addition costs 128 ε at most."""
    total, rounding, primal, primal_error, primal_size, alpha_size = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if np.isfinite(smoothness):
        for k in range(z.size):
            norm = np.sqrt(v[k])
            reach = _EPS * (stretch[k] * norm + 4.0 * abs(b))
            reach += _EVALUATION * (unit + abs(z[k] + b) + abs(y[k]) + abs(a[k]))
            slope = s[k] * slopes[k]
            rounding += s[k] * errors[k] + abs(slope + alpha[k]) * reach + 2.0 * s[k] * smoothness * reach * reach
            primal_error += abs(slope) * reach + s[k] * smoothness * reach * reach
            alpha_size += abs(alpha[k]) * norm
    else:
        for k in range(z.size):
            norm = np.sqrt(v[k])
            reach = _EPS * (stretch[k] * norm + 4.0 * abs(b))
            reach += _EVALUATION * (unit + abs(z[k] + b) + abs(y[k]))
            rounding += s[k] * errors[k] + (s[k] * lipschitz + abs(alpha[k])) * reach
            primal_error += s[k] * lipschitz * reach
            alpha_size += abs(alpha[k]) * norm
    for k in range(z.size):
        total += s[k] * gaps[k]
        primal += s[k] * values[k]
        primal_size += s[k] * abs(values[k])
    return total, rounding, primal, primal_error + (_AT_A_TIME + 8.0) * _EPS * primal_size, alpha_size


@kernel
def _add_residual_rows(
    rows: Any,
    loss: Any,
    y: Any,
    s: Any,
    v: Any,
    w_norm: float,
    b: float,
    alpha: Any,
    z: Any,
    smoothness: float,
    h: float,
    n: int,
    gradient: Any,
) -> tuple[float, float, float]:
    """gradient += (1/n) Σ κ_i x_i; return the rounding of Σ κ_i x_i, Σ |κ_i| ‖x_i‖, and what moving b by h may change."""
    error, size, spill = 0.0, 0.0, 0.0
    for i in range(z.size):
        norm = np.sqrt(v[i])
        margin = z[i] + b
        kappa = residual(loss, margin, y[i], s[i], alpha[i])
        if kappa != 0.0:
            _rows.row_add(rows, i, kappa / n, gradient)
        shift = (_rows.row_length(rows, i) + 4.0) * _EPS * norm * w_norm + _EVALUATION * (abs(b) + abs(margin))
        error += norm * (
            s[i] * smoothness * shift + 8.0 * _EPS * (abs(kappa) + 2.0 * abs(alpha[i]) + s[i] * smoothness * abs(y[i]))
        )
        size += norm * abs(kappa)
        spill += norm * s[i] * smoothness * h
    return error, size, spill


@kernel
def _intercept_bracket(
    loss: Any,
    z: Any,
    b: float,
    y: Any,
    s: Any,
    v: Any,
    w_norm: float,
    smoothness: float,
    length: int,
    spread: float,
    unit: float,
) -> tuple[bool, bool, float, float]:
    """Find h such that Σ s φ'(z + ·) changes sign within b ± h beyond doubt.

    Return whether it was found, whether it had to be sought because P(w, ·) is flat, h, and a bound of the slope's size at b.
    """
    doubt, doubt_per_h = 0.0, 0.0
    for i in range(z.size):
        shift = (length + 4.0) * _EPS * np.sqrt(v[i]) * w_norm + _EVALUATION * (unit + abs(z[i]) + abs(b) + abs(y[i]))
        doubt += s[i] * smoothness * shift
        doubt_per_h += s[i] * smoothness * _EVALUATION
    here, curvature, size = slope_sum(loss, z, b, y, s)
    uncertain = doubt + 8.0 * _EPS * size
    h = spread
    if curvature > 0.0:
        h = max(h, 2.0 * (abs(here) + uncertain) / curvature)
    for tries in range(_BRACKET_STEPS):
        left, _, left_size = slope_sum(loss, z, b - h, y, s)
        right, _, right_size = slope_sum(loss, z, b + h, y, s)
        in_doubt = doubt + doubt_per_h * h
        if left <= -in_doubt - 8.0 * _EPS * left_size and right >= in_doubt + 8.0 * _EPS * right_size:
            return True, tries > 0, h, abs(here) + uncertain
        h *= 4.0
    return False, True, 0.0, 0.0


@kernel
def _shifted_slope(loss: Any, z: Any, b: float, y: Any, s: Any, v: Any, radius: float, fuzz: float) -> float:
    """Return Σ s φ'(z_i + b + (radius + fuzz) ‖x_i‖), moved towards zero by its own rounding error."""
    total, size = 0.0, 0.0
    for i in range(z.size):
        if s[i] > 0.0:
            margin = z[i] + b + (radius + fuzz) * np.sqrt(v[i])
            term = s[i] * loss_derivative(loss, margin, y[i])
            total += term
            size += abs(term) + s[i] * _EVALUATION * (abs(y[i]) + 1.0)
    doubt = (z.size * _EPS + _EVALUATION) * size
    return np.sign(total) * max(0.0, abs(total) - doubt)


def _bound_intercept(
    loss: Any, z: Array, b: float, y: Array, s: Array, v: Array, radius: float, w_norm: float, length: int
) -> float:
    """Bound |b − b*| from ‖w − w*‖ ≤ radius.

    b* is a root of Σ s φ'(x_i·w* + ·), each x_i·w* is within radius ‖x_i‖ of z_i, and φ' does not decrease. So b* < b + t
    wherever Σ s φ'(z_i − radius ‖x_i‖ + b + t) > 0, and likewise on the other side.
    """
    fuzz = (length + 4.0) * _EPS * w_norm
    typical = math.sqrt(float(v.mean()))
    worst = 0.0
    for side in (-1.0, 1.0):
        t = max(radius * typical, 1e-15 * (1.0 + abs(b)))
        for _ in range(_BRACKET_STEPS):
            slope = _shifted_slope(loss, z, b + side * t, y, s, v, -side * radius, -side * fuzz)
            if side * slope > 0.0:
                break
            t *= 2.0
        else:
            return math.inf
        worst = max(worst, t)
    return worst * (1 + 8 * _EPS) + 4 * _EPS * abs(b)


@kernel
def absolute_residuals(loss: Any, z: Any, b: float, y: Any, s: Any, alpha: Any) -> None:
    """z_i = |κ_i|."""
    loss_slopes(loss, z, b, y, s, z)
    for i in range(z.size):
        z[i] = abs(z[i] + alpha[i])
