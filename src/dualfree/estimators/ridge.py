"""Ridge regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._checks import Array
from ..losses import Loss
from ._base import JOBS
from ._regressor import CertifiedRegressor


class Ridge(CertifiedRegressor):
    """Least squares with an L2 penalty, fitted to a certified optimum.

    Minimises ``Σ s_i (x_i·w + b − y_i)² + alpha ‖w‖²``, as scikit-learn's class of that name does. The intercept b is never
    penalised.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Strength of the penalty, positive; one for all targets or one for each.
    fit_intercept : bool, default=True
        Whether to fit b.
    tol : float, optional
        Stop when the certified gap is at most `tol` times the objective at w = 0. 0 asks for all that floating point can
        give. By default 1e-6, and 0 for small data (at most 4096 entries of X), where all digits take no time.
    max_iter : int, default=1000
        The most epochs (n coordinate updates each) for each target.
    max_time : float, optional
        The most seconds for the whole fit.
    solver : str, default="auto"
        A solver of `dualfree.solve`.
    warm_start : bool, default=False
        Whether a fit begins where the last one ended: at its dual coefficients if the number of rows is the same.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same bits.
    n_jobs : int, optional
        Threads: targets side by side, or the rows of a single one shared out.
    verbose : int, default=0
        Print a line at each evaluation of the gap.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Weights, in the dtype of X.
    intercept_ : float or array of shape (n_targets,)
        Intercept; zero without `fit_intercept`.
    certificate_ : Certificate or list of Certificate
        How far the fit is from the optimum, at most, for ``P = (1/(2n)) (Σ s_i (x_i·w + b − y_i)² + alpha ‖w‖²)``; one per
        target.
    dual_gap_ : float or array of shape (n_targets,)
        The certified gap: ``certificate_.gap``.
    dual_coef_ : array of shape (n_samples,) or (n_targets, n_samples)
        The weighted residuals α, with ``coef_ = dual_coef_ @ X / alpha`` at the optimum.
    n_iter_ : array of shape (n_targets,)
        Epochs run for each target.
    trace_ : Trace or list of Trace
        The history of each solve.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dualfree import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1, tol=1e-10, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.513
    >>> model.certificate_.relative_gap <= 1e-10
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedRegressor._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "n_jobs": JOBS,
    }
    _multi_output = True

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        solver: str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Say that several targets are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _loss(self) -> tuple[Loss | str, float]:
        return "squared", 1.0

    def _penalties(self, weights: Array, n_targets: int) -> list[float]:
        alphas = np.ravel(np.asarray(self.alpha, dtype=np.float64))
        if alphas.size not in (1, n_targets):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {alphas.size} != {n_targets}"
            )
        if not (np.isfinite(alphas).all() and alphas.min() > 0):
            raise ValueError(f"Every alpha must be a positive, finite number, got {self.alpha!r}.")
        return (np.broadcast_to(alphas, n_targets) / weights.size).tolist()
