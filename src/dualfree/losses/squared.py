"""φ(z; y) = ½ (z − y)², the loss of ridge regression. Every function is a polynomial, so each is exact to rounding."""

from __future__ import annotations

import math

from .._jit import device


@device
def value(z: float, y: float) -> float:
    return 0.5 * (z - y) ** 2


@device
def derivative(z: float, y: float) -> float:
    return z - y


@device
def curvature(z: float, y: float) -> float:
    return 1.0


@device
def conjugate(a: float, y: float) -> float:
    return 0.5 * a * a - a * y


@device
def dual_bounds(y: float) -> tuple[float, float]:
    return -math.inf, math.inf


@device
def dual_step(z: float, y: float, a: float, q: float) -> float:
    return a - (z - y + a) / (1.0 + q)


@device
def fenchel_young(z: float, y: float, a: float) -> float:
    return 0.5 * (z - y + a) ** 2
