"""What the classifiers share: classes and their weights over all partitions, one problem per class, decisions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from .._checks import Array
from ..distributed.inputs.labels import label_blocks
from ..distributed.inputs.survey import Survey
from ._base import DaskModel, Target
from ._predicting import predict_blocks


class DaskClassifier(ClassifierMixin, DaskModel):  # type: ignore[misc]
    """Base class of the classifiers: one problem for two classes, one against the rest for each of more."""

    _task = "classification"
    score = DaskModel.score  # scikit-learn's mixin has one that would compute the predictions on the client
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DaskModel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _targets(self, client: Any, blocks: list[Any], found: Survey) -> list[Target]:
        assert found.classes is not None
        assert found.class_weights is not None
        local, count = self._local(), found.classes.size
        every = np.arange(count)
        weights = local._class_weights(found.classes, every, found.class_weights)
        local._check_every_class(every, found.class_weights * weights, count)
        _, factor = local._loss()
        lam = local._penalty(np.broadcast_to(1.0, found.n_rows))
        targets = []
        for positive in [1] if count == 2 else range(count):
            # One against the rest, a class's weight counts in its own problem only, as in the local estimators.
            costs = factor * (weights if count == 2 else np.where(every == positive, weights, 1.0))
            labelled = label_blocks(client, blocks, found.classes, costs, positive)
            targets.append(Target(f"class {found.classes.tolist()[positive]!r}", labelled, lam))
        return targets

    def _set_coefficients(self, coef: Array, intercept: Array) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def decision_function(self, X: Any) -> Any:
        """Return the score x·w + b of each row, with more than two classes one per class; lazily for dask collections.

        Parameters
        ----------
        X : dask array, dask dataframe, or data in memory
            Samples.

        Returns
        -------
        scores : dask array or array of shape (n_samples,) or (n_samples, n_classes)
            Positive scores are for ``classes_[1]``; with more classes the largest one wins.
        """
        local = self.to_local()
        width = None if local.classes_.size == 2 else local.classes_.size
        return predict_blocks(local, "decision_function", X, np.dtype(np.float64), width)
