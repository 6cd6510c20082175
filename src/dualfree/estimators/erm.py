"""Any loss, scikit-learn's interface."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from .._checks import Array
from ..losses import LOSSES, Loss, get_loss
from ._base import JOBS, POSITIVE
from ._classifier import CertifiedClassifier
from ._regressor import CertifiedRegressor


def _names(task: str) -> set[str]:
    return {name for name, kind in LOSSES.items() if kind.task == task}


def _checked(loss: str | Loss, task: str) -> Loss:
    instance = get_loss(loss)
    if instance.task != task:
        raise ValueError(f"loss must be a {task} loss, got {instance!r}, which is for {instance.task}.")
    return instance


class ERMClassifier(CertifiedClassifier):
    """Empirical risk minimisation for classification: any loss, an L2 penalty, a certified optimum.

    Minimises ``(Σ s_i φ(x_i·w + b; y_i)) / Σ s_i + (lam/2) ‖w‖²``: the mean loss, so that `lam` means the same for any number
    of rows. The intercept b is never penalised. With more than two classes there is a model per class against the rest.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        A classification loss: "logistic", "squared_hinge", "smoothed_hinge", "hinge", or an instance, your own for example.
    lam : float, default=1e-4
        λ, the strength of the penalty.
    fit_intercept : bool, default=True
        Whether to fit b.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced" makes them inversely proportional to the classes' weighted frequencies. With more
        than two classes a class's weight counts in its own model only.
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
        How far the fit is from the optimum, at most; one per binary model. Its objective is the one above times Σ s_i / n.
    dual_gap_ : float or array of shape (n_classes,)
        The certified gap: ``certificate_.gap``.
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples)
        α, with ``coef_ = dual_coef_ @ X / (lam Σ s_i)`` at the optimum.
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
    >>> from dualfree import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ERMClassifier(loss="smoothed_hinge", lam=1e-2, random_state=0).fit(scale(X), y)
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedClassifier._parameter_constraints,
        "loss": [StrOptions(_names("classification")), Loss],
        "lam": POSITIVE,
        "n_jobs": JOBS,
    }

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        lam: float = 1e-4,
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
        self.loss = loss
        self.lam = lam
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
        return _checked(self.loss, "classification"), 1.0

    def _penalty(self, weights: Array) -> float:
        return float(self.lam * weights.mean())


class ERMRegressor(CertifiedRegressor):
    """Empirical risk minimisation for regression: any loss, an L2 penalty, a certified optimum.

    Minimises ``(Σ s_i φ(x_i·w + b; y_i)) / Σ s_i + (lam/2) ‖w‖²``: the mean loss, so that `lam` means the same for any number
    of rows. The intercept b is never penalised.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        A regression loss: "squared", "huber", "squared_epsilon_insensitive", "epsilon_insensitive", or an instance, with a
        parameter other than the default or your own.
    lam : float, default=1e-4
        λ, the strength of the penalty.
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
    intercept_ : float
        Intercept; zero without `fit_intercept`.
    certificate_ : Certificate
        How far the fit is from the optimum, at most. Its objective is the one above times Σ s_i / n.
    dual_gap_ : float
        The certified gap: ``certificate_.gap``.
    dual_coef_ : array of shape (n_samples,)
        α, with ``coef_ = dual_coef_ @ X / (lam Σ s_i)`` at the optimum.
    n_iter_ : array of shape (1,)
        Epochs run.
    trace_ : Trace
        The history of the solve.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dualfree import ERMRegressor
    >>> from dualfree.losses import Huber
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ERMRegressor(loss=Huber(50.0), lam=1e-3, random_state=0).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedRegressor._parameter_constraints,
        "loss": [StrOptions(_names("regression")), Loss],
        "lam": POSITIVE,
    }

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        lam: float = 1e-4,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        solver: str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> tuple[Loss | str, float]:
        return _checked(self.loss, "regression"), 1.0

    def _penalties(self, weights: Array, n_targets: int) -> list[float]:
        return [float(self.lam * weights.mean())]
