"""scikit-learn's own battery of checks, with no expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualfree.estimators import (
    ERMClassifier,
    ERMRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeCV,
)

# The checks of sample weights compare two fits to 7 digits. Two different runs of a randomised solver agree that far only if
# each is solved that far: tol=0 asks for all digits. (scikit-learn does the same with its own estimators.)
ESTIMATORS = [
    LogisticRegression(tol=0),
    LogisticRegression(tol=0, multi_class="ovr", class_weight="balanced"),
    LogisticRegressionCV(tol=0, Cs=3, cv=3),
    LinearSVC(tol=0),
    LinearSVC(tol=0, loss="hinge"),
    ERMClassifier(tol=0, lam=1e-2),
    Ridge(tol=0),
    RidgeCV(tol=0, cv=3),
    LinearSVR(tol=0),
    LinearSVR(tol=0, loss="squared_epsilon_insensitive"),
    ERMRegressor(tol=0, lam=1e-2),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: {})
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)
