"""The hinge max(0, 1 − yz) with its corner rounded over a width γ; γ = 0 is the hinge itself. y = ±1.

With e = 1 − yz: 0 where e ≤ 0, e²/(2γ) where 0 ≤ e ≤ γ, e − γ/2 beyond. With b = a y, φ*(−a) = γ b²/2 − b on 0 ≤ b ≤ 1.
"""

from __future__ import annotations

import math

from .._jit import scalar


@scalar
def value(z: float, y: float, gamma: float) -> float:
    e = 1.0 - y * z
    if e <= 0.0:
        return 0.0
    return e - 0.5 * gamma if e >= gamma else 0.5 * e * e / gamma


@scalar
def derivative(z: float, y: float, gamma: float) -> float:
    e = 1.0 - y * z
    if e <= 0.0:
        return 0.0
    return -y if e >= gamma else -y * e / gamma


@scalar
def curvature(z: float, y: float, gamma: float) -> float:
    e = 1.0 - y * z
    return 1.0 / gamma if 0.0 < e < gamma else 0.0


@scalar
def conjugate(a: float, y: float, gamma: float) -> float:
    b = a * y
    return 0.5 * gamma * b * b - b if 0.0 <= b <= 1.0 else math.inf


@scalar
def dual_bounds(y: float, gamma: float) -> tuple[float, float]:
    return (0.0, 1.0) if y > 0.0 else (-1.0, 0.0)


@scalar
def dual_step(z: float, y: float, a: float, q: float, gamma: float) -> float:
    b = a * y
    push = 1.0 - y * z - gamma * b
    if push == 0.0:
        return a
    if gamma + q == 0.0:  # the hinge on an empty row: the dual is linear in b
        return y if push > 0.0 else 0.0
    return y * min(1.0, max(0.0, b + push / (gamma + q)))


@scalar
def fenchel_young(z: float, y: float, a: float, gamma: float) -> float:
    b = a * y
    if b < 0.0 or b > 1.0:
        return math.inf
    e = 1.0 - y * z
    if e <= 0.0:
        return 0.5 * gamma * b * b - b * e
    if e >= gamma:
        return (1.0 - b) * ((e - gamma) + 0.5 * gamma * (1.0 - b))
    return 0.5 * (gamma * b - e) ** 2 / gamma
