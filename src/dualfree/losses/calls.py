"""What kernels call: one name per function of the contract, for built-in and user-defined losses alike.

`loss` is what `Loss.compiled` returns. Numba resolves these names from its type while a kernel compiles: a pair of
numbers goes to `builtin`, a user's token leads to its compiled functions. Weights enter here and only here:
the weighted loss is s φ(z), its dual variable α = s a.
"""

from __future__ import annotations

import math
from typing import Any

from numba.extending import overload

from .._jit import device
from . import builtin
from .user_defined import UserLossType

_OPTIONS = {"error_model": "numpy", "nogil": True}
_BISECTIONS = 200


def _user(loss: Any) -> dict[str, Any] | None:
    """The functions of a user-defined loss, or None for a built-in one."""
    return loss[0].functions if isinstance(loss[0], UserLossType) else None


def loss_value(loss: Any, z: float, y: float) -> float:
    """φ(z; y)."""
    raise NotImplementedError("compiled code only")


def loss_derivative(loss: Any, z: float, y: float) -> float:
    """φ'(z; y)."""
    raise NotImplementedError("compiled code only")


def loss_curvature(loss: Any, z: float, y: float) -> float:
    """φ''(z; y); NaN where the loss does not say."""
    raise NotImplementedError("compiled code only")


def loss_dual_bounds(loss: Any, y: float) -> tuple[float, float]:
    """The interval of a on which φ*(−a; y) is finite."""
    raise NotImplementedError("compiled code only")


def loss_dual_step(loss: Any, z: float, y: float, a: float, q: float) -> float:
    """The root a⁺ of a⁺ = −φ'(z + q (a⁺ − a))."""
    raise NotImplementedError("compiled code only")


def loss_near_step(loss: Any, z: float, y: float, a: float, q: float) -> float:
    """About that root, where it can be had for less."""
    raise NotImplementedError("compiled code only")


def loss_curvature_from_dual(loss: Any, a: float, most: float) -> float:
    """About φ'' where φ' = −a, on a curved part of the loss; it is at most L, which is given."""
    raise NotImplementedError("compiled code only")


def loss_fenchel_young(loss: Any, z: float, y: float, a: float) -> tuple[float, float]:
    """φ(z) + φ*(−a) + a z and a bound on the rounding error of that sum beyond a few relative units."""
    raise NotImplementedError("compiled code only")


def loss_terms_into(
    loss: Any, z: Any, b: float, y: Any, a: Any, value: Any, slope: Any, fenchel_young: Any, error: Any, scratch: Any
) -> None:
    """φ(z), φ'(z), φ(z) + φ*(−a) + a z at z + b, and the error bound of the last: all that a certificate needs of some rows."""
    raise NotImplementedError("compiled code only")


def loss_values(loss: Any, z: Any, b: float, y: Any, out: Any) -> None:
    """out_i = φ(z_i + b; y_i) for all rows."""
    raise NotImplementedError("compiled code only")


