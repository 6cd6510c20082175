"""φ(z; y) = ½ max(0, 1 − yz)², y = ±1: the smooth support-vector machine. With b = a y ≥ 0, φ*(−a) = ½ b² − b."""

from __future__ import annotations

import math

from .._jit import scalar


@scalar
def value(z: float, y: float) -> float:
    return 0.5 * max(0.0, 1.0 - y * z) ** 2


@scalar
def derivative(z: float, y: float) -> float:
    return -y * max(0.0, 1.0 - y * z)


@scalar
def curvature(z: float, y: float) -> float:
    return 1.0 if y * z < 1.0 else 0.0


@scalar
def conjugate(a: float, y: float) -> float:
    b = a * y
    return 0.5 * b * b - b if b >= 0.0 else math.inf


@scalar
def dual_bounds(y: float) -> tuple[float, float]:
    return (0.0, math.inf) if y > 0.0 else (-math.inf, 0.0)


@scalar
def dual_step(z: float, y: float, a: float, q: float) -> float:
    b = a * y
    return y * max(0.0, b + (1.0 - y * z - b) / (1.0 + q))


@scalar
def fenchel_young(z: float, y: float, a: float) -> float:
    b = a * y
    if b < 0.0:
        return math.inf
    e = 1.0 - y * z
    return 0.5 * (e - b) ** 2 if e > 0.0 else 0.5 * b * b - b * e
