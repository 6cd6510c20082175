"""Models and certificates in words, for the command line and the report alike."""

from __future__ import annotations

import math
from typing import Any

from ..certificate import Certificate
from ..io import Model

score_names = {
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "roc_auc": "ROC AUC",
    "r2": "R²",
    "mae": "mean absolute error",
}


def label(value: Any) -> str:
    """Return a class as text: 1 for 1.0, and words as they are."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def column_names(model: Model) -> list[str]:
    """Return a name for each row of coefficients: what it separates from what."""
    if model.classes is None:
        return ["target"]
    if len(model.classes) == 2:
        low, high = (label(c) for c in model.classes.tolist())
        return [f"{high} against {low}"]
    return [f"{label(c)} against the rest" for c in model.classes.tolist()]


def in_words(certificate: Certificate) -> str:
    """Return what a certificate says, in one sentence."""
    if not math.isfinite(certificate.gap):
        return f"The objective is {certificate.primal:.8g}; nothing is known about its distance from the optimum."
    return (
        f"The objective is {certificate.primal:.8g}, at most {certificate.gap:.1e} above the optimum "
        f"({certificate.relative_gap:.1e} of the objective at zero)."
    )


def certificate_paragraphs(model: Model) -> list[str]:
    """Return what is certified and what follows from it."""
    if len(model.outcomes) > 1:
        return [
            f"There are {len(model.outcomes)} classes and one certificate for each against the rest. Each gap is proven from "
            "the data: no weights can lower the objective by more."
        ]
    certificate = model.outcomes[0].certificate
    paragraphs = [in_words(certificate)]
    if math.isfinite(certificate.gap):
        bound = f"‖x‖ · {certificate.distance_bound:.3g}"
        if model.objective.fit_intercept:
            known = math.isfinite(certificate.intercept_bound)
            bound = f"{bound} + {certificate.intercept_bound:.3g}" if known else "a bound that is not known"
        paragraphs.append(
            "This is proven from the data, not estimated: a dual vector shows that no weights reach less than "
            f"{certificate.dual:.10g}. It follows that the weights are at most {certificate.distance_bound:.3g} from the "
            f"optimal ones in Euclidean norm, and that the score of a row x differs from the optimum's by at most {bound}."
        )
    return paragraphs
