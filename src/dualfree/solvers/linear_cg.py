"""The recurrence of preconditioned conjugate gradients, for Newton's directions and for the squared loss alike.

Twice: `LinearCg` for products that several threads or the interpreter make, and `step_along`, a piece of kernels that make
many short steps in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._checks import Array
from .._jit import device
from ..vector_math import dot


class LinearCg:
    """Solves H x = r with a preconditioner; `residual` is what is left of r, `energy` its squared size by the preconditioner.

    After a step, `length` says how far it went, `gain` by how much it lowered xᵀHx/2 − rᵀx, and `ratio` by what the direction
    before was multiplied in the next one; `gained` is the sum of the gains.

    Parameters
    ----------
    point : array
        Where x begins; changed in place.
    residual : array
        r − H x there; changed in place.
    divided : callable
        Divides a vector by something like H: by its diagonal, or by a Hessian of another point.
    """

    def __init__(self, point: Array, residual: Array, divided: Callable[[Array], Array]) -> None:
        self.point, self.residual, self.divided = point, residual, divided
        self.scaled = divided(residual)
        self.search = self.scaled.copy()
        self.energy = float(residual @ self.scaled)
        self.gain = self.gained = 0.0

    def step(self, times: Callable[[Array], Array]) -> None:
        """Make one step; `times` multiplies a vector by H."""
        product = times(self.search)
        bend = float(self.search @ product)
        if not bend > 0.0:  # underflow: nothing is left to gain
            self.energy = self.length = self.ratio = self.gain = 0.0
            return
        self.length = self.energy / bend
        self.gain = 0.5 * self.length * self.energy
        self.gained += self.gain
        self.point += self.length * self.search
        self.residual -= self.length * product
        self.scaled = self.divided(self.residual)
        before, self.energy = self.energy, float(self.residual @ self.scaled)
        self.ratio = self.energy / before
        self.search *= self.ratio
        self.search += self.scaled


@device
def step_along(
    product: Any, diagonal: Any, point: Any, residual: Any, search: Any, energy: float
) -> tuple[float, float, float]:
    """Do what `LinearCg.step` does; `product` is that of H with the search direction, and is not kept.

    An empty `diagonal` is one of ones. Return the energy, how far the step went, and the ratio of energies.
    """
    size = point.size
    bend = dot(search, product, size)
    if not bend > 0.0:
        return 0.0, 0.0, 0.0
    length = energy / bend
    for j in range(size):
        point[j] += length * search[j]
        residual[j] -= length * product[j]
        product[j] = residual[j]
    for j in range(diagonal.size):
        product[j] /= diagonal[j]
    left = dot(residual, product, size)
    ratio = left / energy
    for j in range(size):
        search[j] = product[j] + ratio * search[j]
    return left, length, ratio
