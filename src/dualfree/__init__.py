"""dualfree: L2-regularised linear models, trained to a certified optimum."""

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .certificate import Certificate, certify
from .losses import Loss
from .path import Path, path
from .problem import Problem
from .result import Result
from .solvers import SOLVERS, State, solve
from .status import Status
from .trace import Trace

if TYPE_CHECKING:
    from .estimators import (
        ERMClassifier,
        ERMRegressor,
        LinearSVC,
        LinearSVR,
        LogisticRegression,
        LogisticRegressionCV,
        Ridge,
        RidgeCV,
    )

__all__ = [
    "SOLVERS",
    "Certificate",
    "ERMClassifier",
    "ERMRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Loss",
    "Path",
    "Problem",
    "Result",
    "Ridge",
    "RidgeCV",
    "State",
    "Status",
    "Trace",
    "__version__",
    "certify",
    "path",
    "solve",
]


def __getattr__(name: str) -> Any:
    """Import the estimators when one is asked for: scikit-learn takes a second, which the command line need not wait."""
    if name in __all__:
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
