"""Logistic regression on a cluster."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from ..estimators import LogisticRegression as LocalLogisticRegression
from ..estimators._base import POSITIVE
from ._classifier import DaskClassifier
from ._predicting import predict_blocks


class LogisticRegression(DaskClassifier):
    """Logistic regression with an L2 penalty, fitted on a Dask cluster to a certified optimum.

    Minimises ``C Σ s_i loss(y_i, x_i·w + b) + ½ ‖w‖²``, as `dualfree.LogisticRegression` does. The intercept b is never
    penalised. With more than two classes there is a model for each class against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty.
    fit_intercept : bool, default=True
        Whether to fit b.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced" makes them inversely proportional to the classes' weighted frequencies in all
        partitions. With more than two classes a class's weight counts in its own model only.
    tol : float, default=1e-6
        Stop when the certified gap is at most `tol` times the objective at w = 0.
    max_rounds : int, default=1000
        The most rounds of communication for each model.
    max_time : float, optional
        The most seconds for the whole fit.
    random_state : int, RandomState or None, default=None
        Seed. The same partitions and seed give the same bits, on any number of workers.
    local_passes : float, "counted" or "measured", default="counted"
        Passes over its rows that a partition makes in a round of communication; see `dualfree.distributed.solve`. With
        "measured" the bits depend on the run, and ``local_passes_`` is what to pass to repeat it.
    client : distributed.Client, optional
        The cluster; by default the current client. Clones share it, pickles leave it out.
    checkpoint : path, optional
        A file that is written on the way, and from which the next fit goes on should this one not end. With more than two
        classes each model has a file of its own, numbered.
    timeout : float, default=300.0
        Seconds in which the cluster must make progress of some kind; after that, an error says what was waited for.
    verbose : int, default=0
        Keep a line on standard error up to date.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights, in float64.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts; zero without `fit_intercept`.
    certificate_ : Certificate or list of Certificate
        How far the fit is from the optimum, at most, for ``P = (1/n) Σ s_i loss_i + (1/(2Cn)) ‖w‖²``; one per model.
    dual_gap_ : float or array of shape (n_classes,)
        The certified gap: ``certificate_.gap``.
    n_iter_ : array of shape (1,) or (n_classes,)
        Rounds of each model.
    local_passes_ : float
        Passes that a partition made in a round.
    trace_ : Trace or list of Trace
        The history of each solve; an epoch is a round.
    n_features_in_, feature_names_in_
        As in scikit-learn; the names are those of a dataframe's columns.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from dualfree.dask import LogisticRegression
    >>> X = da.random.default_rng(0).normal(size=(400, 3), chunks=(100, 3))
    >>> y = X[:, 0] > 0.5 * X[:, 1]
    >>> with Client(processes=False, dashboard_address=":0"):
    ...     model = LogisticRegression(random_state=0).fit(X, y)
    ...     accuracy = float(model.score(X, y))
    >>> accuracy > 0.95, model.certificate_.relative_gap <= 1e-6
    (True, True)
    >>> model.predict(X)
    dask.array<_predict, shape=(400,), dtype=bool, chunksize=(100,), chunktype=numpy.ndarray>
    """

    _local_class = LocalLogisticRegression
    _parameter_constraints: ClassVar[dict[str, Any]] = {**DaskClassifier._parameter_constraints, "C": POSITIVE}

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
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
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_time = max_time
        self.random_state = random_state
        self.local_passes = local_passes
        self.client = client
        self.checkpoint = checkpoint
        self.timeout = timeout
        self.verbose = verbose

    def _local(self) -> Any:
        return super()._local().set_params(multi_class="ovr")

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, with more than two the binary ones made to sum to one; lazily for dask.

        Parameters
        ----------
        X : dask array, dask dataframe, or data in memory
            Samples.

        Returns
        -------
        probabilities : dask array or array of shape (n_samples, n_classes)
            One column per class of ``classes_``.
        """
        local = self.to_local()
        return predict_blocks(local, "predict_proba", X, np.dtype(np.float64), local.classes_.size)
