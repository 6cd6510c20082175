"""How a user's loss reaches compiled code.

Each loss class gets a token: an object without content whose numba type stands for the class. While a kernel compiles,
`calls.py` finds the class's compiled functions through that type and calls them directly, so a user's loss runs as fast as
a built-in one. The price: numba cannot keep such a kernel on disk, and each process compiles it anew.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.datamodel.models import OpaqueModel
from numba.extending import NativeValue, is_jitted, register_model, typeof_impl, unbox

from .._jit import device

_ARGUMENTS = {
    "value": 2,
    "derivative": 2,
    "curvature": 2,
    "conjugate": 2,
    "dual_bounds": 1,
    "dual_step": 4,
    "fenchel_young": 3,
}


class UserLossType(types.Type):  # type: ignore[misc]
    """The numba type of one user-defined loss class; `functions` maps names to compiled functions, or None if absent."""

    def __init__(self, kind: type, functions: dict[str, Any]) -> None:
        self.functions = functions
        super().__init__(name=f"UserLoss({kind.__module__}.{kind.__qualname__}#{id(kind)})")


class Token:
    """Stands for a loss class in the arguments of a kernel."""

    def __init__(self, numba_type: UserLossType) -> None:
        self.numba_type = numba_type


_tokens: dict[type, Token] = {}


def token_of(kind: type, n_params: int) -> Token:
    """Compile a class's static functions, once, and return its token."""
    if kind not in _tokens:
        functions: dict[str, Any] = dict.fromkeys(_ARGUMENTS)
        for name, count in _ARGUMENTS.items():
            defined = getattr(kind, name, None)
            if defined is not None:
                _check_arity(kind, name, defined, count + n_params)
                functions[name] = defined if is_jitted(defined) else device(defined)
        if functions["dual_bounds"] is None:
            functions["dual_bounds"] = device(_unbounded)
        _tokens[kind] = Token(UserLossType(kind, functions))
    return _tokens[kind]


def _check_arity(kind: type, name: str, defined: Callable[..., Any], expected: int) -> None:
    found = len(inspect.signature(defined).parameters)
    if found != expected:
        raise TypeError(
            f"loss {kind.__name__}: {name} must be a static function of {expected} numbers, it takes {found}."
        )


def _unbounded(*arguments: Any) -> tuple[float, float]:
    return -math.inf, math.inf


# --- what numba asks for ----------------------------------------------------------------------------------------------

register_model(UserLossType)(OpaqueModel)


@typeof_impl.register(Token)
def _type_of(token: Token, context: Any) -> UserLossType:
    return token.numba_type


@unbox(UserLossType)
def _unbox(numba_type: Any, value: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())
