"""What a certificate needs of the rows: sums of terms, one a row, that can be added up over parts of the rows.

`certificate.bound_from_sums` asks for them through `RowSums` and does not know where the rows are: on one machine
(`LocalSums`, below) or in the partitions of a cluster (`distributed.cluster_sums`), which add up what `LocalSums`
returns for each of them. Each sum comes with a bound on what rounding may have done to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from . import rows as _rows
from ._checks import Array
from ._jit import device, kernel
from .dual_domain import Balance
from .losses.calls import loss_derivative, loss_fenchel_young, loss_slopes, loss_terms_into, residual
from .problem import Problem, slope_sum
from .team import Team, own_part, own_rows
from .vector_math import two_sum, wide_vectors

EPS = 2.0**-52
EVALUATION = 32.0 * EPS  # what evaluating a closed form may cost, relative and as a shift of z

# Rows are certified so many at a time, on vector registers; what is kept of each: six numbers and scratch for the loss.
TERMS_AT_A_TIME, TERMS = 128, 12
_SIZE_BITS = np.int64(2**63 - 1)  # all but the sign


class GapTerms(NamedTuple):
    """Σ FY_i, what rounding may hide of it, Σ s φ(z), its rounding error, and Σ |α_i| ‖x_i‖."""

    fenchel_young: float
    rounding: float
    primal: float
    primal_error: float
    alpha_size: float


class Imbalance(NamedTuple):
    """What removing the rest of Σ α costs: the `Balance`, FY at distance `reach` on the worse side, and ‖x‖ of the row."""

    excess: float
    reach: float
    farther: float
    norm: float


class Slope(NamedTuple):
    """Σ s φ'(z + b) in compensated arithmetic, Σ s φ''(z + b) and Σ |s φ'(z + b)|."""

    total: float
    curvature: float
    size: float


class SlopeDoubt(NamedTuple):
    """What rounding may hide of a slope at b: a part that is there at any b, one per distance from b; and max |z_i|."""

    fixed: float
    per_distance: float
    largest_margin: float


class ResidualTerms(NamedTuple):
    """The rounding of Σ κ_i x_i, Σ |κ_i| ‖x_i‖, and what moving b by h may change of Σ κ_i x_i."""

    error: float
    size: float
    spill: float


class RowSums(Protocol):
    """Sums over all rows at one point (w, b) with a dual-feasible α."""

    def gap_terms(self) -> tuple[GapTerms, Imbalance]:
        """Return the terms of P(w, b) − D(α)."""

    def residual_rows(self, h: float, gradient: Array) -> ResidualTerms:
        """gradient += (1/n) Σ κ_i x_i."""

    def slope_doubt(self) -> SlopeDoubt:
        """Return what rounding may hide of a slope."""

    def slopes(self, at: Sequence[float]) -> list[Slope]:
        """Return the slopes at several intercepts."""

    def shifted_slopes(self, at: Sequence[float], radius: float, fuzz: float) -> list[tuple[float, float]]:
        """Return Σ s φ'(z_i + b + (radius + fuzz) ‖x_i‖) and the size of its terms, for several b."""

    def typical_norm(self) -> float:
        """Return the root of the mean ‖x_i‖²."""


