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
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from . import rows as _rows
from ._checks import Array, finite_matrix, real_number
from ._threads import one_blas_thread
from .dual_domain import Balance, project
from .losses import Loss
from .problem import Problem
from .row_sums import EPS as _EPS
from .row_sums import EVALUATION as _EVALUATION
from .row_sums import LocalSums, RowSums, loss_unit
from .team import Team

_BRACKET_STEPS = 40


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
        Which bound is the smaller one: "dual" (P − D) or "gradient" (‖∇P‖²/(2λ); with the squared loss, few columns and no
        weights sharper, from the Hessian: ½ ∇Pᵀ H⁻¹ ∇P).
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
        lengths = _rows.stored_lengths(matrix)
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
    """What is known of w(α): Σ α_i x_i, off by at most `error` Σ |α_i| ‖x_i‖; or, without it, that ‖w − w(α)‖ ≤ `error`."""

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
    balance = project(Team(problem), dual_point, feasible).balance
    sums, scratch = np.empty(problem.d), np.empty(problem.d)
    error = problem.sum_rows_into(feasible, sums, scratch)
    # any w is allowed; what overflows is certified as infinite
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return bound_gap(problem, vector, b, feasible, balance, z, KnownWeights(sums, error), scratch, final=True)


def at_zero_weights(problem: Problem) -> Certificate:
    """Certify w = 0 and the best b with α = 0: built-in losses are not negative and have φ*(0) = 0, so the gap is P(0)."""
    primal = problem.at_zero
    rounding = (problem.n + 64.0) * _EPS * primal  # the sum of n terms, all of one sign
    gap = primal + rounding
    return Certificate(
        primal=primal,
        dual=primal - gap - rounding,  # as everywhere: P less the gap, less what rounding may have done to P
        gap=gap,
        relative_gap=gap / primal if primal > 0 else 0.0,
        distance_bound=math.sqrt(2 * gap / problem.lam) * (1 + 8 * _EPS),
        intercept_bound=math.inf if problem.fit_intercept else 0.0,
        source="dual",
        rounding=rounding,
        weight_norm=0.0,
    )


def with_intercept_bound(problem: Problem, w: Array, b: float, alpha: Array, known: Certificate) -> Certificate:
    """The certificate of a point with an intercept, and a bound on how far that is from the optimal one."""
    if not problem.loss.convex or not math.isfinite(known.distance_bound):
        return known
    rows = LocalSums(problem, norm_of(w), b, alpha, Balance(0.0, 0, 1.0), problem.margins(w), problem.n)
    bound = bound_intercept(rows, b, known.distance_bound, rows.w_norm, problem.nnz_per_row_max, problem.n)
    return replace(known, intercept_bound=float(bound))


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
    or_none: bool = False,
    final: bool = False,
    team: Team | None = None,
) -> Certificate:
    """Compute both bounds at (w, b), given feasible α, z = X w and what is known of w(α); `gradient` is scratch.

    The gradient bound costs a pass over the data. It is left out where the dual bound is at most `enough`, where w(α) was not
    summed and, with `trusts_dual`, as long as the dual bound is more than rounding errors.
    With `or_none` α = 0 serves where it is better than the α given: the gap is P at most. With `final` the intercept is
    bounded, too. On return z holds |κ_i|.
    """
    rows = LocalSums(problem, norm_of(w), b, alpha, balance, z, problem.n, team)
    certificate = bound_from_sums(
        problem, rows, w, b, known, gradient, enough=enough, trusts_dual=trusts_dual, or_none=or_none, final=final
    )
    rows.residuals_into_margins()
    return certificate


class Shape(Protocol):
    """What the bounds need to know of a problem besides the sums over its rows; a `Problem` has it all."""

    @property
    def loss(self) -> Loss:
        """φ."""

    @property
    def lam(self) -> float:
        """λ."""

    @property
    def n(self) -> int:
        """Rows."""

    @property
    def d(self) -> int:
        """Columns."""

    @property
    def fit_intercept(self) -> bool:
        """Whether b is fitted."""

    @property
    def at_zero(self) -> float:
        """P(0)."""

    @property
    def nnz_per_row_max(self) -> int:
        """Stored entries of the longest row."""


def norm_of(w: Array) -> float:
    """Return ‖w‖, rounded up."""
    return math.sqrt(float(w @ w)) * (1 + (w.size + 4.0) * _EPS)


