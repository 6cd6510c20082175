"""scikit-learn's own battery of checks, with an empty list of expected failures."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dualfree as df

ESTIMATORS = [
    df.LogisticRegression(),
    df.LogisticRegression(multi_class="ovr", class_weight="balanced"),
    df.LogisticRegressionCV(Cs=3, cv=3),
    df.LinearSVC(),
    df.LinearSVC(loss="hinge"),
    df.ERMClassifier(),
    df.Ridge(),
    df.RidgeCV(),
    df.LinearSVR(),
    df.ERMRegressor(),
]


@parametrize_with_checks(ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)
