"""scikit-learn estimators that fit data spread over a Dask cluster."""

from __future__ import annotations

from .._optional import require

require("distributed", "dask")  # a sentence about the extra, before an import further down fails without one

from .logistic import LogisticRegression  # noqa: E402
from .ridge import Ridge  # noqa: E402
from .svm import LinearSVC  # noqa: E402

__all__ = ["LinearSVC", "LogisticRegression", "Ridge"]