class LocalSums:
    """The sums over the rows of one problem (or of one partition of a larger one, whose n is then given)."""

    def __init__(
        self,
        problem: Problem,
        w_norm: float,
        b: float,
        alpha: Array,
        balance: Balance,
        z: Array,
        n: int,
        team: Team | None = None,
    ) -> None:
        self.team = Team(problem) if team is None else team
        self.problem, self.w_norm, self.b, self.alpha = problem, w_norm, b, alpha
        self.balance, self.z, self.n = balance, z, n
        self.unit = loss_unit(problem.loss)
        self.targets = (problem.loss.compiled, problem.y, problem.sample_weight)

    def gap_terms(self) -> tuple[GapTerms, Imbalance]:
        """Return the terms of P(w, b) − D(α)."""
        problem = self.problem
        loss, y, s = self.targets
        point = (self.w_norm, self.b, self.alpha, self.z, float(problem.loss.smoothness), float(problem.loss.lipschitz))
        found = self.team.say(_gap_terms, problem.rows, loss, y, s, problem.row_norms_squared, *point, self.unit)
        terms = GapTerms(*map(float, found[:5]))
        # adding up the threads' sums is rounded as well; the other terms have a slack of n ε in a certificate
        rounded = terms.primal_error + self.team.size * EPS * abs(terms.primal)
        return terms._replace(primal_error=rounded), self._imbalance()

    def _imbalance(self) -> Imbalance:
        excess, k, reach = self.balance
        if excess == 0.0 or not math.isfinite(excess):
            return Imbalance(excess, reach, 0.0, 0.0)
        return Imbalance(excess, reach, *self.cost_of_moving(k, reach))

    def cost_of_moving(self, k: int, reach: float) -> tuple[float, float]:
        """Return FY of row k with its α moved by `reach` to the worse side, and ‖x_k‖."""
        loss, y, s = self.targets
        farther = max(
            _weighted_fenchel_young(loss, self.z[k] + self.b, y[k], s[k], self.alpha[k] + side * reach)
            for side in (-1.0, 1.0)
        )
        return farther, math.sqrt(self.problem.row_norms_squared[k])

    def residual_rows(self, h: float, gradient: Array) -> ResidualTerms:
        """gradient += (1/n) Σ κ_i x_i."""
        problem = self.problem
        loss, y, s = self.targets
        several = self.team.size > 1
        totals = self.team.apart(problem.d) if several else gradient[None]
        point = (self.w_norm, self.b, self.alpha, self.z, float(problem.loss.smoothness))
        found = self.team.say(
            _residual_rows, problem.rows, loss, y, s, problem.row_norms_squared, *point, h, self.n, totals
        )
        if several:
            total = np.empty(problem.d)
            self.team.add_up(totals, total)
            gradient += total
        return ResidualTerms(*map(float, found[:3]))

    def slope_doubt(self) -> SlopeDoubt:
        """Return what rounding may hide of a slope."""
        problem = self.problem
        _, y, s = self.targets
        fixed, per_distance = _slope_doubt(
            self.z,
            self.b,
            y,
            s,
            problem.row_norms_squared,
            self.w_norm,
            float(problem.loss.smoothness),
            problem.nnz_per_row_max,
            self.unit,
        )
        return SlopeDoubt(fixed, per_distance, float(np.abs(self.z).max(initial=0.0)))

    def slopes(self, at: Sequence[float]) -> list[Slope]:
        """Return the slopes at several intercepts."""
        loss, y, s = self.targets
        return [Slope(*_slope(loss, self.z, b, y, s)) for b in at]

    def shifted_slopes(self, at: Sequence[float], radius: float, fuzz: float) -> list[tuple[float, float]]:
        """Return Σ s φ'(z_i + b + (radius + fuzz) ‖x_i‖) and the size of its terms, for several b."""
        loss, y, s = self.targets
        v = self.problem.row_norms_squared
        return [_shifted_slope(loss, self.z, b, y, s, v, radius, fuzz) for b in at]

    def typical_norm(self) -> float:
        """Return the root of the mean ‖x_i‖²."""
        return math.sqrt(float(self.problem.row_norms_squared.mean()))

    def residuals_into_margins(self) -> None:
        """z_i = |κ_i|."""
        self.team.run(_absolute_residuals, *self.targets, self.b, self.alpha, self.z)


def loss_unit(loss: Any) -> float:
    """Classification losses have a 1 in them (1 − yz); those of regression scale with y, and so does their rounding error."""
    return 0.0 if loss.builtin_id is not None and loss.task == "regression" else 1.0