def loss_slopes(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i = s_i φ'(z_i + b; y_i) for all rows; `out` may be `z`."""
    raise NotImplementedError("compiled code only")


def loss_curvatures(loss: Any, z: Any, b: float, y: Any, s: Any, slopes: Any, out: Any) -> None:
    """out_i = s_i φ''(z_i + b; y_i) for all rows, given what `loss_slopes` found there.

    `out` must be another array: a loop that writes what it reads does not run on vector registers.
    """
    raise NotImplementedError("compiled code only")


def loss_is_flat_at_zero(loss: Any) -> bool:
    """Whether the loss is known to be ½ e² beyond its flat parts, where it is 0."""
    raise NotImplementedError("compiled code only")


@overload(loss_is_flat_at_zero, strict=False, jit_options=_OPTIONS)
def _is_flat_at_zero(loss: Any) -> Any:
    if _user(loss) is None:
        return lambda loss: builtin.is_flat_at_zero(loss[0])
    return lambda loss: False


@overload(loss_value, strict=False, jit_options=_OPTIONS)
def _value(loss: Any, z: Any, y: Any) -> Any:
    functions = _user(loss)
    if functions is None:
        return lambda loss, z, y: builtin.value(loss[0], loss[1], z, y)
    value = functions["value"]
    return lambda loss, z, y: value(z, y, *loss[1])


@overload(loss_derivative, strict=False, jit_options=_OPTIONS)
def _derivative(loss: Any, z: Any, y: Any) -> Any:
    functions = _user(loss)
    if functions is None:
        return lambda loss, z, y: builtin.derivative(loss[0], loss[1], z, y)
    derivative = functions["derivative"]
    return lambda loss, z, y: derivative(z, y, *loss[1])


@overload(loss_curvature, strict=False, jit_options=_OPTIONS)
def _curvature(loss: Any, z: Any, y: Any) -> Any:
    functions = _user(loss)
    if functions is None:
        return lambda loss, z, y: builtin.curvature(loss[0], loss[1], z, y)
    curvature = functions["curvature"]
    if curvature is None:
        return lambda loss, z, y: math.nan
    return lambda loss, z, y: curvature(z, y, *loss[1])


@overload(loss_dual_bounds, strict=False, jit_options=_OPTIONS)
def _dual_bounds(loss: Any, y: Any) -> Any:
    functions = _user(loss)
    if functions is None:
        return lambda loss, y: builtin.dual_bounds(loss[0], loss[1], y)
    dual_bounds = functions["dual_bounds"]
    return lambda loss, y: dual_bounds(y, *loss[1])


@overload(loss_dual_step, strict=False, jit_options=_OPTIONS)
def _dual_step(loss: Any, z: Any, y: Any, a: Any, q: Any) -> Any:
    functions = _user(loss)
    if functions is None:
        return lambda loss, z, y, a, q: builtin.dual_step(loss[0], loss[1], z, y, a, q)
    dual_step, derivative = functions["dual_step"], functions["derivative"]
    if dual_step is not None:
        return lambda loss, z, y, a, q: dual_step(z, y, a, q, *loss[1])

    def search(loss: Any, z: Any, y: Any, a: Any, q: Any) -> Any:
        # f(u) = u + φ'(z + q (u − a)) grows with slope at least 1 for a convex loss; its root lies between a and −φ'(z).
        # Illinois' rule keeps a bracket and converges faster than bisection; both need the derivative alone.
        low, high = a, -derivative(z, y, *loss[1])
        if low > high:
            low, high = high, low
        f_low = low + derivative(z + q * (low - a), y, *loss[1])
        f_high = high + derivative(z + q * (high - a), y, *loss[1])
        if f_low >= 0.0:
            return low
        if f_high <= 0.0:
            return high
        for _ in range(_BISECTIONS):
            middle = (low * f_high - high * f_low) / (f_high - f_low)
            if not low < middle < high:
                middle = 0.5 * (low + high)
                if not low < middle < high:
                    break
            f_middle = middle + derivative(z + q * (middle - a), y, *loss[1])
            if f_middle == 0.0:
                return middle
            if f_middle > 0.0:
                high, f_high, f_low = middle, f_middle, 0.5 * f_low
            else:
                low, f_low, f_high = middle, f_middle, 0.5 * f_high
        return low

    return search


@overload(loss_near_step, strict=False, jit_options=_OPTIONS | {"forceinline": True})
def _near_step(loss: Any, z: Any, y: Any, a: Any, q: Any) -> Any:
    if _user(loss) is None:
        return lambda loss, z, y, a, q: builtin.near_step(loss[0], loss[1], z, y, a, q)
    return lambda loss, z, y, a, q: loss_dual_step(loss, z, y, a, q)


@overload(loss_curvature_from_dual, strict=False, jit_options=_OPTIONS | {"forceinline": True})
def _curvature_from_dual(loss: Any, a: Any, most: Any) -> Any:
    if _user(loss) is None:
        return lambda loss, a, most: builtin.curvature_from_dual(loss[0], a, most)
    return lambda loss, a, most: most


@overload(loss_fenchel_young, strict=False, jit_options=_OPTIONS)
def _fenchel_young(loss: Any, z: Any, y: Any, a: Any) -> Any:
    functions = _user(loss)
    if functions is None:
        return lambda loss, z, y, a: (builtin.fenchel_young(loss[0], loss[1], z, y, a), 0.0)
    fenchel_young, value, conjugate = functions["fenchel_young"], functions["value"], functions["conjugate"]
    if fenchel_young is not None:
        return lambda loss, z, y, a: (fenchel_young(z, y, a, *loss[1]), 0.0)
    if conjugate is None:
        return lambda loss, z, y, a: (math.inf, 0.0)

    def from_parts(loss: Any, z: Any, y: Any, a: Any) -> Any:
        here, there = value(z, y, *loss[1]), conjugate(a, y, *loss[1])
        total = here + there + a * z
        if not math.isfinite(total):
            return math.inf, 0.0
        return max(total, 0.0), 1e-14 * (abs(here) + abs(there) + abs(a * z))

    return from_parts


@overload(loss_terms_into, strict=False, jit_options=_OPTIONS)
def _terms_into(
    loss: Any, z: Any, b: Any, y: Any, a: Any, value: Any, slope: Any, fenchel_young: Any, error: Any, scratch: Any
) -> Any:
    if _user(loss) is None:

        def builtin_terms(
            loss: Any,
            z: Any,
            b: Any,
            y: Any,
            a: Any,
            value: Any,
            slope: Any,
            fenchel_young: Any,
            error: Any,
            scratch: Any,
        ) -> Any:
            error[:] = 0.0
            builtin.terms_into(loss[0], loss[1], z, b, y, a, value, slope, fenchel_young, scratch)

        return builtin_terms

    def user_terms(
        loss: Any, z: Any, b: Any, y: Any, a: Any, value: Any, slope: Any, fenchel_young: Any, error: Any, scratch: Any
    ) -> Any:
        for k in range(z.size):
            value[k] = loss_value(loss, z[k] + b, y[k])
            slope[k] = loss_derivative(loss, z[k] + b, y[k])
            fenchel_young[k], error[k] = loss_fenchel_young(loss, z[k] + b, y[k], a[k])

    return user_terms


@overload(loss_values, strict=False, jit_options=_OPTIONS)
def _values(loss: Any, z: Any, b: Any, y: Any, out: Any) -> Any:
    if _user(loss) is None:

        def builtin_values(loss: Any, z: Any, b: Any, y: Any, out: Any) -> Any:
            builtin.values_into(loss[0], loss[1], z, b, y, out)

        return builtin_values

    def user_values(loss: Any, z: Any, b: Any, y: Any, out: Any) -> Any:
        for i in range(z.size):
            out[i] = loss_value(loss, z[i] + b, y[i])

    return user_values


@overload(loss_slopes, strict=False, jit_options=_OPTIONS)
def _slopes(loss: Any, z: Any, b: Any, y: Any, s: Any, out: Any) -> Any:
    functions = _user(loss)
    if functions is None:

        def builtin_slopes(loss: Any, z: Any, b: Any, y: Any, s: Any, out: Any) -> Any:
            builtin.slopes_into(loss[0], loss[1], z, b, y, s, out)

        return builtin_slopes
    derivative = functions["derivative"]

    def user_slopes(loss: Any, z: Any, b: Any, y: Any, s: Any, out: Any) -> Any:
        for i in range(z.size):
            out[i] = s[i] * derivative(z[i] + b, y[i], *loss[1]) if s[i] > 0.0 else 0.0

    return user_slopes


@overload(loss_curvatures, strict=False, jit_options=_OPTIONS)
def _curvatures(loss: Any, z: Any, b: Any, y: Any, s: Any, slopes: Any, out: Any) -> Any:
    if _user(loss) is None:

        def builtin_curvatures(loss: Any, z: Any, b: Any, y: Any, s: Any, slopes: Any, out: Any) -> Any:
            builtin.curvatures_into(loss[0], loss[1], z, b, y, s, slopes, out)

        return builtin_curvatures

    def user_curvatures(loss: Any, z: Any, b: Any, y: Any, s: Any, slopes: Any, out: Any) -> Any:
        for i in range(z.size):
            out[i] = s[i] * loss_curvature(loss, z[i] + b, y[i]) if s[i] > 0.0 else 0.0

    return user_curvatures


# --- with weights -----------------------------------------------------------------------------------------------------


@device
def residual(loss: Any, z: float, y: float, s: float, alpha: float) -> float:
    """κ = s φ'(z; y) + α."""
    return s * loss_derivative(loss, z, y) + alpha


@device
def exact_step(loss: Any, z: float, y: float, s: float, alpha: float, q: float) -> float:
    """The α⁺ that maximises the dual along one coordinate: α⁺ = −s φ'(z + q (α⁺ − α))."""
    if s == 0.0:
        return 0.0
    return s * loss_dual_step(loss, z, y, alpha / s, s * q)


@device(inline=True)
def near_step(loss: Any, z: float, y: float, s: float, alpha: float, q: float) -> float:
    """About the exact step α⁺."""
    if s == 1.0:  # most often; and a division would be one more thing to wait for
        return loss_near_step(loss, z, y, alpha, q)
    if s == 0.0:
        return 0.0
    return s * loss_near_step(loss, z, y, alpha / s, s * q)