def bound_from_sums(
    problem: Shape,
    rows: RowSums,
    w: Array,
    b: float,
    known: KnownWeights,
    gradient: Array,
    *,
    enough: float = 0.0,
    trusts_dual: bool = False,
    or_none: bool = False,
    final: bool = False,
) -> Certificate:
    """Compute both bounds from sums over the rows, wherever these are."""
    lam, n = problem.lam, problem.n
    smoothness = float(problem.loss.smoothness)
    w_norm = norm_of(w)
    terms, imbalance = rows.gap_terms()
    # ‖w − w(α)‖, the rounding of w(α) and of the difference included
    if known.sums is None:
        distance, sum_error = known.error, 0.0
    else:
        gradient[:] = w - known.sums / (lam * n)
        sum_error = (known.error + 4.0 * _EPS) * terms.alpha_size / (lam * n) + 8.0 * _EPS * w_norm
        distance = norm_of(gradient)

    primal = terms.primal / n + 0.5 * lam * w_norm * w_norm
    primal_error = terms.primal_error / n + 8.0 * _EPS * abs(primal) + problem.d * _EPS * lam * w_norm * w_norm

    gap, rounding, source = math.inf, math.inf, "dual"
    if problem.loss.convex and math.isfinite(imbalance.excess):
        away, shift = 0.0, 0.0
        if imbalance.excess > 0.0:
            away = imbalance.excess / imbalance.reach * imbalance.farther
            shift = imbalance.excess * imbalance.norm / (lam * n)
        losses = (terms.fenchel_young + terms.rounding + away) / n * (1 + _EVALUATION + n * _EPS)
        gap = (losses + 0.5 * lam * _square(distance + sum_error + shift)) * (1 + 8 * _EPS)
        rounding = gap - (terms.fenchel_young / n + 0.5 * lam * _square(distance))

    hopeful = not trusts_dual or rounding >= 0.5 * gap  # both are infinite where nothing is known of the gap yet
    if not gap <= enough and hopeful and math.isfinite(smoothness) and known.sums is not None:
        slope_error, h = 0.0, 0.0
        usable, flat = True, False
        if problem.fit_intercept:
            usable, flat, h, slope_error = _intercept_bracket(rows, b, loss_unit(problem.loss))
        if usable:
            # ∇P = λ (w − w(α)) + (1/n) Σ κ_i x_i; both parts are small near the optimum
            gradient *= lam
            residuals = rows.residual_rows(h, gradient)
            size = float(np.linalg.norm(gradient)) * (1 + (problem.d + n) * _EPS)
            error = (residuals.error + n * _EPS * residuals.size) / n + lam * sum_error
            spill, slack = residuals.spill / n, slope_error * h / n  # what not knowing b costs
            bound = (_square(size + spill + error) / (2 * lam) + slack) * (1 + 8 * _EPS)
            if not bound >= gap:
                # Where P(w, ·) is flat, b is uncertain, but not because of rounding.
                certain = _square(size + spill) / (2 * lam) + slack if flat else _square(size) / (2 * lam)
                gap, source, rounding = bound, "gradient", bound - certain
    if math.isnan(gap):
        gap, rounding = math.inf, math.inf  # the sums overflowed: nothing is known
    if problem.loss.builtin_id is not None:  # no built-in loss is negative: D(0) ≥ 0
        if primal == 0.0:
            gap, source, rounding = 0.0, "dual", 0.0
        elif or_none and primal + primal_error < gap:
            gap, source, rounding = (primal + primal_error) * (1 + 8 * _EPS), "dual", primal_error

    intercept_bound = 0.0
    distance_bound = math.sqrt(2 * gap / lam) * (1 + 8 * _EPS) if math.isfinite(gap) else math.inf
    if problem.fit_intercept:
        intercept_bound = math.inf
        if final and problem.loss.convex and math.isfinite(distance_bound):
            intercept_bound = bound_intercept(rows, b, distance_bound, w_norm, problem.nnz_per_row_max, n)
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


def _intercept_bracket(rows: RowSums, b: float, unit: float) -> tuple[bool, bool, float, float]:
    """Find h such that Σ s φ'(z + ·) changes sign within b ± h beyond doubt.

    Return whether it was found, whether it had to be sought because P(w, ·) is flat, h, and a bound of the slope's size at b.
    """
    doubt = rows.slope_doubt()
    (here,) = rows.slopes([b])
    uncertain = doubt.fixed + 8.0 * _EPS * here.size
    h = 8.0 * _EPS * (abs(b) + doubt.largest_margin + unit)
    if here.curvature > 0.0:
        h = max(h, 2.0 * (abs(here.total) + uncertain) / here.curvature)
    for tries in range(_BRACKET_STEPS):
        left, right = rows.slopes([b - h, b + h])
        in_doubt = doubt.fixed + doubt.per_distance * h
        if left.total <= -in_doubt - 8.0 * _EPS * left.size and right.total >= in_doubt + 8.0 * _EPS * right.size:
            return True, tries > 0, h, abs(here.total) + uncertain
        h *= 4.0
    return False, True, 0.0, 0.0


def bound_intercept(rows: RowSums, b: float, radius: float, w_norm: float, length: int, n: int) -> float:
    """Bound |b − b*| from ‖w − w*‖ ≤ radius.

    b* is a root of Σ s φ'(x_i·w* + ·), each x_i·w* is within radius ‖x_i‖ of z_i, and φ' does not decrease. So b* < b + t
    wherever Σ s φ'(z_i − radius ‖x_i‖ + b + t) > 0, and likewise on the other side.
    """
    fuzz = (length + 4.0) * _EPS * w_norm
    typical = rows.typical_norm()
    worst = 0.0
    for side in (-1.0, 1.0):
        t = max(radius * typical, 1e-15 * (1.0 + abs(b)))
        for _ in range(_BRACKET_STEPS):
            ((total, size),) = rows.shifted_slopes([b + side * t], -side * radius, -side * fuzz)
            if side * total > (n * _EPS + _EVALUATION) * size:
                break
            t *= 2.0
        else:
            return math.inf
        worst = max(worst, t)
    return worst * (1 + 8 * _EPS) + 4 * _EPS * abs(b)
