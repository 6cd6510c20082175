"""How far to go along a direction Δ, and what is there: O(n) a trial, because X·Δ is formed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._checks import Array
from .._jit import device, kernel
from ..dual_domain import bounds, unlimited
from ..losses import Logistic, Loss
from ..losses.calls import loss_curvatures, loss_is_flat_at_zero, loss_slopes, loss_terms_into
from ..row_sums import TERMS, TERMS_AT_A_TIME
from ..team import own_rows
from ..vector_math import AT_A_TIME, wide_vectors

LINE_STEPS, _SHRINK, _LEAST_MORE = 60, 0.1, 0.1
TINY = 1e-200  # a quotient by it does not overflow
# How much of the slope may be left after a full step, beyond the least point and before it; and after any other step.
_OVERSHOOT, _UNDERSHOOT, _MISSED = 0.25, 0.9, 0.1


def full_step_is_short(loss: Loss, w: Array, b: float) -> bool:
    """Whether P is nowhere as curved as here, so that the least point is not before a full step's end, and often far behind it.

    The logistic loss is most curved at zero.
    """
    return isinstance(loss, Logistic) and b == 0.0 and not w.any()


def root_of_slope(slope: Callable[[float], float], here: float, is_short: bool = False) -> float:
    """Find t with slope(t) about zero, 1 where that will do: a bracket, and secants inside it and a little beyond.

    A full step that `is_short` will do only where it left no more of the slope than another one may.
    """
    t, bracket = 1.0, (0.0, here, np.inf, np.inf)
    if not here < 0.0:
        return 1.0  # rounding is all that is left: a full step is right
    for trial in range(LINE_STEPS):
        found, t, bracket = next_length(trial, here, t, slope(t), bracket, is_short)
        if found:
            return float(t)
    return float(bracket[0])


def least_on_ray(slope: Callable[[float], float], here: float, enough: float) -> float:
    """Find t so that P at t is at most about `enough` above the least on the ray; 0 where P does not fall.

    P is convex along it: what is left to gain is at most |slope(t)| times the distance to the end of the bracket.
    """
    t, bracket = 1.0, (0.0, here, np.inf, np.inf)
    if not here < 0.0:
        return 0.0
    for trial in range(LINE_STEPS):
        at = slope(t)
        farthest = t - bracket[0] if at > 0.0 else bracket[2] - t
        if at == 0.0 or abs(at) * farthest <= enough:
            return float(t)
        _, t, bracket = next_length(trial, 0.0, t, at, bracket, False)
    return float(bracket[0])


@kernel
def next_length(
    trial: int, here: float, t: float, at: float, bracket: tuple[float, float, float, float], is_short: bool
) -> tuple[bool, float, tuple[float, float, float, float]]:
    """Judge t, where the slope is `at`; return whether it will do, else the next to try, and the new bracket.

    P is convex along the line. Where the slope is still negative, P has fallen all the way. Where it is positive, P has fallen
    by −low · slope(low) at least up to low, where the slope was negative, and risen by (t − low) · slope(t) at most since then.
    """
    low, at_low, high, at_high = bracket
    has_fallen = (t - low) * max(at, 0.0) <= -low * at_low
    if t == 1.0 and (_MISSED if is_short else _UNDERSHOOT) * here <= at <= -_OVERSHOOT * here:
        return True, t, bracket
    if t != 1.0 and abs(at) <= -_MISSED * here and has_fallen:
        return True, t, bracket
    before, at_before = low, at_low
    if at > 0.0 or np.isnan(at):
        high, at_high = t, at
    else:
        low, at_low = t, at
    if not np.isfinite(high):
        secant = at * (t - before) / (at_before - at) if is_short and at > at_before else np.inf
        return False, t + min(3.0 * t, max(_LEAST_MORE * t, secant)), (low, at_low, high, at_high)
    share = at_low / (at_low - at_high) if np.isfinite(at_high) else 0.5
    if low == 0.0 and trial > 2:
        share = min(share, _SHRINK)  # far too long a step, as where no row is curved
    return False, low + min(0.9, max(0.1, share)) * (high - low), (low, at_low, high, at_high)


@kernel
def slope_along(
    own: int, cuts: Any, said: Any, loss: Any, z: Any, along: Any, t: float, b: float, step_b: float, y: Any, s: Any
) -> None:
    """Say Σ s_i φ'(z_i + b + t (along_i + step_b); y_i) (along_i + step_b), of a thread's rows."""
    wide_vectors()
    moved, slopes = np.empty(AT_A_TIME), np.empty(AT_A_TIME)
    mine = own_rows(own, cuts)
    z, along, y, s = z[mine], along[mine], y[mine], s[mine]
    total = 0.0
    for first in range(0, z.size, AT_A_TIME):
        last = min(first + AT_A_TIME, z.size)
        size = last - first
        for k in range(size):
            moved[k] = z[first + k] + t * along[first + k]
        loss_slopes(loss, moved[:size], b + t * step_b, y[first:last], s[first:last], slopes[:size])
        total += _dot_shifted(slopes[:size], along[first:last], step_b)
    said[own, 0] = total


@device(reassociate=True)
def _dot_shifted(slopes: Any, along: Any, shift: float) -> float:
    total = 0.0
    for k in range(slopes.size):
        total += slopes[k] * (along[k] + shift)
    return total


@device(reassociate=True)
def misfit(slopes: Any, curvatures: Any, dual: Any) -> tuple[float, int]:
    """Σ κ²/(2c) over the rows whose curvature c was not zero; and how many others there are."""
    total, flat = 0.0, 0
    for k in range(slopes.size):
        kappa = slopes[k] + dual[k]
        total += kappa * kappa / (2.0 * max(curvatures[k], TINY)) if curvatures[k] > 0.0 else 0.0
        flat += curvatures[k] == 0.0
    return total, flat


@device(reassociate=True)
def _cut(loss: Any, dual: Any, y: Any, s: Any, v: Any) -> float:
    """Move α into its domain; return Σ (c_i ‖x_i‖)², c_i being what that cut off."""
    total = 0.0
    for k in range(dual.size):
        low, high = bounds(loss, y[k], s[k])
        inside = min(high, max(low, dual[k]))
        cut = dual[k] - inside
        total += cut * cut * v[k]
        dual[k] = inside
    return total


@device(reassociate=True)
def _flat_terms(loss: Any, z: Any, b: float, y: Any, s: Any, curvatures: Any, dual: Any, block: Any) -> float:
    """Σ FY over the rows whose curvature was zero."""
    total = 0.0
    for first in range(0, z.size, TERMS_AT_A_TIME):
        part = slice(first, min(first + TERMS_AT_A_TIME, z.size))
        size = part.stop - first
        s_part, dual_part, curvatures_part = s[part], dual[part], curvatures[part]
        a, terms = block[0][:size], block[1][:size]
        for k in range(size):
            a[k] = dual_part[k] / s_part[k] if s_part[k] > 0.0 else 0.0
        others = (block[2][:size], block[3][:size], terms, block[4][:size], block[5:])
        loss_terms_into(loss, z[part], b, y[part], a, *others)
        for k in range(size):
            total += s_part[k] * terms[k] if curvatures_part[k] == 0.0 else 0.0
    return total


@device(reassociate=True)
def _flat_squares(slopes: Any, curvatures: Any, s: Any) -> float:
    """The same where the loss was zero on all of them: α⁺ = 0, and FY = s φ = (s φ')²/(2s)."""
    total = 0.0
    for k in range(slopes.size):
        total += slopes[k] * slopes[k] / (2.0 * s[k]) if curvatures[k] == 0.0 and s[k] > 0.0 else 0.0
    return total


@kernel
def move_along(
    own: int,
    cuts: Any,
    said: Any,
    loss: Any,
    z: Any,
    along: Any,
    t: float,
    b: float,
    step_b: float,
    y: Any,
    s: Any,
    v: Any,
) -> None:
    """z += t along and along ← α⁺, the linearised dual point inside its domain, of a thread's rows.

    Say about Σ FY(z⁺, α⁺), and Σ (c_i ‖x_i‖)², c_i being what the domain cut off α⁺_i.
    """
    wide_vectors()
    slopes, curvatures, block = np.empty(AT_A_TIME), np.empty(AT_A_TIME), np.empty((TERMS, TERMS_AT_A_TIME))
    limited, at_zero = not unlimited(loss), loss_is_flat_at_zero(loss)
    mine = own_rows(own, cuts)
    z, along, y, s, v = z[mine], along[mine], y[mine], s[mine], v[mine]
    total, cut = 0.0, 0.0
    for first in range(0, z.size, AT_A_TIME):
        last = min(first + AT_A_TIME, z.size)
        size = last - first
        z_part, dual, y_part, s_part = z[first:last], along[first:last], y[first:last], s[first:last]
        loss_slopes(loss, z_part, b, y_part, s_part, slopes[:size])
        loss_curvatures(loss, z_part, b, y_part, s_part, slopes[:size], curvatures[:size])
        for k in range(size):
            step = t * dual[k]
            z_part[k] += step
            dual[k] = -slopes[k] - curvatures[k] * (step + t * step_b)
        here = b + t * step_b
        loss_slopes(loss, z_part, here, y_part, s_part, slopes[:size])
        if limited:
            cut += _cut(loss, dual, y_part, s_part, v[first:last])
        left, flat = misfit(slopes[:size], curvatures[:size], dual)
        total += left
        if flat > 0 and at_zero:
            total += _flat_squares(slopes[:size], curvatures[:size], s_part)
        elif flat > 0:
            total += _flat_terms(loss, z_part, here, y_part, s_part, curvatures, dual, block)
    said[own, 0], said[own, 1] = total, cut
