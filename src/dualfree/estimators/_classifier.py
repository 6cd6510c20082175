"""What the classifiers share: class weights, one problem per class, decisions and which of them are certain."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets

from .._checks import Array
from ..certificate import Certificate
from ..losses import Loss
from ..multinomial import MultinomialCertificate
from ..problem import Problem, class_numbers
from ._base import CertifiedModel
from ._callbacks import Progress, with_callbacks
from ._solving import AnyProblem


class CertifiedClassifier(ClassifierMixin, CertifiedModel):  # type: ignore[misc]
    """Base class of the classifiers: one problem for two classes, one against the rest for each of more."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CertifiedModel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    # --- what a subclass says ---------------------------------------------------------------------------------------

    def _loss(self) -> tuple[Loss | str, float]:
        """Return the loss, and the factor that its weights carry (2 where scikit-learn's loss has no ½)."""
        raise NotImplementedError

    def _penalty(self, weights: Array) -> float:
        """Return λ for a problem with these weights."""
        raise NotImplementedError

    # --- the fit ----------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,), optional
            Weights ≥ 0. A weight of zero is the same as leaving the row out, a whole number the same as repeating it.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._validate_params()
        settings = self._settings()
        X, y = self._checked_data(X, y)
        classes, own, weights = self._checked_classes(X, y, sample_weight)
        problems = self._problems(X, own, weights, self._class_weights(classes, own, weights))
        before = getattr(self, "classes_", None)
        go_on = self.warm_start and before is not None and np.array_equal(before, classes)
        self.classes_ = classes
        progress = Progress.begin(self, self._problem_names(problems), X, y, sample_weight)
        self._fit_problems(problems, self._starts(problems, go_on), settings, progress)
        return self

    def _checked_classes(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
        """Return the classes, each row's position among them, and the checked weights."""
        if not _are_whole_numbers(y):  # which are classes; to find out what others are takes milliseconds
            check_classification_targets(y)
        classes, own = class_numbers(y)
        if classes.size < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class: "
                f"{classes[0]!r}"
            )
        return classes, own, self._checked_weights(sample_weight, X)

    def _class_weights(self, classes: Array, own: Array, weights: Array) -> Array:
        """Return the weight of each class; "balanced" counts rows by their sample weights."""
        if isinstance(self.class_weight, str):
            counts = np.bincount(own, weights=weights, minlength=classes.size)
            return np.divide(counts.sum(), classes.size * counts, out=np.zeros(classes.size), where=counts > 0)
        return np.asarray(compute_class_weight(self.class_weight, classes=classes, y=classes), dtype=np.float64)

    def _problems(self, X: Any, own: Array, weights: Array, class_weights: Array) -> list[AnyProblem]:
        """Return one problem for two classes, a problem per class for more.

        One against the rest, a class's weight counts in its own problem only, as in LIBLINEAR.
        """
        cost = self._costs(own, weights, class_weights)
        self._check_every_class(own, cost, class_weights.size)
        loss, factor = self._loss()
        if class_weights.size == 2:
            cost = factor * cost
            return [Problem(X, own, loss, self._penalty(cost), cost, self.fit_intercept)]
        problems: list[Any] = []
        for k in range(class_weights.size):
            mine = own == k
            cost = factor * weights * np.where(mine, class_weights[k], 1.0)
            if not problems:
                problems.append(Problem(X, mine, loss, self._penalty(cost), cost, self.fit_intercept))
            else:
                problems.append(problems[0].with_targets(mine, cost).with_lam(self._penalty(cost)))
        return problems

    @staticmethod
    def _costs(own: Array, weights: Array, class_weights: Array) -> Array:
        """Return each row's weight times that of its class."""
        return weights if (class_weights == 1.0).all() else weights * class_weights[own]

    def _check_every_class(self, own: Array, cost: Array, n_classes: int) -> None:
        if self.fit_intercept:
            weighted = np.bincount(own, weights=cost, minlength=n_classes)
            if not weighted.all():
                raise ValueError(
                    f"The weights leave no sample of class number {int(np.argmin(weighted))} (in sorted order). An "
                    "intercept needs every class with a positive weight: remove its samples or set fit_intercept=False."
                )

    def _problem_names(self, problems: list[AnyProblem]) -> list[str]:
        return [""] if len(problems) == 1 else [f"class {label!r}" for label in self.classes_.tolist()]

    # --- predictions ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return the score x·w + b of each row; with more than two classes one score per class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
            Positive scores are for ``classes_[1]``; with more classes the largest one wins.
        """
        scores = self._scores(self._checked_rows(X))
        return np.asarray(scores.ravel() if scores.shape[1] == 1 else scores)

    def _scores(self, X: Any) -> Array:
        return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_)

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        classes : array of shape (n_samples,)
            The predicted classes.
        """
        return self._winners(self._scores(self._checked_rows(X)))

    def _winners(self, scores: Array) -> Array:
        winners = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def certified_predict(self, X: Any) -> tuple[Array, Array]:
        """Return the class of each row, and whether the exact optimum is certain to predict the same class.

        The certificate bounds the distance from the coefficients to the optimal ones, intercepts included, and so the
        change of every score. A class is certain where its lead is larger than that.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        classes : array of shape (n_samples,)
            As by `predict`.
        certain : boolean array of shape (n_samples,)
            True where no better optimisation can change the prediction.
        """
        X = self._checked_rows(X)
        scores = self._scores(X)
        rounding = self._rounding(X, scores)
        wide = scores.astype(np.float64)
        claimed = self.certificate_
        if isinstance(claimed, MultinomialCertificate):
            second, first = np.partition(wide, -2, axis=1)[:, -2:].T
            certain = first - second > claimed.difference_bound(X) + 2 * rounding.max(axis=1)
        elif isinstance(claimed, Certificate):
            certain = np.abs(wide[:, 0]) > claimed.score_bound(X) + rounding[:, 0]
        else:
            bounds = rounding + np.column_stack([certificate.score_bound(X) for certificate in claimed])
            row, winner = np.arange(scores.shape[0]), scores.argmax(axis=1)
            least, most = wide[row, winner] - bounds[row, winner], wide + bounds
            most[row, winner] = -np.inf
            certain = least > most.max(axis=1)
        return self._winners(scores), certain


def _are_whole_numbers(y: Array) -> bool:
    kind = y.dtype.kind
    return kind in "biu" or (kind == "f" and bool((y == np.rint(y)).all()))
