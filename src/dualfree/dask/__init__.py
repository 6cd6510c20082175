"""scikit-learn estimators that fit data spread over a Dask cluster."""

from __future__ import annotations

from .logistic import LogisticRegression
from .ridge import Ridge
from .svm import LinearSVC

__all__ = ["LinearSVC", "LogisticRegression", "Ridge"]
