"""What `solve` returns."""

from __future__ import annotations

from dataclasses import dataclass

from ._checks import Array
from .certificate import Certificate
from .status import Status
from .trace import Trace


@dataclass(frozen=True, slots=True)
class Result:
    """The best point of a solve, with its certificate.

    Attributes
    ----------
    w : array of shape (d,)
        The weights.
    intercept : float
        b; 0 without an intercept.
    alpha : array of shape (n,)
        A dual-feasible α.
    certificate : Certificate
        How far (w, b) is from the optimum, at most.
    status : Status
        Why the solve ended.
    message : str
        The status in words, and what to do about it.
    n_epochs : int
        Epochs run; the last ones of `auto` may be shorter than n visits (`trace.passes` counts rows).
    solver : str
        The solver's name.
    trace : Trace
        The history.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> result = df.solve(df.Problem(np.eye(3), [1.0, 2.0, 3.0], loss="squared", lam=1 / 3), random_state=0)
    >>> result.status.name
    'CONVERGED'
    >>> np.round(result.w, 2)
    array([0.5, 1. , 1.5])
    """

    w: Array
    intercept: float
    alpha: Array
    certificate: Certificate
    status: Status
    message: str
    n_epochs: int
    solver: str
    trace: Trace

    def __repr__(self) -> str:
        return f"Result({self.solver}, {self.status}, {self.n_epochs} epochs, {self.certificate})"
