"""φ(z; y) = log(1 + e^(−yz)), y = ±1. With b = a y the conjugate is the entropy b log b + (1−b) log(1−b), 0 ≤ b ≤ 1.

Everything is written in the margin m = y z and in the probability p = σ(−m) of being wrong. Tails matter: at m = ±1e4
one of p and 1 − p is far below the rounding error of the other, so each is computed on its own.
"""

from __future__ import annotations

import math
from typing import Any

from .._jit import device, scalar
from ..vector_math import artanh_tail, vector_exp, vector_log, wide_vectors

_STEPS = 200
_SERIES = (0.0, 0.0, *(1.0 / (k * (k - 1)) for k in range(2, 11)))
_SHORT = 1e-5  # the cubic remainder of such a step is below 1e-15
_NEAR = 0.5
_FAR = 0.1715  # of |b − p|/(b + p)
_ROOT2, _LOG2 = math.sqrt(2.0), math.log(2.0)


@scalar
def sigmoid(t: float) -> float:
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@scalar
def value(z: float, y: float) -> float:
    m = y * z
    return math.log1p(math.exp(-m)) if m > 0.0 else math.log1p(math.exp(m)) - m


@scalar
def derivative(z: float, y: float) -> float:
    return -y * sigmoid(-y * z)


@scalar
def curvature(z: float, y: float) -> float:
    e = math.exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@device
def _x_log_x(x: float) -> float:
    return x * math.log(x) if x > 0.0 else 0.0


@scalar
def conjugate(a: float, y: float) -> float:
    b = a * y
    if b < 0.0 or b > 1.0:
        return math.inf
    return _x_log_x(b) + (1.0 - b) * math.log1p(-b) if b < 1.0 else 0.0


@scalar
def dual_bounds(y: float) -> tuple[float, float]:
    return (0.0, 1.0) if y > 0.0 else (-1.0, 0.0)


@scalar
def dual_step(z: float, y: float, a: float, q: float) -> float:
    """Solve b = σ(−m⁺) with m⁺ = m + q (b − b₀) for the new margin m⁺, then b = σ(−m⁺).

    g(m⁺) = m⁺ − q σ(−m⁺) − (m − q b₀) grows with slope at least 1 and has its root between m and m + q (σ(−m) − b₀).
    Each iterate of Halley's rule (the second derivative comes free with σ) replaces one end of that bracket. Where it leaves
    the bracket, or moves more than half as far as the one before, the bracket is halved instead: once q is large, plain
    Newton jumps to and fro for ever. After a step δ the error is of order δ³, so a short step ends the search without
    another exponential: σ(−m⁺) follows from its expansion.
    """
    m = y * z
    b = a * y
    start = m - q * b
    p = 1.0 / (1.0 + math.exp(m))
    low, high = m, start + q * p
    if low > high:
        low, high = high, low
    here, moved = m, math.inf
    for _ in range(_STEPS):
        w = p * (1.0 - p)
        g = here - q * p - start
        slope = 1.0 + q * w
        newton = g / slope
        # 1 − g g''/(2 g'²), with g'' = −q w (1 − 2p)
        bend = 1.0 + 0.5 * newton * q * w * (1.0 - 2.0 * p) / slope
        step = newton / bend if 0.5 < bend < 2.0 else newton
        if abs(step) <= _SHORT:
            # σ' = −w and σ'' = w (1 − 2p) in the margin
            return y * (p + w * step * (1.0 + 0.5 * (1.0 - 2.0 * p) * step))
        new = here - step
        if not low <= new <= high or abs(step) > 0.5 * moved:
            new = 0.5 * (low + high)
        moved = abs(new - here)
        here = new
        p = 1.0 / (1.0 + math.exp(here))
        if here - q * p - start > 0.0:
            high = here
        else:
            low = here
    return y * p


@device(inline=True)
def near_step(z: float, y: float, a: float, q: float) -> float:
    """Return about the root that `dual_step` finds, from one exponential where that will do.

    One step of Halley's rule from m. Its error is of third order: a move of the margin by ½ is right to three per cent, a small
    one to as many digits as the visits to come will keep. Farther moves are left to `dual_step`.
    """
    m = y * z
    b = a * y
    p = 1.0 / (1.0 + math.exp(m))
    w = p * (1.0 - p)
    bend = 1.0 - 2.0 * p
    g = q * (b - p)
    slope = 1.0 + q * w
    rate = 2.0 * slope / (2.0 * slope * slope + g * q * w * bend)
    step = g * rate  # m⁺ = m − step
    if abs(step) <= _NEAR:
        if q * w > 1.0:  # b⁺ = b + (m⁺ − m)/q: an error of the margin counts 1/q times here, w times below
            return y * (b - (b - p) * min(1.0, rate))
        return y * (p + w * step * (1.0 + 0.5 * bend * step))
    return dual_step(z, y, a, q)


@device
def _entropy_term(t: float) -> float:
    """(1 + t) log(1 + t) − t for t ≥ −1; its series where the two parts would cancel."""
    if t <= -1.0:
        return 1.0
    if abs(t) < 0.02:
        # Σ_{k≥2} (−t)^k / (k (k − 1)): ten terms leave a relative error below 1e-18
        total = 1.0 / 110.0
        for k in range(10, 1, -1):
            total = _SERIES[k] - t * total
        return t * t * total
    return (1.0 + t) * math.log1p(t) - t


