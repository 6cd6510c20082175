"""Huber's loss: ½ r² where |r| ≤ δ, δ|r| − ½ δ² beyond, r = z − y. φ*(−a) = ½ a² − a y on |a| ≤ δ."""

from __future__ import annotations

import math

from .._jit import scalar


@scalar
def value(z: float, y: float, delta: float) -> float:
    r = abs(z - y)
    return 0.5 * r * r if r <= delta else delta * (r - 0.5 * delta)


@scalar
def derivative(z: float, y: float, delta: float) -> float:
    return min(delta, max(-delta, z - y))


@scalar
def curvature(z: float, y: float, delta: float) -> float:
    return 1.0 if abs(z - y) <= delta else 0.0


@scalar
def conjugate(a: float, y: float, delta: float) -> float:
    return 0.5 * a * a - a * y if abs(a) <= delta else math.inf


@scalar
def dual_bounds(y: float, delta: float) -> tuple[float, float]:
    return -delta, delta


@scalar
def dual_step(z: float, y: float, a: float, q: float, delta: float) -> float:
    return min(delta, max(-delta, a - (z - y + a) / (1.0 + q)))


@scalar
def fenchel_young(z: float, y: float, a: float, delta: float) -> float:
    if abs(a) > delta:
        return math.inf
    r = z - y
    if abs(r) <= delta:
        return 0.5 * (r + a) ** 2
    if r < 0.0:
        r, a = -r, -a
    return (delta + a) * ((r - delta) + 0.5 * (delta + a))
