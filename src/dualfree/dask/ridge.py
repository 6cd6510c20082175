"""Ridge regression on a cluster."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from .._checks import Array
from ..distributed.inputs.survey import Survey
from ..estimators import Ridge as LocalRidge
from ..estimators._base import POSITIVE
from ._base import DaskModel, Target


class Ridge(RegressorMixin, DaskModel):  # type: ignore[misc]
    """Least squares with an L2 penalty, fitted on a Dask cluster to a certified optimum.

    Minimises ``Σ s_i (x_i·w + b − y_i)² + alpha ‖w‖²``, as `dualfree.Ridge` does, for one target. The intercept b is never
    penalised.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether to fit b.
    tol : float, default=1e-6
        Stop when the certified gap is at most `tol` times the objective at w = 0.
    max_rounds : int, default=1000
        The most rounds of communication.
    max_time : float, optional
        The most seconds for the fit.
    random_state : int, RandomState or None, default=None
        Seed. The same partitions and seed give the same bits, on any number of workers.
    local_passes : float, "counted" or "measured", default="counted"
        Passes over its rows that a partition makes in a round of communication; see `dualfree.distributed.solve`. With
        "measured" the bits depend on the run, and ``local_passes_`` is what to pass to repeat it.
    client : distributed.Client, optional
        The cluster; by default the current client. Clones share it, pickles leave it out.
    checkpoint : path, optional
        A file that is written on the way, and from which the next fit goes on should this one not end.
    timeout : float, default=300.0
        Seconds in which the cluster must make progress of some kind; after that, an error says what was waited for.
    verbose : int, default=0
        Keep a line on standard error up to date.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights, in float64.
    intercept_ : float
        Intercept; zero without `fit_intercept`.
    certificate_ : Certificate
        How far the fit is from the optimum, at most, for ``P = (1/(2n)) (Σ s_i (x_i·w + b − y_i)² + alpha ‖w‖²)``.
    dual_gap_ : float
        The certified gap: ``certificate_.gap``.
    n_iter_ : array of shape (1,)
        Rounds.
    local_passes_ : float
        Passes that a partition made in a round.
    trace_ : Trace
        The history of the solve; an epoch is a round.
    n_features_in_, feature_names_in_
        As in scikit-learn; the names are those of a dataframe's columns.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from dualfree.dask import Ridge
    >>> X = da.random.default_rng(0).normal(size=(400, 3), chunks=(100, 3))
    >>> with Client(processes=False, dashboard_address=":0"):
    ...     model = Ridge(alpha=0.1, tol=1e-10, random_state=0).fit(X, 2 * X[:, 0] - X[:, 1] + 1)
    >>> model.coef_.round(2), round(model.intercept_, 2)
    (array([ 2., -1.,  0.]), 1.0)
    """

    _local_class = LocalRidge
    _task = "regression"
    score = DaskModel.score  # scikit-learn's mixin has one that would compute the predictions on the client
    _parameter_constraints: ClassVar[dict[str, Any]] = {**DaskModel._parameter_constraints, "alpha": POSITIVE}

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_rounds: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        local_passes: float | str = "counted",
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        timeout: float = 300.0,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_time = max_time
        self.random_state = random_state
        self.local_passes = local_passes
        self.client = client
        self.checkpoint = checkpoint
        self.timeout = timeout
        self.verbose = verbose

    def _targets(self, client: Any, blocks: list[Any], found: Survey) -> list[Target]:
        (lam,) = self._local()._penalties(np.broadcast_to(1.0, found.n_rows), 1)
        return [Target("the target", blocks, lam)]

    def _set_coefficients(self, coef: Array, intercept: Array) -> None:
        self.coef_, self.intercept_ = coef[0], float(intercept[0])