# --- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def _weighted_fenchel_young(loss: Any, z: float, y: float, s: float, alpha: float) -> float:
    if s == 0.0:
        return 0.0
    value, error = loss_fenchel_young(loss, z, y, alpha / s)
    return s * (value + error)


@kernel
def _gap_terms(
    own: int,
    cuts: Any,
    said: Any,
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
) -> None:
    """Say the fields of `GapTerms`."""
    wide_vectors()
    mine = own_rows(own, cuts)
    rows = _rows.rows_between(rows, mine)
    y, s, v, alpha, z = y[mine], s[mine], v[mine], alpha[mine], z[mine]
    total, rounding, primal, lost, primal_error, alpha_size = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    block = np.empty((TERMS, TERMS_AT_A_TIME))
    for first in range(0, z.size, TERMS_AT_A_TIME):
        last = min(first + TERMS_AT_A_TIME, z.size)
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
        primal, error = two_sum(primal, sums[2])
        lost += error
        primal_error += sums[3]
        alpha_size += sums[4]
    said[own, 0], said[own, 1], said[own, 2] = total, rounding, primal + lost
    said[own, 3], said[own, 4] = primal_error, alpha_size


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
            reach = EPS * (stretch[k] * norm + 4.0 * abs(b))
            reach += EVALUATION * (unit + abs(z[k] + b) + abs(y[k]) + abs(a[k]))
            slope = s[k] * slopes[k]
            rounding += s[k] * errors[k] + abs(slope + alpha[k]) * reach + 2.0 * s[k] * smoothness * reach * reach
            primal_error += abs(slope) * reach + s[k] * smoothness * reach * reach
            alpha_size += abs(alpha[k]) * norm
    else:
        for k in range(z.size):
            norm = np.sqrt(v[k])
            reach = EPS * (stretch[k] * norm + 4.0 * abs(b))
            reach += EVALUATION * (unit + abs(z[k] + b) + abs(y[k]))
            rounding += s[k] * errors[k] + (s[k] * lipschitz + abs(alpha[k])) * reach
            primal_error += s[k] * lipschitz * reach
            alpha_size += abs(alpha[k]) * norm
    for k in range(z.size):
        total += s[k] * gaps[k]
        primal += s[k] * values[k]
        primal_size += s[k] * abs(values[k])
    return total, rounding, primal, primal_error + (TERMS_AT_A_TIME + 8.0) * EPS * primal_size, alpha_size


@kernel
def _residual_rows(
    own: int,
    cuts: Any,
    said: Any,
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
    totals: Any,
) -> None:
    """Add (1/n) Σ κ_i x_i over a thread's rows to its total; say the fields of `ResidualTerms`."""
    mine, total = own_rows(own, cuts), own_part(own, cuts, totals)
    rows = _rows.rows_between(rows, mine)
    y, s, v, alpha, z = y[mine], s[mine], v[mine], alpha[mine], z[mine]
    error, size, spill = 0.0, 0.0, 0.0
    for i in range(z.size):
        norm = np.sqrt(v[i])
        margin = z[i] + b
        kappa = residual(loss, margin, y[i], s[i], alpha[i])
        if kappa != 0.0:
            _rows.row_add(rows, i, kappa / n, total)
        shift = (_rows.row_length(rows, i) + 4.0) * EPS * norm * w_norm + EVALUATION * (abs(b) + abs(margin))
        error += norm * (
            s[i] * smoothness * shift + 8.0 * EPS * (abs(kappa) + 2.0 * abs(alpha[i]) + s[i] * smoothness * abs(y[i]))
        )
        size += norm * abs(kappa)
        spill += norm * s[i] * smoothness * h
    said[own, 0], said[own, 1], said[own, 2] = error, size, spill


