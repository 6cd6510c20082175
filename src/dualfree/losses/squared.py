"""φ(z; y) = ½ (z − y)², the loss of ridge regression. Every function is a polynomial, so each is exact to rounding."""

from __future__ import annotations

import math

from .._jit import scalar


@scalar
def value(z: float, y: float) -> float:
    return 0.5 * (z - y) ** 2


@scalar
def derivative(z: float, y: float) -> float:
    return z - y


@scalar
def curvature(z: float, y: float) -> float:
    return 1.0


@scalar
def conjugate(a: float, y: float) -> float:
    return 0.5 * a * a - a * y


@scalar
def dual_bounds(y: float) -> tuple[float, float]:
    return -math.inf, math.inf


@scalar
def dual_step(z: float, y: float, a: float, q: float) -> float:
    return a - (z - y + a) / (1.0 + q)


@scalar
def fenchel_young(z: float, y: float, a: float) -> float:
    return 0.5 * (z - y + a) ** 2
