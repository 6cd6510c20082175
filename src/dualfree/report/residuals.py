"""The dual residuals |κ| during a fit: the paper's second figure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._checks import Array
from ..problem import Problem
from ..solvers import State

_EPOCHS = 5  # the first evaluations that are kept, as in the paper; and the last
_SAMPLE = 20_000
_COLUMNS = 10  # of a model with many classes


@dataclass(frozen=True, slots=True)
class Density:
    """|κ| of some rows at one evaluation.

    Attributes
    ----------
    column : int
        Which of the model's columns.
    epoch : int
        After how many epochs.
    residuals : array
        |κ_i| of at most 20,000 rows, evenly spread over the data.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.report import Density
    >>> Density(column=0, epoch=1, residuals=np.array([0.5, 0.1])).epoch
    1
    """

    column: int
    epoch: int
    residuals: Array


@dataclass
class ResidualRecorder:
    """Keeps the residuals of the first evaluations and of the last.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.report import ResidualRecorder
    >>> problem = df.Problem(np.eye(4), [1.0, 2.0, 3.0, 4.0], loss="squared", lam=0.1)
    >>> recorder = ResidualRecorder()
    >>> _ = df.solve(problem, callback=lambda state: recorder.record(0, problem, state), random_state=0)
    >>> recorder.densities[0].epoch >= 1, recorder.densities[0].residuals.size
    (True, 4)
    """

    densities: list[Density] = field(default_factory=list)

    def record(self, column: int, problem: Problem, state: State) -> None:
        """Look at one evaluation; for the callback of a solve."""
        if state.epoch == 0 or column >= _COLUMNS:
            return
        kappa = np.abs(problem.residuals(state.w, state.alpha, state.intercept))
        step = max(1, kappa.size // _SAMPLE)
        new = Density(column, state.epoch, kappa[::step])
        mine = [density for density in self.densities if density.column == column]
        if len(mine) > _EPOCHS:
            self.densities.remove(mine[-1])
        self.densities.append(new)
