"""What the regressors share: problems per target, predictions and how many of their digits are certain."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot

from .._checks import Array
from ..losses import Loss
from ..problem import Problem
from ..solvers import State
from ._base import CertifiedModel
from ._callbacks import Progress, with_callbacks
from ._solving import AnyProblem


class CertifiedRegressor(RegressorMixin, CertifiedModel):  # type: ignore[misc]
    """Base class of the regressors; `_multi_output` where y may have several columns."""

    _multi_output = False

    def _loss(self) -> tuple[Loss | str, float]:
        """Return the loss, and the factor that its weights carry (2 where scikit-learn's loss has no ½)."""
        raise NotImplementedError

    def _penalties(self, weights: Array, n_targets: int) -> list[float]:
        """Return λ for each target's problem."""
        raise NotImplementedError

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,), optional
            Weights ≥ 0. A weight of zero is the same as leaving the row out, a whole number the same as repeating it.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._validate_params()
        settings = self._settings()
        X, y = self._checked_data(X, y, multi_output=self._multi_output, y_numeric=True)
        weights = self._checked_weights(sample_weight, X)
        problems = self._problems(X, y, weights)
        progress = Progress.begin(self, self._problem_names(problems), X, y, sample_weight)
        self._fit_problems(problems, self._starts(problems, self.warm_start), settings, progress, y.ndim == 1)
        return self

    def _problems(self, X: Any, y: Array, weights: Array) -> list[AnyProblem]:
        loss, factor = self._loss()
        columns = y.reshape(y.shape[0], -1)
        lams = self._penalties(weights, columns.shape[1])
        first = Problem(X, columns[:, 0], loss, lams[0], factor * weights, self.fit_intercept)
        others = [first.with_targets(columns[:, t]).with_lam(lams[t]) for t in range(1, columns.shape[1])]
        return [first, *others]

    @staticmethod
    def _problem_names(problems: list[AnyProblem]) -> list[str]:
        return [""] if len(problems) == 1 else [f"target {t}" for t in range(len(problems))]

    def _attributes_at(self, state: State) -> dict[str, Any]:
        return {"coef_": state.w.copy(), "intercept_": state.intercept}

    def predict(self, X: Any) -> Array:
        """Return the prediction x·w + b of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        predictions : array of shape (n_samples,) or (n_samples, n_targets)
            The predictions.
        """
        return self._predictions(self._checked_rows(X))

    def _predictions(self, X: Any) -> Array:
        return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_)

    def certified_predict(self, X: Any, rtol: float = 1e-3, atol: float = 0.0) -> tuple[Array, Array]:
        """Return the prediction of each row, and whether the exact optimum is certain to predict the same, within bounds.

        The certificate bounds the distance from the coefficients to the optimal ones, intercept included, and so the
        change of every prediction.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        rtol, atol : float, default=1e-3 and 0
            Two predictions are the same if they differ by at most ``atol + rtol · |prediction|``.

        Returns
        -------
        predictions : array of shape (n_samples,) or (n_samples, n_targets)
            As by `predict`.
        certain : boolean array of the same shape
            True where no better optimisation can change the prediction by more than that.
        """
        X = self._checked_rows(X)
        predictions = self._predictions(X)
        certificates = self.certificate_ if isinstance(self.certificate_, list) else [self.certificate_]
        bounds = np.column_stack([certificate.score_bound(X) for certificate in certificates])
        bounds = bounds.reshape(predictions.shape) + self._rounding(X, predictions)
        return predictions, bounds <= atol + rtol * np.abs(predictions.astype(np.float64))
