"""The losses that come with the package, and the one place that maps their ids to their functions.

A kernel gets a built-in loss as two numbers, an id and a parameter. Functions as arguments would be easier to write, but
numba cannot cache a kernel that takes one, and every new process would compile it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from .._checks import real_number
from .._jit import device
from ..vector_math import vector_exp
from . import epsilon_insensitive as _tube
from . import huber as _huber
from . import logistic as _logistic
from . import smoothed_hinge as _rounded
from . import squared as _squared
from . import squared_epsilon_insensitive as _squared_tube
from . import squared_hinge as _squared_hinge
from .base import Loss

L = TypeVar("L", bound=Loss)

SQUARED, LOGISTIC, SQUARED_HINGE, SMOOTHED_HINGE, HUBER, SQUARED_TUBE, TUBE = range(7)
_TINY = 1e-300


@device
def is_flat_at_zero(loss: int) -> bool:
    """Whether the loss is ½ e² beyond its flat parts, where it is 0."""
    return loss in (SQUARED_HINGE, SQUARED_TUBE)


def _functions_of(module: ModuleType) -> Callable[[type[L]], type[L]]:
    """Take the contract's functions from the file that is named after the loss."""

    def attach(kind: type[L]) -> type[L]:
        for name in ("value", "derivative", *Loss.optional):
            setattr(kind, name, staticmethod(getattr(module, name)))
        return kind

    return attach


@_functions_of(_squared)
class Squared(Loss):
    """½ (z − y)².

    Examples
    --------
    >>> from dualfree.losses import Squared
    >>> Squared()(3.0, 1.0)
    2.0
    """

    name, task, smoothness, builtin_id = "squared", "regression", 1.0, SQUARED


@_functions_of(_logistic)
class Logistic(Loss):
    """log(1 + e^(−yz)), y = ±1.

    Examples
    --------
    >>> from dualfree.losses import Logistic
    >>> round(Logistic()(0.0, 1.0), 6)
    0.693147
    """

    name, task, smoothness, lipschitz, builtin_id = "logistic", "classification", 0.25, 1.0, LOGISTIC


@_functions_of(_squared_hinge)
class SquaredHinge(Loss):
    """½ max(0, 1 − yz)², y = ±1.

    Examples
    --------
    >>> from dualfree.losses import SquaredHinge
    >>> SquaredHinge()(-1.0, 1.0)
    2.0
    """

    name, task, smoothness, builtin_id = "squared_hinge", "classification", 1.0, SQUARED_HINGE


@_functions_of(_rounded)
class SmoothedHinge(Loss):
    """The hinge with its corner rounded over a width γ, y = ±1.

    Parameters
    ----------
    gamma : float, default=1.0
        Width of the rounded corner; the smoothness constant is 1/γ.

    Examples
    --------
    >>> from dualfree.losses import SmoothedHinge
    >>> SmoothedHinge(gamma=0.5)(0.0, 1.0)
    0.75
    """

    name, task, lipschitz, builtin_id = "smoothed_hinge", "classification", 1.0, SMOOTHED_HINGE

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = real_number("gamma", gamma, low=0.0, strict=True)
        self.smoothness = 1.0 / self.gamma
        super().__init__(self.gamma)


@_functions_of(_rounded)
class Hinge(Loss):
    """max(0, 1 − yz), y = ±1. Not smooth: only exact dual steps (``prox-sdca``, ``adfsdca+``) solve it.

    Examples
    --------
    >>> from dualfree.losses import Hinge
    >>> Hinge()(-1.0, 1.0)
    2.0
    """

    name, task, smoothness, lipschitz, builtin_id = "hinge", "classification", math.inf, 1.0, SMOOTHED_HINGE

    def __init__(self) -> None:
        super().__init__(0.0)

    def __repr__(self) -> str:
        return "Hinge()"


@_functions_of(_huber)
class Huber(Loss):
    """½ r² where |r| ≤ δ, δ|r| − ½ δ² beyond; r = z − y.

    Parameters
    ----------
    delta : float, default=1.0
        Where the parabola turns into a line.

    Examples
    --------
    >>> from dualfree.losses import Huber
    >>> Huber(delta=1.0)(3.0, 0.0)
    2.5
    """

    name, task, smoothness, builtin_id = "huber", "regression", 1.0, HUBER

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = self.lipschitz = real_number("delta", delta, low=0.0, strict=True)
        super().__init__(self.delta)


@_functions_of(_squared_tube)
class SquaredEpsilonInsensitive(Loss):
    """½ max(0, |r| − ε)²; r = z − y.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half width of the tube in which errors cost nothing.

    Examples
    --------
    >>> from dualfree.losses import SquaredEpsilonInsensitive
    >>> SquaredEpsilonInsensitive(epsilon=1.0)(3.0, 0.0)
    2.0
    """

    name, task, smoothness, builtin_id = "squared_epsilon_insensitive", "regression", 1.0, SQUARED_TUBE

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = real_number("epsilon", epsilon, low=0.0)
        super().__init__(self.epsilon)


