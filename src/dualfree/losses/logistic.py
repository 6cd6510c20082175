"""φ(z; y) = log(1 + e^(−yz)), y = ±1. With b = a y the conjugate is the entropy b log b + (1−b) log(1−b), 0 ≤ b ≤ 1.

Everything is written in the margin m = y z and in the probability p = σ(−m) of being wrong. Tails matter: at m = ±1e4
one of p and 1 − p is far below the rounding error of the other, so each is computed on its own.
"""

from __future__ import annotations

import math

from .._jit import device

_NEWTON_STEPS = 100


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
    Each iterate replaces one end of that bracket. Where Newton's step leaves the bracket or is not even half as long as
    the step before, the bracket is halved instead: once q is large, plain Newton jumps to and fro for ever.
    """
    m = y * z
    b = a * y
    p = sigmoid(-m)
    start = m - q * b
    low, high = m, start + q * p
    if low > high:
        low, high = high, low
    new = m - (q * (b - p)) / (1.0 + q * p * (1.0 - p))
    moved = high - low
    for _ in range(_NEWTON_STEPS):
        p = sigmoid(-new)
        g = new - q * p - start
        if g > 0.0:
            high = new
        else:
            low = new
        step = g / (1.0 + q * p * (1.0 - p))
        old = new
        new = old - step
        if abs(step) <= 1e-9 * (1.0 + abs(new)):
            break  # quadratic convergence: the next error is below rounding
        if not low < new < high or abs(step) > 0.5 * moved:
            new = 0.5 * (low + high)
        moved = abs(new - old)
    return y * sigmoid(-new)


@device
def _entropy_term(t: float) -> float:
    """(1 + t) log(1 + t) − t for t ≥ −1; its series where the two parts would cancel."""
    if t <= -1.0:
        return 1.0
    if abs(t) < 0.02:
        # Σ_{k≥2} (−t)^k / (k (k − 1)): twelve terms leave a relative error below 1e-18
        total = 0.0
        power = 1.0
        for k in range(2, 14):
            total += power / (k * (k - 1))
            power *= -t
        return t * t * total
    return (1.0 + t) * math.log1p(t) - t


@device
def fenchel_young(z: float, y: float, a: float) -> float:
    """The Kullback–Leibler divergence of (b, 1 − b) from (p, 1 − p), written so that nothing cancels."""
    m = y * z
    b = a * y
    if b < 0.0 or b > 1.0:
        return math.inf
    if m < 0.0:  # the mirror image: keep the smaller probability in p, where it is accurate
        m = -m
        b = 1.0 - b
    p = sigmoid(-m)
    difference = b - p
    if p < 1e-290:  # the quotient below would overflow
        if b <= p:
            return p - b
        tail = b * (math.log(b) + m) - difference
        return tail + (1.0 - p) * _entropy_term(-difference / (1.0 - p))
    return p * _entropy_term(difference / p) + (1.0 - p) * _entropy_term(-difference / (1.0 - p))