@kernel
def _slope_doubt(
    z: Any, b: float, y: Any, s: Any, v: Any, w_norm: float, smoothness: float, length: int, unit: float
) -> tuple[float, float]:
    fixed, per_distance = 0.0, 0.0
    for i in range(z.size):
        shift = (length + 4.0) * EPS * np.sqrt(v[i]) * w_norm + EVALUATION * (unit + abs(z[i]) + abs(b) + abs(y[i]))
        fixed += s[i] * smoothness * shift
        per_distance += s[i] * smoothness * EVALUATION
    return fixed, per_distance


@kernel
def _slope(loss: Any, z: Any, b: float, y: Any, s: Any) -> tuple[float, float, float]:
    return slope_sum(loss, z, b, y, s)


@kernel
def _shifted_slope(
    loss: Any, z: Any, b: float, y: Any, s: Any, v: Any, radius: float, fuzz: float
) -> tuple[float, float]:
    """Return Σ s φ'(z_i + b + (radius + fuzz) ‖x_i‖), and the size of its terms."""
    return _sum_of_slopes(loss, z, b, y, s, v, radius + fuzz)


@device(reassociate=True)
def _sum_of_slopes(loss: Any, z: Any, b: float, y: Any, s: Any, v: Any, radius: float) -> tuple[float, float]:
    """In any order: the bound of the rounding error that goes with the size knows none."""
    total, size = 0.0, 0.0
    for i in range(z.size):
        term = s[i] * loss_derivative(loss, z[i] + b + radius * np.sqrt(v[i]), y[i])
        total += term
        size += abs(term) + s[i] * EVALUATION * (abs(y[i]) + 1.0)
    return total, size


@kernel
def _absolute_residuals(own: int, cuts: Any, loss: Any, y: Any, s: Any, b: float, alpha: Any, z: Any) -> None:
    """z_i = |κ_i|."""
    wide_vectors()
    slopes = np.empty(
        TERMS_AT_A_TIME
    )  # apart from z: a loop that writes what it reads does not run on vector registers
    mine = own_rows(own, cuts)
    y, s, alpha, z = y[mine], s[mine], alpha[mine], z[mine]
    for first in range(0, z.size, TERMS_AT_A_TIME):
        last = min(first + TERMS_AT_A_TIME, z.size)
        loss_slopes(loss, z[first:last], b, y[first:last], s[first:last], slopes[: last - first])
        for i in range(first, last):
            z[i] = abs(slopes[i - first] + alpha[i])


@kernel
def residuals_at_zero(loss: Any, b: float, y: Any, s: Any, alike: bool, step: int) -> tuple[Any, float]:
    """Return |κ_i| = s_i |φ'(b; y_i)|, the residual at w = 0 and α = 0, of every `step`-th row, and the largest of all.

    `alike` says that every weight is 1, and every target 1 or −1.
    """
    some = np.empty(-(-y.size // step))
    for k in range(some.size):
        some[k] = abs(s[k * step] * loss_derivative(loss, b, y[k * step]))
    if alike:
        return some, max(abs(loss_derivative(loss, b, 1.0)), abs(loss_derivative(loss, b, -1.0)))
    return some, _largest_at_zero(loss, b, y, s)


@device
def _largest_at_zero(loss: Any, b: float, y: Any, s: Any) -> float:
    wide_vectors()
    zeros, slopes = np.zeros(TERMS_AT_A_TIME), np.zeros(TERMS_AT_A_TIME)
    largest = np.zeros(1)
    bits, most = slopes.view(np.int64), largest.view(np.int64)
    for first in range(0, y.size, TERMS_AT_A_TIME):
        size = min(TERMS_AT_A_TIME, y.size - first)
        loss_slopes(loss, zeros[:size], b, y[first : first + size], s[first : first + size], slopes[:size])
        for k in range(TERMS_AT_A_TIME):
            # sizes of numbers are in the order of their bits, and whole numbers are compared on vector registers
            most[0] = max(most[0], bits[k] & _SIZE_BITS)
    return float(largest[0])