@_functions_of(_tube)
class EpsilonInsensitive(Loss):
    """max(0, |r| − ε); r = z − y. Not smooth: only exact dual steps (``prox-sdca``, ``adfsdca+``) solve it.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half width of the tube in which errors cost nothing.

    Examples
    --------
    >>> from dualfree.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(epsilon=1.0)(3.0, 0.0)
    2.0
    """

    name, task, smoothness, lipschitz, builtin_id = "epsilon_insensitive", "regression", math.inf, 1.0, TUBE

    def __init__(self, epsilon: float = 0.0) -> None:
        self.epsilon = real_number("epsilon", epsilon, low=0.0)
        super().__init__(self.epsilon)


# --- ids to functions -------------------------------------------------------------------------------------------------


@device
def value(loss_id: int, p: float, z: float, y: float) -> float:
    if loss_id == LOGISTIC:
        return _logistic.value(z, y)
    if loss_id == SQUARED:
        return _squared.value(z, y)
    if loss_id == SQUARED_HINGE:
        return _squared_hinge.value(z, y)
    if loss_id == SMOOTHED_HINGE:
        return _rounded.value(z, y, p)
    if loss_id == HUBER:
        return _huber.value(z, y, p)
    if loss_id == SQUARED_TUBE:
        return _squared_tube.value(z, y, p)
    return _tube.value(z, y, p)


@device
def derivative(loss_id: int, p: float, z: float, y: float) -> float:
    if loss_id == LOGISTIC:
        return _logistic.derivative(z, y)
    if loss_id == SQUARED:
        return _squared.derivative(z, y)
    if loss_id == SQUARED_HINGE:
        return _squared_hinge.derivative(z, y)
    if loss_id == SMOOTHED_HINGE:
        return _rounded.derivative(z, y, p)
    if loss_id == HUBER:
        return _huber.derivative(z, y, p)
    if loss_id == SQUARED_TUBE:
        return _squared_tube.derivative(z, y, p)
    return _tube.derivative(z, y, p)


@device
def curvature(loss_id: int, p: float, z: float, y: float) -> float:
    if loss_id == LOGISTIC:
        return _logistic.curvature(z, y)
    if loss_id == SQUARED:
        return _squared.curvature(z, y)
    if loss_id == SQUARED_HINGE:
        return _squared_hinge.curvature(z, y)
    if loss_id == SMOOTHED_HINGE:
        return _rounded.curvature(z, y, p)
    if loss_id == HUBER:
        return _huber.curvature(z, y, p)
    if loss_id == SQUARED_TUBE:
        return _squared_tube.curvature(z, y, p)
    return _tube.curvature(z, y, p)


@device
def dual_bounds(loss_id: int, p: float, y: float) -> tuple[float, float]:
    if loss_id == LOGISTIC:
        return _logistic.dual_bounds(y)
    if loss_id == SQUARED:
        return _squared.dual_bounds(y)
    if loss_id == SQUARED_HINGE:
        return _squared_hinge.dual_bounds(y)
    if loss_id == SMOOTHED_HINGE:
        return _rounded.dual_bounds(y, p)
    if loss_id == HUBER:
        return _huber.dual_bounds(y, p)
    if loss_id == SQUARED_TUBE:
        return _squared_tube.dual_bounds(y, p)
    return _tube.dual_bounds(y, p)


@device(inline=True)
def dual_step(loss_id: int, p: float, z: float, y: float, a: float, q: float) -> float:
    if loss_id == LOGISTIC:
        return _logistic.dual_step(z, y, a, q)
    if loss_id == SQUARED:
        return _squared.dual_step(z, y, a, q)
    if loss_id == SQUARED_HINGE:
        return _squared_hinge.dual_step(z, y, a, q)
    if loss_id == SMOOTHED_HINGE:
        return _rounded.dual_step(z, y, a, q, p)
    if loss_id == HUBER:
        return _huber.dual_step(z, y, a, q, p)
    if loss_id == SQUARED_TUBE:
        return _squared_tube.dual_step(z, y, a, q, p)
    return _tube.dual_step(z, y, a, q, p)


@device(inline=True)
def near_step(loss_id: int, p: float, z: float, y: float, a: float, q: float) -> float:
    """About the exact step; only the logistic loss has something cheaper than that."""
    if loss_id == LOGISTIC:
        return _logistic.near_step(z, y, a, q)
    return dual_step(loss_id, p, z, y, a, q)


