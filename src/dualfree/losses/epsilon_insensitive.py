"""max(0, |r| − ε), r = z − y: support-vector regression, not smooth. φ*(−a) = ε |a| − a y on |a| ≤ 1."""

from __future__ import annotations

import math

from .._jit import scalar


@scalar
def value(z: float, y: float, epsilon: float) -> float:
    return max(0.0, abs(z - y) - epsilon)


@scalar
def derivative(z: float, y: float, epsilon: float) -> float:
    r = z - y
    return 1.0 if r > epsilon else (-1.0 if r < -epsilon else 0.0)


@scalar
def curvature(z: float, y: float, epsilon: float) -> float:
    return 0.0


@scalar
def conjugate(a: float, y: float, epsilon: float) -> float:
    return epsilon * abs(a) - a * y if abs(a) <= 1.0 else math.inf


@scalar
def dual_bounds(y: float, epsilon: float) -> tuple[float, float]:
    return -1.0, 1.0


@scalar
def dual_step(z: float, y: float, a: float, q: float, epsilon: float) -> float:
    pull = q * a - (z - y)  # −r at a = 0
    if abs(pull) <= epsilon:
        return 0.0
    excess = pull - epsilon if pull > 0.0 else pull + epsilon
    if q == 0.0:
        return 1.0 if excess > 0.0 else -1.0
    return min(1.0, max(-1.0, excess / q))


@scalar
def fenchel_young(z: float, y: float, a: float, epsilon: float) -> float:
    if abs(a) > 1.0:
        return math.inf
    r = z - y
    if r < 0.0:
        r, a = -r, -a
    if r > epsilon:
        return (r - epsilon) * (1.0 + a) + epsilon * (abs(a) + a)
    return abs(a) * (epsilon - r) if a < 0.0 else a * (epsilon + r)
