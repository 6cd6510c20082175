"""The recurrence of preconditioned conjugate gradients, for Newton's directions and for the squared loss alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._checks import Array


class LinearCg:
    """Solves H x = r with the diagonal of H as preconditioner; `residual` is what is left of r, `energy` its squared size.

    Parameters
    ----------
    point : array
        Where x begins; changed in place.
    residual : array
        r − H x there; changed in place.
    diagonal : array
        The diagonal of H, without zeros.
    """

    def __init__(self, point: Array, residual: Array, diagonal: Array) -> None:
        self.point, self.residual, self.diagonal = point, residual, diagonal
        self.scaled = residual / diagonal
        self.search = self.scaled.copy()
        self.energy = float(residual @ self.scaled)

    def step(self, times: Callable[[Array], Array]) -> None:
        """Make one step; `times` multiplies a vector by H."""
        product = times(self.search)
        bend = float(self.search @ product)
        if not bend > 0.0:  # underflow: nothing is left to gain
            self.energy = 0.0
            return
        length = self.energy / bend
        self.point += length * self.search
        self.residual -= length * product
        np.divide(self.residual, self.diagonal, out=self.scaled)
        before, self.energy = self.energy, float(self.residual @ self.scaled)
        self.search *= self.energy / before
        self.search += self.scaled
