"""Kernels of the softmax loss over a range of rows.

R_ik = p_ik − [k = y_i] is what everything is made of: the gradient is (1/n) Σ s_i R_ik x_i + λ w_k, the Hessian of one row is
diag(p) − p pᵀ. The entry of the own class is −Σ of the other probabilities, never 1 − (something near 1).

Matrices of weights come in the layout that suits the rows: a row per class for dense X, where each product x_i·w_k runs
along contiguous memory, a row per column of X for CSR, where each stored entry meets the weights of all classes at once
(3 to 6 times faster with 20 classes; the other way round dense rows lose as much). `Passes` sees to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload

from .._jit import device, kernel
from ..rows import _FAST, _PLAIN, is_dense, row_add, row_dot, row_length
from ..vector_math import two_sum

_EPS = 2.0**-52


# --- one row against the weights of all classes -----------------------------------------------------------------------


def row_scores(rows: Any, i: int, W: Any, out: Any) -> None:
    """out_k = x_i·w_k."""
    raise NotImplementedError("compiled code only")


def row_spread(rows: Any, i: int, scale: Any, G: Any) -> None:
    """g_k += scale_k x_i."""
    raise NotImplementedError("compiled code only")


def row_spread_squares(rows: Any, i: int, scale: Any, D: Any) -> None:
    """d_kj += scale_k x_ij²."""
    raise NotImplementedError("compiled code only")


@overload(row_scores, strict=False, jit_options=_FAST)
def _row_scores(rows: Any, i: Any, W: Any, out: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, W: Any, out: Any) -> Any:
            for k in range(out.size):
                out[k] = row_dot(rows, i, W[k])

        return dense

    def sparse(rows: Any, i: Any, W: Any, out: Any) -> Any:
        data, indices, indptr = rows
        out[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            for k in range(out.size):
                out[k] += x * W[j, k]

    return sparse


@overload(row_spread, strict=False, jit_options=_FAST)
def _row_spread(rows: Any, i: Any, scale: Any, G: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, scale: Any, G: Any) -> Any:
            for k in range(scale.size):
                row_add(rows, i, scale[k], G[k])

        return dense

    def sparse(rows: Any, i: Any, scale: Any, G: Any) -> Any:
        data, indices, indptr = rows
        for p in range(indptr[i], indptr[i + 1]):
            j, x = indices[p], data[p]
            for k in range(scale.size):
                G[j, k] += scale[k] * x

    return sparse


@overload(row_spread_squares, strict=False, jit_options=_PLAIN)
def _row_spread_squares(rows: Any, i: Any, scale: Any, D: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, scale: Any, D: Any) -> Any:
            x = rows[0][i]
            for k in range(scale.size):
                for j in range(x.size):
                    D[k, j] += scale[k] * np.float64(x[j]) * np.float64(x[j])

        return dense

    def sparse(rows: Any, i: Any, scale: Any, D: Any) -> Any:
        data, indices, indptr = rows
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            x = np.float64(data[p]) * np.float64(data[p])
            for k in range(scale.size):
                D[j, k] += scale[k] * x

    return sparse


# --- all rows of a block ----------------------------------------------------------------------------------------------


@kernel
def scores_into(rows: Any, start: int, stop: int, W: Any, Z: Any) -> None:
    """Z_ik = x_i·w_k."""
    for i in range(start, stop):
        row_scores(rows, i, W, Z[i])


@device
def softmax_row(z: Any, b: Any, own: int, r: Any) -> float:
    """r_k = p_k − [k = own] for the scores z + b; return the loss −log p_own."""
    top = -np.inf
    for k in range(z.size):
        top = max(top, z[k] + b[k])
    others = 0.0
    for k in range(z.size):
        r[k] = math.exp(z[k] + b[k] - top)
        if k != own:
            others += r[k]
    total = others + r[own]
    for k in range(z.size):
        r[k] /= total
    r[own] = -others / total
    below = top - (z[own] + b[own])
    return math.log1p(others) if below == 0.0 else below + math.log(total)


@kernel
def residuals_into(start: int, stop: int, Z: Any, b: Any, own: Any, s: Any, R: Any, slope: Any) -> float:
    """Fill R and slope = Σ s_i R_i; return Σ s_i loss_i. Both sums in compensated arithmetic."""
    total, lost = 0.0, 0.0
    slope[:] = 0.0
    low = np.zeros(slope.size)
    for i in range(start, stop):
        term = s[i] * softmax_row(Z[i], b, own[i], R[i])
        total, error = two_sum(total, term)
        lost += error
        for k in range(slope.size):
            slope[k], error = two_sum(slope[k], s[i] * R[i, k])
            low[k] += error
    slope += low
    return total + lost


@kernel
def gradient_into(rows: Any, start: int, stop: int, R: Any, s: Any, G: Any) -> None:
    """g_k = Σ s_i R_ik x_i."""
    G[:] = 0.0
    u = np.empty(R.shape[1])
    for i in range(start, stop):
        for k in range(u.size):
            u[k] = s[i] * R[i, k]
        row_spread(rows, i, u, G)


@kernel
def hessian_times_into(
    rows: Any, start: int, stop: int, R: Any, own: Any, s: Any, V: Any, c: Any, HV: Any, Hc: Any
) -> None:
    """(HV, Hc) = Σ_i of the loss's Hessian, s (diag(p) − p pᵀ) ⊗ x xᵀ, times (V, c); one pass over the rows."""
    HV[:] = 0.0
    Hc[:] = 0.0
    u = np.empty(c.size)
    for i in range(start, stop):
        if s[i] == 0.0:
            continue
        row_scores(rows, i, V, u)
        mean = u[own[i]] + c[own[i]]
        for k in range(u.size):
            u[k] += c[k]
            mean += R[i, k] * u[k]  # p = R_i + e_own
        for k in range(u.size):
            p = R[i, k] + 1.0 if k == own[i] else R[i, k]
            u[k] = s[i] * p * (u[k] - mean)
            Hc[k] += u[k]
        row_spread(rows, i, u, HV)