@device(inline=True)
def curvature_from_dual(loss_id: int, a: float, most: float) -> float:
    """φ'' where φ' = −a, on a curved part of the loss: `most`, which is L, unless it is the logistic loss."""
    if loss_id == LOGISTIC:
        b = abs(a)
        return max(b * (1.0 - b), _TINY)
    return most


@device
def fenchel_young(loss_id: int, p: float, z: float, y: float, a: float) -> float:
    if loss_id == LOGISTIC:
        return _logistic.fenchel_young(z, y, a)
    if loss_id == SQUARED:
        return _squared.fenchel_young(z, y, a)
    if loss_id == SQUARED_HINGE:
        return _squared_hinge.fenchel_young(z, y, a)
    if loss_id == SMOOTHED_HINGE:
        return _rounded.fenchel_young(z, y, a, p)
    if loss_id == HUBER:
        return _huber.fenchel_young(z, y, a, p)
    if loss_id == SQUARED_TUBE:
        return _squared_tube.fenchel_young(z, y, a, p)
    return _tube.fenchel_young(z, y, a, p)


@device
def terms_into(
    loss_id: int, p: float, z: Any, b: float, y: Any, a: Any, values: Any, slopes: Any, gaps: Any, scratch: Any
) -> None:
    """φ(z), φ'(z) and φ(z) + φ*(−a) + a z at z + b; the usual losses on vector registers."""
    if loss_id == LOGISTIC:
        _logistic.terms_into(z, b, y, a, values, slopes, gaps, scratch)
    elif loss_id == SQUARED:
        for k in range(z.size):
            values[k] = _squared.value(z[k] + b, y[k])
            slopes[k] = _squared.derivative(z[k] + b, y[k])
            gaps[k] = _squared.fenchel_young(z[k] + b, y[k], a[k])
    elif loss_id == SQUARED_HINGE:
        for k in range(z.size):
            values[k] = _squared_hinge.value(z[k] + b, y[k])
            slopes[k] = _squared_hinge.derivative(z[k] + b, y[k])
        for k in range(z.size):
            gaps[k] = _squared_hinge.fenchel_young(z[k] + b, y[k], a[k])
    else:
        for k in range(z.size):
            values[k] = value(loss_id, p, z[k] + b, y[k])
            slopes[k] = derivative(loss_id, p, z[k] + b, y[k])
            gaps[k] = fenchel_young(loss_id, p, z[k] + b, y[k], a[k])


# One loop for each of the usual losses, without a branch inside: it runs on vector registers.


@device
def values_into(loss_id: int, p: float, z: Any, b: float, y: Any, out: Any) -> None:
    """out_i = φ(z_i + b; y_i)."""
    if loss_id == LOGISTIC:
        _logistic.values_into(z, b, y, out)
    elif loss_id == SQUARED:
        for i in range(z.size):
            out[i] = _squared.value(z[i] + b, y[i])
    elif loss_id == SQUARED_HINGE:
        for i in range(z.size):
            out[i] = _squared_hinge.value(z[i] + b, y[i])
    else:
        for i in range(z.size):
            out[i] = value(loss_id, p, z[i] + b, y[i])


@device
def slopes_into(loss_id: int, p: float, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i = s_i φ'(z_i + b; y_i)."""
    if loss_id == LOGISTIC:
        for i in range(z.size):
            out[i] = -(y[i] * s[i]) / (1.0 + vector_exp(y[i] * (z[i] + b)))
    elif loss_id == SQUARED:
        for i in range(z.size):
            out[i] = s[i] * _squared.derivative(z[i] + b, y[i])
    elif loss_id == SQUARED_HINGE:
        for i in range(z.size):
            out[i] = s[i] * _squared_hinge.derivative(z[i] + b, y[i])
    else:
        for i in range(z.size):
            out[i] = s[i] * derivative(loss_id, p, z[i] + b, y[i])


@device
def curvatures_into(loss_id: int, p: float, z: Any, b: float, y: Any, s: Any, slopes: Any, out: Any) -> None:
    """out_i = s_i φ''(z_i + b; y_i), given the slopes s_i φ'."""
    if loss_id == LOGISTIC:
        # φ'' = |φ'| (1 − |φ'|): the exponential has been paid for. Below 1e-13 it has few digits where |φ'| is almost 1, and
        # none below 1e-16; a Hessian needs no more, and no certificate is made of it.
        for i in range(z.size):
            size = abs(slopes[i])
            out[i] = size * (1.0 - size / max(s[i], _TINY))
    elif loss_id == SQUARED:
        for i in range(z.size):
            out[i] = s[i]
    elif loss_id == SQUARED_HINGE:
        for i in range(z.size):
            out[i] = s[i] * _squared_hinge.curvature(z[i] + b, y[i])
    else:
        for i in range(z.size):
            out[i] = s[i] * curvature(loss_id, p, z[i] + b, y[i])
