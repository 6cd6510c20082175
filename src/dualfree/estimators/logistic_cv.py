"""Logistic regression with its C chosen by cross-validation."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions

from .._checks import Array
from ._callbacks import Progress, with_callbacks
from ._cross_validation import chosen_scorer, routed, router, scored, search, warn_of_folds
from ._solving import AnyProblem, Coefficients
from .logistic import LogisticRegression


class LogisticRegressionCV(LogisticRegression):
    """Logistic regression whose C is chosen by cross-validation; every fit on the way is certified.

    Each fold solves the path from the smallest C to the largest one, each solve starting from the dual point of the one
    before; the folds run side by side. Then the model is fitted to all data with the best C. The intercept is never
    penalised.

    Parameters
    ----------
    Cs : int or array, default=10
        The values of C; a whole number stands for that many on a logarithmic scale from 1e-4 to 1e4.
    cv : int, splitter, iterable or None, default=None
        The folds, as in scikit-learn: None stands for 5 stratified ones.
    scoring : str, callable or None, default=None
        What to choose C by; None stands for accuracy.
    fit_intercept, class_weight, multi_class, tol, max_iter, solver, verbose
        As in `LogisticRegression`. "balanced" class weights are those of all data.
    max_time : float, optional
        The most seconds for the whole fit, folds and refit together.
    random_state : int, RandomState or None, default=None
        Seed of the solves. The same seed gives the same bits.
    n_jobs : int, optional
        Folds to fit side by side, in threads.

    Attributes
    ----------
    C_ : float
        The best C.
    Cs_ : array of shape (n_cs,)
        The values of C.
    scores_ : array of shape (n_folds, n_cs)
        The scores.
    coefs_paths_ : array of shape (n_folds, n_cs, 1 or n_classes, n_features or n_features + 1)
        The coefficients, with the intercept as their last column if there is one.
    gaps_ : array of shape (n_folds, n_cs)
        The certified relative gap of each fit (the largest one over classes).
    classes_, coef_, intercept_, certificate_, dual_gap_, dual_coef_, n_iter_, trace_, n_features_in_, feature_names_in_
        Of the refit; as in `LogisticRegression`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from dualfree import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0], random_state=0).fit(scale(X), y)
    >>> model.C_ in (0.01, 0.1, 1.0), model.scores_.shape
    (True, (5, 3))
    >>> bool(model.gaps_.max() <= 1e-6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in LogisticRegression._parameter_constraints.items() if k not in ("C", "warm_start")},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        cv: Any = None,
        scoring: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        multi_class: str = "multinomial",
        tol: float | None = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose C on the folds and fit the model to all data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,), optional
            Weights ≥ 0, for the fits and for the scores.
        **params : dict
            Metadata for the splitter and the scorer, where scikit-learn's metadata routing is on.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._validate_params()
        settings = self._settings()
        X, y = self._checked_data(X, y)
        classes, own, weights = self._checked_classes(X, y, sample_weight)
        class_weights = self._class_weights(classes, own, weights)
        Cs = self._checked_Cs()
        for_splitter, for_scorer = routed(self, sample_weight, params)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **for_splitter))
        self.classes_, self.Cs_ = classes, Cs
        names = [f"fold {k}" for k in range(len(folds))]
        progress = Progress.begin(self, [*names, "refit"], X, y, sample_weight)
        scorer = chosen_scorer(self.scoring, "accuracy")

        def problems_of(rows: Array) -> list[AnyProblem]:
            self._check_fold(own[rows])
            return self._problems(X[rows], own[rows], weights[rows], class_weights)

        def score(kept: Coefficients, rows: Array) -> float:
            model = LogisticRegression(multi_class=self.multi_class)
            model.classes_, model.coef_, model.intercept_ = classes, kept.coef, kept.intercept
            model.n_features_in_ = X.shape[1]
            return scored(scorer, model, X, y, rows, for_scorer)

        found = search(folds, 1.0 / Cs, problems_of, score, settings, self.random_state, progress)
        self.scores_, self.gaps_, self.coefs_paths_ = found.scores, found.gaps, found.coefs
        if self.fit_intercept:
            self.coefs_paths_ = np.concatenate([found.coefs, found.intercepts[..., None]], axis=-1)
        self.C_ = float(Cs[found.best])
        warn_of_folds(self, settings, found)
        problems = self._problems(X, own, weights, class_weights)
        refit = progress.part(len(folds), self._problem_names(problems))
        self._fit_problems(problems, found.starts(problems), settings, refit)
        progress.end()
        return self

    def _checked_Cs(self) -> Array:
        if isinstance(self.Cs, Integral):
            return np.logspace(-4, 4, int(self.Cs))
        Cs = np.asarray(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or Cs.size == 0 or not np.isfinite(Cs).all() or Cs.min() <= 0:
            raise ValueError(f"Cs must be a whole number or a list of positive, finite numbers, got {self.Cs!r}.")
        return Cs

    def _check_fold(self, own: Array) -> None:
        missing = np.setdiff1d(np.arange(self.classes_.size), own)
        if missing.size:
            raise ValueError(
                f"The training part of a fold has no sample of class {self.classes_[missing[0]]!r}. Use fewer folds, or a "
                "stratified splitter."
            )

    def _penalty(self, weights: Array) -> float:
        # Folds replace this by each C of the path (see `search`); it is the refit that needs it.
        return 1.0 / (getattr(self, "C_", 1.0) * weights.size)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score by `scoring`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            Their classes.
        sample_weight : array of shape (n_samples,), optional
            Weights.

        Returns
        -------
        score : float
            The score.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(chosen_scorer(self.scoring, "accuracy")(self, X, y, **weights))

    def get_metadata_routing(self) -> Any:
        """Return the routes of metadata, for scikit-learn."""
        return router(self, chosen_scorer(self.scoring, "accuracy"))
