"""The contract of a loss φ(z; y), and how a user writes one.

A loss is a class with static functions of plain numbers. `value`, `derivative` and `smoothness` are enough to train and to
certify; the others buy exact dual steps, a tighter certificate, or speed. Sample weights are not the loss's business:
the engine applies them (s φ has the conjugate s φ*(·/s)).

======================  =================================================================================  ============
function                meaning                                                                            when absent
======================  =================================================================================  ============
value(z, y)             φ(z; y)                                                                            required
derivative(z, y)        φ'(z; y), or one subgradient                                                       required
smoothness              the constant L̃ with |φ'(z) − φ'(z')| ≤ L̃ |z − z'|                                  required
curvature(z, y)         φ''(z; y) where it exists                                                          no Newton
conjugate(a, y)         φ*(−a; y) on its domain                                                            gradient bound only
dual_bounds(y)          the interval of a where φ*(−a; y) is finite                                        (−∞, ∞)
dual_step(z, y, a, q)   the root a⁺ of a⁺ = −φ'(z + q (a⁺ − a)): the exact step                            bracketed search
fenchel_young(z, y, a)  φ(z) + φ*(−a) + a z ≥ 0 without cancellation                                       from the parts
======================  =================================================================================  ============

Parameters of a loss (the δ of Huber's, say) are given to ``super().__init__(delta)`` and arrive as further arguments
of every static function, in that order.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from .user_defined import token_of

Task = Literal["classification", "regression"]


class Loss:
    """Base class of every loss.

    Parameters
    ----------
    *params : float
        Parameters of the loss; handed to each static function after its own arguments.

    Examples
    --------
    A loss of one's own needs a value, a derivative and a smoothness constant:

    >>> import math
    >>> import numpy as np
    >>> import dualfree as df
    >>> class LogCosh(df.Loss):
    ...     name = "log_cosh"
    ...     task = "regression"
    ...     smoothness = 1.0
    ...     @staticmethod
    ...     def value(z, y):
    ...         r = abs(z - y)
    ...         return r + math.log1p(math.exp(-2.0 * r)) - math.log(2.0)
    ...     @staticmethod
    ...     def derivative(z, y):
    ...         return math.tanh(z - y)
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> result = df.solve(df.Problem(X, X @ [1.0, 2.0, 3.0], loss=LogCosh(), lam=0.1), tol=1e-8, random_state=0)
    >>> result.status.name, result.certificate.relative_gap <= 1e-8
    ('CONVERGED', True)
    """

    name: ClassVar[str] = ""
    task: ClassVar[Task] = "regression"
    convex: ClassVar[bool] = True
    """False for a loss that is only *average-convex*: single φ_i may be non-convex, their average must be convex."""

    smoothness: Any = None
    lipschitz: Any = math.inf
    """A bound of |φ'|, where there is one; needed only where `smoothness` is infinite."""

    builtin_id: ClassVar[int | None] = None
    optional: ClassVar[tuple[str, ...]] = ("curvature", "conjugate", "dual_bounds", "dual_step", "fenchel_young")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Whoever changes a function of a built-in loss has a loss of their own: the id would still mean the old function.
        if "builtin_id" not in cls.__dict__ and any(f in cls.__dict__ for f in ("value", "derivative", *cls.optional)):
            cls.builtin_id = None

    def __init__(self, *params: float) -> None:
        self.params = tuple(float(p) for p in params)
        self._check_contract()

    def _check_contract(self) -> None:
        kind = type(self)
        for required in ("value", "derivative"):
            if not callable(getattr(kind, required, None)):
                raise TypeError(f"loss {kind.__name__} must define {required}(z, y) as a static function.")
        smoothness = self.smoothness
        if not isinstance(smoothness, (int, float)) or not smoothness > 0:
            raise TypeError(
                f"loss {kind.__name__} must define smoothness, a positive number; got {smoothness!r}. "
                "It bounds the slope of derivative(z, y) in z."
            )
        if kind.task not in ("classification", "regression"):
            raise TypeError(f"loss {kind.__name__}: task must be 'classification' or 'regression', got {kind.task!r}.")
        if math.isinf(smoothness) and not (self.convex and self.has("conjugate") and math.isfinite(self.lipschitz)):
            raise TypeError(
                f"loss {kind.__name__} is not smooth: it must be convex and define conjugate and a finite lipschitz."
            )

    def __call__(self, z: float, y: float) -> float:
        """φ(z; y) with this loss's parameters."""
        return float(type(self).value(z, y, *self.params))  # type: ignore[attr-defined]

    def has(self, function: str) -> bool:
        """Whether the loss itself defines one of the optional functions."""
        return callable(getattr(type(self), function, None))

    @property
    def compiled(self) -> tuple[Any, ...]:
        """What a kernel receives: an id and a parameter for a built-in loss, a token and parameters for a user's."""
        if self.builtin_id is not None:
            return (self.builtin_id, self.params[0] if self.params else 0.0)
        return (token_of(type(self), len(self.params)), self.params)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{p:g}" for p in self.params)
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.params == getattr(other, "params", None)

    def __hash__(self) -> int:
        return hash((type(self), self.params))
