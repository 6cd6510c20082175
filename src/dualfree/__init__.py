"""dualfree: L2-regularised linear models, trained to a certified optimum."""

from ._version import __version__
from .certificate import Certificate, certify
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
from .losses import Loss
from .path import Path, path
from .problem import Problem
from .result import Result
from .solvers import SOLVERS, State, solve
from .status import Status
from .trace import Trace

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
