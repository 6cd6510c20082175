"""½ max(0, |r| − ε)², r = z − y: support-vector regression, smooth. φ*(−a) = ½ a² − a y + ε |a|."""

from __future__ import annotations

import math

from .._jit import scalar


@scalar
def value(z: float, y: float, epsilon: float) -> float:
    return 0.5 * max(0.0, abs(z - y) - epsilon) ** 2


@scalar
def derivative(z: float, y: float, epsilon: float) -> float:
    r = z - y
    return max(0.0, r - epsilon) if r > 0.0 else min(0.0, r + epsilon)


@scalar
def curvature(z: float, y: float, epsilon: float) -> float:
    return 1.0 if abs(z - y) >= epsilon else 0.0


@scalar
def conjugate(a: float, y: float, epsilon: float) -> float:
    return 0.5 * a * a - a * y + epsilon * abs(a)


@scalar
def dual_bounds(y: float, epsilon: float) -> tuple[float, float]:
    return -math.inf, math.inf


@scalar
def dual_step(z: float, y: float, a: float, q: float, epsilon: float) -> float:
    pull = q * a - (z - y)  # −r at a = 0
    if pull > epsilon:
        return (pull - epsilon) / (1.0 + q)
    if pull < -epsilon:
        return (pull + epsilon) / (1.0 + q)
    return 0.0


@scalar
def fenchel_young(z: float, y: float, a: float, epsilon: float) -> float:
    r = z - y
    if r < 0.0:
        r, a = -r, -a
    if r > epsilon:
        return 0.5 * (r - epsilon + a) ** 2 + epsilon * (abs(a) + a)
    return 0.5 * a * a + (abs(a) * (epsilon - r) if a < 0.0 else a * (epsilon + r))
