"""Ridge regression with its alpha chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import StrOptions

from .._checks import Array
from ._callbacks import Progress, with_callbacks
from ._cross_validation import chosen_scorer, routed, router, scored, search, warn_of_folds
from ._solving import AnyProblem, Coefficients
from .ridge import Ridge


class RidgeCV(Ridge):
    """Ridge regression whose alpha is chosen by cross-validation; every fit on the way is certified.

    Each fold solves the path from the largest alpha to the smallest one, each solve starting from the dual point of the
    one before; the folds run side by side. Then the model is fitted to all data with the best alpha. The intercept is never
    penalised.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        The values of alpha, positive.
    cv : int, splitter, iterable or None, default=None
        The folds, as in scikit-learn's other classes: None stands for 5. (scikit-learn's RidgeCV takes None as leaving one row
        out; that is ``cv=LeaveOneOut()`` here, with a `scoring` such as "neg_mean_squared_error".)
    scoring : str, callable or None, default=None
        What to choose alpha by; None stands for R².
    fit_intercept, tol, max_iter, solver, verbose
        As in `Ridge`.
    max_time : float, optional
        The most seconds for the whole fit, folds and refit together.
    random_state : int, RandomState or None, default=None
        Seed of the solves. The same seed gives the same bits.
    n_jobs : int, optional
        Folds to fit side by side, in threads.

    Attributes
    ----------
    alpha_ : float
        The best alpha.
    best_score_ : float
        Its mean score.
    scores_ : array of shape (n_folds, n_alphas)
        The scores.
    gaps_ : array of shape (n_folds, n_alphas)
        The certified relative gap of each fit (the largest one over targets).
    coef_, intercept_, certificate_, dual_gap_, dual_coef_, n_iter_, trace_, n_features_in_, feature_names_in_
        Of the refit; as in `Ridge`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dualfree import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[0.01, 0.1, 1.0], random_state=0).fit(X, y)
    >>> model.alpha_, model.scores_.shape
    (0.01, (5, 3))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Ridge._parameter_constraints.items() if k not in ("alpha", "warm_start")},
        "alphas": ["array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        cv: Any = None,
        scoring: Any = None,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 1000,
        max_time: float | None = None,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha on the folds and fit the model to all data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets.
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
        X, y = self._checked_data(X, y, multi_output=True, y_numeric=True)
        weights = self._checked_weights(sample_weight, X)
        alphas = self._checked_alphas()
        for_splitter, for_scorer = routed(self, sample_weight, params)
        folds = list(check_cv(self.cv, y, classifier=False).split(X, y, **for_splitter))
        names = [f"fold {k}" for k in range(len(folds))]
        progress = Progress.begin(self, [*names, "refit"], X, y, sample_weight)
        scorer = chosen_scorer(self.scoring, "r2")

        def problems_of(rows: Array) -> list[AnyProblem]:
            return self._problems(X[rows], y[rows], weights[rows])

        def score(kept: Coefficients, rows: Array) -> float:
            model = Ridge()
            model._set_coefficients(kept.coef, kept.intercept, y.ndim == 1)
            model.n_features_in_ = X.shape[1]
            return scored(scorer, model, X, y, rows, for_scorer)

        found = search(folds, alphas, problems_of, score, settings, self.random_state, progress)
        self.scores_, self.gaps_ = found.scores, found.gaps
        self.alpha_ = float(alphas[found.best])
        self.best_score_ = float(found.scores.mean(axis=0)[found.best])
        warn_of_folds(self, settings, found)
        problems = self._problems(X, y, weights)
        refit = progress.part(len(folds), self._problem_names(problems))
        self._fit_problems(problems, found.starts(problems), settings, refit, y.ndim == 1)
        progress.end()
        return self

    def _checked_alphas(self) -> Array:
        alphas = np.asarray(self.alphas, dtype=np.float64)
        if alphas.ndim != 1 or alphas.size == 0 or not np.isfinite(alphas).all() or alphas.min() <= 0:
            raise ValueError(f"alphas must be a list of positive, finite numbers, got {self.alphas!r}.")
        return alphas

    def _penalties(self, weights: Array, n_targets: int) -> list[float]:
        # Folds replace this by each alpha of the path (see `search`); it is the refit that needs it.
        return [getattr(self, "alpha_", 1.0) / weights.size] * n_targets

    def get_metadata_routing(self) -> Any:
        """Return the routes of metadata, for scikit-learn."""
        return router(self, chosen_scorer(self.scoring, "r2"))
