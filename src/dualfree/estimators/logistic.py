"""Logistic regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils._param_validation import StrOptions

from .._checks import Array
from ..losses import Loss
from ..multinomial import MultinomialProblem
from ..solvers import SOLVERS
from ._base import JOBS, POSITIVE
from ._classifier import CertifiedClassifier
from ._solving import AnyProblem, Settings

SKLEARN_SOLVERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


class LogisticRegression(CertifiedClassifier):
    """Logistic regression with an L2 penalty, fitted to a certified optimum.

    Minimises ``C Σ s_i loss(y_i, x_i·w + b) + ½ ‖w‖²``, as scikit-learn's class of that name does. The intercept b is
    never penalised (scikit-learn's ``solver="liblinear"`` penalises it).

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty.
    fit_intercept : bool, default=True
        Whether to fit b.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced" makes them inversely proportional to the classes' weighted frequencies.
    multi_class : {"multinomial", "ovr"}, default="multinomial"
        What to do with more than two classes: one softmax model, as scikit-learn does since version 1.8, or a binary model
        per class against the rest. With "ovr" a class's weight counts in its own model only.
    tol : float, optional
        Stop when the certified gap is at most `tol` times the objective at w = 0. 0 asks for all that floating point can
        give. By default 1e-6, and 0 for small data (at most 4096 entries of X), where all digits take no time.
        (scikit-learn's `tol` means something else in each of its solvers.)
    max_iter : int, default=1000
        The most epochs (n coordinate updates each) of each solve; Newton steps for a multinomial model.
    max_time : float, optional
        The most seconds for the whole fit.
    solver : str, default="auto"
        A solver of `dualfree.solve`. The names of scikit-learn's solvers ("lbfgs", "liblinear", "newton-cg",
        "newton-cholesky", "sag", "saga") stand for "auto", so that code written for scikit-learn runs unchanged: the
        optimum is the same. Multinomial models have one solver, which is "auto".
    warm_start : bool, default=False
        Whether a fit begins where the last one ended: at its dual coefficients if the number of rows is the same.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same bits.
    n_jobs : int, optional
        Threads: for the models of "ovr", side by side, or for the rows of a single model, binary or multinomial.
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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from dualfree import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1, random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    0.98
    >>> model.certificate_.relative_gap <= 1e-6
    True
    >>> classes, certain = model.certified_predict(scale(X))
    >>> bool(certain.mean() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedClassifier._parameter_constraints,
        "C": POSITIVE,
        "multi_class": [StrOptions({"multinomial", "ovr"})],
        "solver": [StrOptions({*SOLVERS, *SKLEARN_SOLVERS})],
        "n_jobs": JOBS,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        multi_class: str = "multinomial",
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
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss(self) -> tuple[Loss | str, float]:
        return "logistic", 1.0

    def _penalty(self, weights: Array) -> float:
        return 1.0 / (self.C * weights.size)

    def _settings(self) -> Settings:
        settings = super()._settings()
        return settings if self.solver in SOLVERS else settings.with_solver("auto")

    def _problems(self, X: Any, own: Array, weights: Array, class_weights: Array) -> list[AnyProblem]:
        if class_weights.size == 2 or self.multi_class == "ovr":
            return super()._problems(X, own, weights, class_weights)
        self._check_multinomial_solver()
        cost = self._costs(own, weights, class_weights)
        self._check_every_class(own, cost, class_weights.size)
        return [MultinomialProblem(X, own, self._penalty(cost), cost, self.fit_intercept)]

    def _check_multinomial_solver(self) -> None:
        if self.solver == "liblinear":
            raise ValueError(
                "The 'liblinear' solver does not support multiclass classification (n_classes >= 3). Use another solver, or "
                "multi_class='ovr' for one model per class against the rest, which is what LIBLINEAR fits."
            )
        if self.solver in SOLVERS and self.solver != "auto":
            raise ValueError(
                f"solver {self.solver!r} solves binary models only, and y has more than 2 classes. Use solver='auto', or "
                "multi_class='ovr' for one model per class against the rest."
            )

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            One column per class of ``classes_``. With ``multi_class="ovr"`` the binary probabilities, made to sum to one.
        """
        scores = self._scores(self._checked_rows(X))
        if scores.shape[1] == 1:
            return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        if self.multi_class == "multinomial":
            return np.asarray(softmax(scores, axis=1))
        each = expit(scores)
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
            One column per class of ``classes_``.
        """
        return np.log(self.predict_proba(X))
