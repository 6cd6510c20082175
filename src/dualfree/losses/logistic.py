"""φ(z; y) = log(1 + e^(−yz)), y = ±1. With b = a y the conjugate is the entropy b log b + (1−b) log(1−b), 0 ≤ b ≤ 1.

Everything is written in the margin m = y z and in the probability p = σ(−m) of being wrong. Tails matter: at m = ±1e4
one of p and 1 − p is far below the rounding error of the other, so each is computed on its own.
"""

from __future__ import annotations

import math

from .._jit import device

_STEPS = 200
_SERIES = (0.0, 0.0, *(1.0 / (k * (k - 1)) for k in range(2, 11)))
_SHORT = 1e-5  # the cubic remainder of such a step is below 1e-15


@device
def sigmoid(t: float) -> float:
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@device
def value(z: float, y: float) -> float:
    m = y * z
    return math.log1p(math.exp(-m)) if m > 0.0 else math.log1p(math.exp(m)) - m


@device
def derivative(z: float, y: float) -> float:
    return -y * sigmoid(-y * z)


@device
def curvature(z: float, y: float) -> float:
    e = math.exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@device
def _x_log_x(x: float) -> float:
    return x * math.log(x) if x > 0.0 else 0.0


@device
def conjugate(a: float, y: float) -> float:
    b = a * y
    if b < 0.0 or b > 1.0:
        return math.inf
    return _x_log_x(b) + (1.0 - b) * math.log1p(-b) if b < 1.0 else 0.0


@device
def dual_bounds(y: float) -> tuple[float, float]:
    return (0.0, 1.0) if y > 0.0 else (-1.0, 0.0)


@device
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


@device
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


@device
def fenchel_young(z: float, y: float, a: float) -> float:
    """The Kullback–Leibler divergence of (b, 1 − b) from (p, 1 − p)."""
    return terms(z, y, a)[2]
