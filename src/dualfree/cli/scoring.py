"""How well a model predicts: the usual numbers.

scikit-learn's metrics are imported where they are used: that takes a second, which ``--help`` should not cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Array
from ..io import DataError, Dataset, Model
from ..report.words import score_names


def score(model: Model, data: Dataset) -> dict[str, float | None]:
    """Return accuracy, log loss and ROC AUC, or R² and the mean absolute error; None where one is not defined.

    A row whose class the model does not know counts as wrong, and the other two numbers are then not defined.
    """
    from sklearn.metrics import log_loss, mean_absolute_error, r2_score

    if data.y is None:
        raise DataError(data.name, "it holds no target to compare with.")
    scores = model.scores(data.X)
    if model.classes is None:
        if data.y.dtype.kind != "f":
            raise DataError(data.name, f"the model predicts numbers, the target holds {data.y[0].item()!r}.")
        several = data.y.size > 1
        return {
            "r2": float(r2_score(data.y, scores[:, 0])) if several else None,
            "mae": float(mean_absolute_error(data.y, scores[:, 0])),
        }
    y = comparable_labels(model, data)
    known = bool(np.isin(y, model.classes).all())
    proba = model.probabilities(scores) if known and model.objective.loss == "logistic" else None
    return {
        "accuracy": float(np.mean(model.predict(scores) == y)),
        "log_loss": None if proba is None else float(log_loss(y, proba, labels=model.classes)),
        "roc_auc": roc_auc(model, y, scores) if known else None,
    }


def comparable_labels(model: Model, data: Dataset) -> Array:
    """Return the target in the type of the model's classes; a sentence where one is text and the other numbers."""
    y = np.asarray(data.y)
    if model.classes is None or y.dtype.kind == model.classes.dtype.kind:
        return y
    kind, found = ("numbers", "text") if model.classes.dtype.kind == "f" else ("text", "numbers")
    raise DataError(data.name, f"the model's classes are {kind}, the target holds {found} such as {y[0].item()!r}.")


def roc_auc(model: Model, y: Array, scores: Array) -> float | None:
    """Return the area under the ROC curve; for several classes the mean over those that occur."""
    from sklearn.metrics import roc_auc_score

    assert model.classes is not None
    if len(model.classes) == 2:
        positive = y == model.classes[1]
        return float(roc_auc_score(positive, scores[:, 0])) if 0 < positive.sum() < y.size else None
    areas = [
        roc_auc_score(y == c, scores[:, k]) for k, c in enumerate(model.classes.tolist()) if 0 < np.sum(y == c) < y.size
    ]
    return float(np.mean(areas)) if areas else None


def in_words(scores: dict[str, Any]) -> str:
    """Return the scores on one line."""
    return ", ".join(f"{score_names[key]} {value:.6g}" for key, value in scores.items() if value is not None)
