"""scikit-learn estimators on top of the engine."""

from .erm import ERMClassifier, ERMRegressor
from .logistic import LogisticRegression
from .logistic_cv import LogisticRegressionCV
from .ridge import Ridge
from .ridge_cv import RidgeCV
from .svm import LinearSVC, LinearSVR

__all__ = [
    "ERMClassifier",
    "ERMRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Ridge",
    "RidgeCV",
]