@device
def _divergence(b: float, m: float, p: float) -> float:
    """KL of (b, 1 − b) from (p, 1 − p), p = σ(−m) ≤ ½, written so that nothing cancels."""
    difference = b - p
    if p < 1e-290:  # the quotient below would overflow
        if b <= p:
            return p - b
        tail = b * (math.log(b) + m) - difference
        return tail + (1.0 - p) * _entropy_term(-difference / (1.0 - p))
    return p * _entropy_term(difference / p) + (1.0 - p) * _entropy_term(-difference / (1.0 - p))


@scalar
def terms(z: float, y: float, a: float) -> tuple[float, float, float]:
    """Return φ(z), φ'(z) and φ(z) + φ*(−a) + a z from one exponential."""
    m = y * z
    b = a * y
    e = math.exp(-abs(m))
    larger = 1.0 / (1.0 + e)
    smaller = e * larger  # σ(−|m|)
    value = math.log1p(e)
    if m < 0.0:  # the mirror image: the smaller probability is the accurate one
        value -= m
    if b < 0.0 or b > 1.0:
        divergence = math.inf
    elif m < 0.0:
        divergence = _divergence(1.0 - b, -m, smaller)
    else:
        divergence = _divergence(b, m, smaller)
    return value, -y * (larger if m < 0.0 else smaller), divergence


@device(contract=True)
def _near_part(b: float, p: float) -> float:
    """p ((1 + t) log(1 + t) − t) with t = (b − p)/p, where |f| < 0.172, f = t/(2 + t) = (b − p)/(b + p).

    log(1 + t) = 2 artanh(f), and the difference is (b − p) f (1 + f (1 + f) B(f²)): nothing cancels, and one division will do.
    """
    f = (b - p) / (b + p)
    return (b - p) * f * (1.0 + f * (1.0 + f) * artanh_tail(min(f * f, 0.03)))


@device(contract=True)
def _far_part(b: float, p: float) -> float:
    """The same farther away, where it is a sixth of its parts at least."""
    return b * vector_log(max(b / p, 1e-300)) - (b - p)


@device(contract=True)
def _add_part(b: Any, p: Any, near: Any, far: Any, out: Any) -> None:
    """Add one part of the divergence for some rows, most often all near: then no logarithm is needed."""
    wide_vectors()
    for k in range(out.size):
        near[k] = _near_part(b[k], p[k])
    number_far = 0
    for k in range(out.size):
        number_far += abs(b[k] - p[k]) >= _FAR * (b[k] + p[k])
    if number_far > 0:
        for k in range(out.size):
            far[k] = _far_part(b[k], p[k])
        for k in range(out.size):
            near[k] = near[k] if abs(b[k] - p[k]) < _FAR * (b[k] + p[k]) else far[k]
    for k in range(out.size):
        out[k] += near[k]


@device(contract=True)
def _log_one_plus(e: float) -> float:
    """log(1 + e) for 0 ≤ e ≤ 1, as `vector_log` does, from one quotient.

    It is 2 artanh(f) with f = e/(2 + e) or, where that is large, log 2 plus the same with f = (e − 1)/(e + 3).
    """
    far = e > _ROOT2 - 1.0
    f = (e - 1.0 if far else e) / (e + 3.0 if far else e + 2.0)
    return 2.0 * f * (1.0 + f * f * artanh_tail(f * f)) + (_LOG2 if far else 0.0)


@device(contract=True)
def values_into(z: Any, shift: float, y: Any, value: Any) -> None:
    """φ(z + shift; y) for some rows, on vector registers: max(0, −m) + log(1 + e) with e = exp(−|m|)."""
    wide_vectors()
    for k in range(z.size):
        value[k] = vector_exp(-abs(z[k] + shift))
    for k in range(z.size):
        value[k] = max(0.0, -y[k] * (z[k] + shift)) + _log_one_plus(value[k])


@device(contract=True)
def terms_into(z: Any, shift: float, y: Any, a: Any, value: Any, slope: Any, divergence: Any, scratch: Any) -> None:
    """`terms` for up to 128 rows, z + shift being the margins; `scratch` has six rows.

    One short loop after another, none with a branch around more than a number or two: each runs on vector registers.
    """
    wide_vectors()
    e, smaller, larger, kept, near, far = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    for k in range(z.size):
        e[k] = vector_exp(-abs(z[k] + shift))
    for k in range(z.size):
        larger[k] = 1.0 / (1.0 + e[k])
        smaller[k] = e[k] * larger[k]  # σ(−|m|)
        positive = y[k] * (z[k] + shift) >= 0.0
        kept[k] = a[k] * y[k] if positive else 1.0 - a[k] * y[k]
        slope[k] = -y[k] * (smaller[k] if positive else larger[k])
    for k in range(z.size):
        value[k] = max(0.0, -y[k] * (z[k] + shift)) + _log_one_plus(e[k])
        divergence[k] = 0.0
    _add_part(kept, smaller, near, far, divergence)
    for k in range(z.size):
        kept[k] = 1.0 - kept[k]
    _add_part(kept, larger, near, far, divergence)
    unusual = 0
    for k in range(z.size):
        unusual += _is_unusual(a[k] * y[k], e[k])
    if unusual > 0:
        for k in range(z.size):
            if _is_unusual(a[k] * y[k], e[k]):
                value[k], slope[k], divergence[k] = terms(z[k] + shift, y[k], a[k])


@device
def _is_unusual(b: float, e: float) -> int:
    """Whether b is outside the domain, or e in the far tails."""
    return int(b < 0.0) | int(b > 1.0) | int(e < 1e-290)


@scalar
def fenchel_young(z: float, y: float, a: float) -> float:
    """The Kullback–Leibler divergence of (b, 1 − b) from (p, 1 − p)."""
    return terms(z, y, a)[2]
