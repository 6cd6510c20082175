"""Linear support vector machines."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._checks import Array
from ..losses import EpsilonInsensitive, Loss, SquaredEpsilonInsensitive
from ._base import JOBS, POSITIVE
from ._classifier import CertifiedClassifier
from ._regressor import CertifiedRegressor


class LinearSVC(CertifiedClassifier):
    """Linear support vector classification, fitted to a certified optimum.

    Minimises ``C Σ s_i loss(y_i, x_i·w + b) + ½ ‖w‖²`` with the loss ``max(0, 1 − y z)²`` (without a ½, as in scikit-learn) or
    ``max(0, 1 − y z)``. One deliberate difference from scikit-learn's class of that name: LIBLINEAR, which works there,
    penalises the intercept; here b is never penalised. Without an intercept the two agree.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The loss. "hinge" is the standard SVM; it is not smooth, so only "auto", "prox-sdca" and "adfsdca+" solve it.
    fit_intercept : bool, default=True
        Whether to fit b.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced" makes them inversely proportional to the classes' weighted frequencies. With more
        than two classes, each against the rest, a class's weight counts in its own model only, as in LIBLINEAR.
    tol : float, optional
        Stop when the certified gap is at most `tol` times the objective at w = 0. 0 asks for all that floating point can
        give. By default 1e-6, and 0 for small data (at most 4096 entries of X), where all digits take no time.
    max_iter : int, default=1000
        The most epochs (n coordinate updates each) of each model.
    max_time : float, optional
        The most seconds for the whole fit.
    solver : str, default="auto"
        A solver of `dualfree.solve`.
    warm_start : bool, default=False
        Whether a fit begins where the last one ended: at its dual coefficients if the number of rows is the same.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same bits.
    n_jobs : int, optional
        Threads: models side by side where there are more than two classes, or the rows of a single one shared out.
    verbose : int, default=0
        Print a line at each evaluation of the gap.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights, in the dtype of X.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts; zero without `fit_intercept`.
    certificate_ : Certificate or list of Certificate
        How far the fit is from the optimum, at most, for ``P = (1/n) Σ s_i loss_i + (1/(2Cn)) ‖w‖²``; one per binary model.
    dual_gap_ : float or array of shape (n_classes,)
        The certified gap: ``certificate_.gap``.
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples)
        α, with ``coef_ = C · dual_coef_ @ X`` at the optimum.
    n_iter_ : array of shape (1,) or (n_classes,)
        Epochs run by each solve.
    trace_ : Trace or list of Trace
        The history of each solve.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualfree import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(random_state=0).fit(X, y)
    >>> model.coef_.shape, round(model.score(X, y), 2)
    ((3, 4), 0.97)
    >>> max(certificate.relative_gap for certificate in model.certificate_) <= 1e-6
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedClassifier._parameter_constraints,
        "C": POSITIVE,
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "n_jobs": JOBS,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "squared_hinge",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float | None = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        solver: str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss(self) -> tuple[Loss | str, float]:
        return (self.loss, 2.0) if self.loss == "squared_hinge" else (self.loss, 1.0)

    def _penalty(self, weights: Array) -> float:
        return 1.0 / (self.C * weights.size)


class LinearSVR(CertifiedRegressor):
    """Linear support vector regression, fitted to a certified optimum.

    Minimises ``C Σ s_i loss(y_i, x_i·w + b) + ½ ‖w‖²`` with the loss ``max(0, |z − y| − ε)`` or its square (without a ½, as in
    scikit-learn). One deliberate difference from scikit-learn's class of that name: LIBLINEAR, which works there, penalises
    the intercept; here b is never penalised. Without an intercept the two agree.

    Parameters
    ----------
    epsilon : float, default=0.0
        ε: residuals up to this size cost nothing.
    C : float, default=1.0
        Inverse of the strength of the penalty.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss. The first one is not smooth, so only "auto", "prox-sdca" and "adfsdca+" solve it.
    fit_intercept : bool, default=True
        Whether to fit b.
    tol : float, optional
        Stop when the certified gap is at most `tol` times the objective at w = 0. 0 asks for all that floating point can
        give. By default 1e-6, and 0 for small data (at most 4096 entries of X), where all digits take no time.
    max_iter : int, default=1000
        The most epochs (n coordinate updates each).
    max_time : float, optional
        The most seconds for the fit.
    solver : str, default="auto"
        A solver of `dualfree.solve`.
    warm_start : bool, default=False
        Whether a fit begins where the last one ended: at its dual coefficients if the number of rows is the same.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same bits.
    verbose : int, default=0
        Print a line at each evaluation of the gap.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights, in the dtype of X.
    intercept_ : array of shape (1,)
        Intercept; zero without `fit_intercept`.
    certificate_ : Certificate
        How far the fit is from the optimum, at most, for ``P = (1/n) Σ s_i loss_i + (1/(2Cn)) ‖w‖²``.
    dual_gap_ : float
        The certified gap: ``certificate_.gap``.
    dual_coef_ : array of shape (n_samples,)
        α, with ``coef_ = C · dual_coef_ @ X`` at the optimum.
    n_iter_ : array of shape (1,)
        Epochs run.
    trace_ : Trace
        The history of the solve.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dualfree import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(epsilon=10.0, C=100.0, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 1)
    0.5
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedRegressor._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "C": POSITIVE,
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        solver: str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> tuple[Loss | str, float]:
        if self.loss == "epsilon_insensitive":
            return EpsilonInsensitive(self.epsilon), 1.0
        return SquaredEpsilonInsensitive(self.epsilon), 2.0

    def _penalties(self, weights: Array, n_targets: int) -> list[float]:
        return [1.0 / (self.C * weights.size)]

    def _set_coefficients(self, coef: Array, intercept: Array, flat: bool) -> None:
        self.coef_, self.intercept_ = coef[0], intercept  # the shapes of scikit-learn's LinearSVR

    def _attributes_at(self, state: Any) -> dict[str, Any]:
        return {"coef_": state.w.copy(), "intercept_": np.array([state.intercept])}