@kernel
def hessian_diagonal_into(rows: Any, start: int, stop: int, R: Any, own: Any, s: Any, D: Any, Dc: Any) -> None:
    """The diagonal of the loss's Hessian: d_kj = Σ s_i p_ik (1 − p_ik) x_ij², and the same for a constant column."""
    D[:] = 0.0
    Dc[:] = 0.0
    u = np.empty(Dc.size)
    for i in range(start, stop):
        for k in range(u.size):
            r = R[i, k]
            u[k] = s[i] * (-r * (1.0 + r) if k == own[i] else r * (1.0 - r))
            Dc[k] += u[k]
        row_spread_squares(rows, i, u, D)


@kernel
def intercept_hessian_into(
    start: int, stop: int, R: Any, own: Any, s: Any, norms: Any, slack: Any, radius: float, H: Any
) -> None:
    """H = Σ_i s_i e^(−√2 (radius ‖x_i‖ + slack_i)) (diag(p_i) − p_i p_iᵀ): a lower bound near the scores at hand."""
    H[:] = 0.0
    root2 = math.sqrt(2.0)
    for i in range(start, stop):
        scale = s[i] * math.exp(-root2 * (radius * norms[i] + slack[i]))
        for k in range(H.shape[0]):
            r = R[i, k]
            p = r + 1.0 if k == own[i] else r
            H[k, k] += scale * (-r * p if k == own[i] else r * (1.0 - r))
            for m in range(k):
                H[k, m] -= scale * p * (R[i, m] + 1.0 if m == own[i] else R[i, m])


@device
def _curvature(r: Any, own: int) -> float:
    """Σ p_k (1 − p_k) ≥ the largest eigenvalue of diag(p) − p pᵀ, which is at most ½."""
    total = 0.0
    for k in range(r.size):
        total += -r[k] * (1.0 + r[k]) if k == own else r[k] * (1.0 - r[k])
    return total


@kernel
def weighted_curvatures(
    start: int, stop: int, R: Any, own: Any, s: Any, norms: Any, slack: Any, move: float, radius: float
) -> float:
    """Σ s_i ‖x_i‖ c_i, c_i bounding row i's curvature wherever its scores are off by move + radius ‖x_i‖ + slack_i.

    The curvature grows at most like e^(√2 distance) and never beyond ½.
    """
    total = 0.0
    for i in range(start, stop):
        distance = move + radius * norms[i] + slack[i]
        here = _curvature(R[i], own[i]) * (1.0 + 1e-9) + 1e-300
        total += s[i] * norms[i] * min(0.5, here * math.exp(min(50.0, math.sqrt(2.0) * distance)))
    return total


@kernel
def rounding_into(
    rows: Any,
    start: int,
    stop: int,
    Z: Any,
    b: Any,
    R: Any,
    own: Any,
    s: Any,
    norms: Any,
    w_norm: float,
    slack: Any,
    sums: Any,
) -> None:
    """Bound what rounding did to each row's scores (`slack`) and to sums over rows.

    sums: Σ ‖x_i‖ error of s_i R_i, Σ error of s_i R_i, Σ ‖x_i‖ s_i ‖R_i‖, Σ s_i ‖R_i‖, Σ error of the loss.
    """
    sums[:] = 0.0
    classes = b.size
    for i in range(start, stop):
        size, top = 0.0, 0.0
        for k in range(classes):
            size += R[i, k] * R[i, k]
            top = max(top, abs(Z[i, k]) + abs(b[k]))
        size = math.sqrt(size)
        product = (row_length(rows, i) + 4.0) * _EPS * norms[i] * w_norm
        slack[i] = product + 16.0 * _EPS * math.sqrt(classes) * (1.0 + top)
        steepest = min(0.5, _curvature(R[i], own[i]) * math.exp(min(50.0, 2.0 * slack[i])) + _EPS * size)
        error = s[i] * (steepest * slack[i] + (classes + 8.0) * _EPS * size + 1e-300)
        sums[0] += norms[i] * error
        sums[1] += error
        sums[2] += norms[i] * s[i] * size
        sums[3] += s[i] * size
        sums[4] += s[i] * (size * slack[i] + slack[i] * slack[i] + 8.0 * _EPS * (1.0 + top))
