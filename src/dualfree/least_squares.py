"""The squared loss at the dual point that follows from w: everything that a certificate needs, from one pass over the rows.

At α = s (y − X w) each κ_i is zero, and so is each term FY_i of the gap: what is left of it is ‖w − w(α)‖ and rounding. Margins
are formed, used and forgotten while their rows are in the first-level cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import rows as _rows
from ._checks import Array
from ._jit import device, kernel
from .certificate import Certificate, KnownWeights, bound_from_sums, norm_of
from .dual_domain import Balance
from .losses import Squared
from .problem import Problem
from .row_sums import EPS, EVALUATION, GapTerms, Imbalance, LocalSums, ResidualTerms
from .rows import TOGETHER
from .team import Team, own_part, own_rows
from .vector_math import two_sum


def suits(problem: Problem) -> bool:
    """Whether the loss is the squared one and Σ α need not be zero."""
    return isinstance(problem.loss, Squared) and not problem.fit_intercept


def certify_least_squares(
    problem: Problem, w: Array, alpha: Array, sums: Array, scratch: Array, z: Array, enough: float, team: Team
) -> Certificate:
    """Set α = s (y − X w) and sums = Σ α_i x_i, and bound the gap of w and α; `scratch` and z are overwritten."""
    rows = LeastSquaresSums(problem, w, alpha, sums, z, team)
    known = KnownWeights(sums, rows.sum_error)
    return bound_from_sums(problem, rows, w, 0.0, known, scratch, enough=enough, trusts_dual=True)


class LeastSquaresSums(LocalSums):
    """The sums over the rows at w and α = s (y − X w)."""

    def __init__(self, problem: Problem, w: Array, alpha: Array, sums: Array, z: Array, team: Team) -> None:
        super().__init__(problem, norm_of(w), 0.0, alpha, Balance(0.0, 0, 1.0), z, problem.n, team)
        self.w = w

        totals, scratch = team.totals(sums, np.empty(problem.d))
        of_rows = (problem.rows, problem.y, problem.sample_weight, problem.row_norms_squared)
        found = team.say(_pass, *of_rows, w, self.w_norm, problem.sum_block, alpha, totals, scratch)
        team.add_up(totals, sums)
        rounding, primal, primal_error, alpha_size = map(float, found[:4])
        self.sum_error = team.sum_error
        primal_error += (TOGETHER + team.size + 8.0) * EPS * primal  # all terms have one sign
        self.terms = GapTerms(0.0, rounding, primal, primal_error, alpha_size)

    def gap_terms(self) -> tuple[GapTerms, Imbalance]:
        """Return the terms of P(w) − D(α)."""
        return self.terms, self._imbalance()

    def residual_rows(self, h: float, gradient: Array) -> ResidualTerms:
        """gradient += (1/n) Σ κ_i x_i, from margins that are formed for it."""
        self.team.margins_into(self.w, self.z)
        return super().residual_rows(h, gradient)


@kernel
def _pass(
    own: int,
    cuts: Any,
    said: Any,
    rows: Any,
    y: Any,
    s: Any,
    v: Any,
    w: Any,
    w_norm: float,
    block: int,
    alpha: Any,
    totals: Any,
    scratch: Any,
) -> None:
    """α = s (y − X w) and a thread's total = Σ α_i x_i, `block` rows at a time; say the last four fields of `GapTerms`."""
    mine, out, part = own_rows(own, cuts), own_part(own, cuts, totals), own_part(own, cuts, scratch)
    rows = _rows.rows_between(rows, mine)
    y, s, v, alpha = y[mine], s[mine], v[mine], alpha[mine]
    z, stretch = np.empty(TOGETHER), np.empty(TOGETHER)
    rounding, primal, lost, primal_error, alpha_size = 0.0, 0.0, 0.0, 0.0, 0.0
    out[:] = 0.0
    part[:] = 0.0
    for first in range(0, y.size, block):
        last = min(first + block, y.size)
        for begin in range(first, last, TOGETHER):
            end = min(begin + TOGETHER, last)
            size = end - begin
            for i in range(begin, end):
                z[i - begin] = _rows.row_dot(rows, i, w)
                stretch[i - begin] = (_rows.row_length(rows, i) + 4.0) * w_norm
            terms = _terms(z[:size], stretch[:size], y[begin:end], s[begin:end], v[begin:end], alpha[begin:end])
            rounding += terms[0]
            primal, error = two_sum(primal, terms[1])
            lost += error
            primal_error += terms[2]
            alpha_size += terms[3]
            _rows.rows_add(rows, alpha, begin, end, part)
        for j in range(out.size):
            out[j] += part[j]
            part[j] = 0.0
    said[own, 0], said[own, 1], said[own, 2], said[own, 3] = rounding, primal + lost, primal_error, alpha_size


@device(reassociate=True)
def _terms(z: Any, stretch: Any, y: Any, s: Any, v: Any, alpha: Any) -> tuple[float, float, float, float]:
    """Set α for a few rows; return what rounding hides of Σ FY, Σ s φ(z), its error and Σ |α_i| ‖x_i‖, as in `row_sums`."""
    rounding, primal, primal_error, alpha_size = 0.0, 0.0, 0.0, 0.0
    for k in range(z.size):
        a = y[k] - z[k]
        alpha[k] = s[k] * a
        size, norm = abs(alpha[k]), np.sqrt(v[k])
        reach = EPS * stretch[k] * norm + EVALUATION * (abs(z[k]) + abs(y[k]) + abs(a))
        square = s[k] * reach * reach
        rounding += 2.0 * square
        primal += 0.5 * alpha[k] * a
        primal_error += size * reach + square
        alpha_size += size * norm
    return rounding, primal, primal_error, alpha_size
