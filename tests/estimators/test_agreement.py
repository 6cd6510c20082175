"""Coefficients agree with scikit-learn's most exact solvers, on real data (benchmarks/estimator_agreement.py has the table)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

import dualfree as df

EXACT = {"tol": 0, "random_state": 0}
LOADERS = {"breast_cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def data(name, raw=False):
    X, y = LOADERS[name](return_X_y=True)
    if name == "digits":
        X, y = X[y < 4], y[y < 4]
    return (X if raw else scale(X)), y


def weights_for(y):
    """Whole numbers from 0 to 3, every class kept."""
    weights = np.random.default_rng(0).integers(0, 4, y.size).astype(float)
    weights[np.unique(y, return_index=True)[1]] = 1.0
    return weights


def in_numbers(class_weight, y, weights):
    """ "balanced" as a dictionary: before version 1.7 scikit-learn did not count rows by their weights."""
    if class_weight is None:
        return None
    counts = np.bincount(y, weights=weights)
    return dict(enumerate(counts.sum() / (counts.size * counts)))


def assert_same(ours, theirs, tol=1e-6):
    reference = np.atleast_2d(theirs.coef_)
    assert np.abs(np.atleast_2d(ours.coef_) - reference).max() <= tol * max(1.0, np.abs(reference).max())
    if ours.fit_intercept:
        b, c = np.ravel(ours.intercept_), np.ravel(theirs.intercept_)
        if b.size > 1 and isinstance(theirs, linear_model.LogisticRegression):
            b, c = b - b.mean(), c - c.mean()  # softmax: a common constant means nothing
        assert np.abs(b - c).max() <= tol * max(1.0, np.abs(c).max())


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("name", "raw"), [("breast_cancer", True), ("breast_cancer", False), ("wine", True), ("digits", False)]
)
def test_logistic_regression(name, raw, intercept, class_weight):
    X, y = data(name, raw)
    parameters = {"fit_intercept": intercept, "class_weight": class_weight}
    reference = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-13, max_iter=1000, **parameters)
    for weights, matrix in ((None, X), (weights_for(y), scipy.sparse.csr_matrix(X))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newton-cholesky says that rounding ends its line search
            reference.set_params(class_weight=in_numbers(class_weight, y, weights)).fit(X, y, sample_weight=weights)
        ours = df.LogisticRegression(**parameters, **EXACT).fit(matrix, y, sample_weight=weights)
        assert_same(ours, reference)
        np.testing.assert_allclose(ours.predict_proba(matrix), reference.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("class_weight", [None, {0: 0.5, 1: 2.0}])
def test_one_model_per_class_is_what_sklearns_wrapper_fits(class_weight):
    X, y = data("wine")
    binary = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-13, max_iter=1000)
    reference = OneVsRestClassifier(binary).fit(X, y)
    ours = df.LogisticRegression(multi_class="ovr", n_jobs=2, **EXACT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, np.vstack([e.coef_ for e in reference.estimators_]), atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    if class_weight is not None:
        # a class's weight counts in its own model only
        weighted = df.LogisticRegression(multi_class="ovr", class_weight=class_weight, **EXACT).fit(X, y)
        np.testing.assert_allclose(weighted.coef_[2], ours.coef_[2], atol=1e-9)
        assert np.abs(weighted.coef_[1] - ours.coef_[1]).max() > 1e-2


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
def test_linear_svc(name, loss, class_weight):
    # LIBLINEAR penalises the intercept: the comparison is without one
    X, y = data(name)
    parameters = {"fit_intercept": False, "class_weight": class_weight, "loss": loss}
    reference = svm.LinearSVC(dual=loss == "hinge", tol=1e-10, max_iter=100000, random_state=0, **parameters)
    for weights, matrix in ((None, X), (weights_for(y), scipy.sparse.csc_matrix(X))):
        reference.set_params(class_weight=in_numbers(class_weight, y, weights)).fit(X, y, sample_weight=weights)
        assert_same(df.LinearSVC(**parameters, **EXACT).fit(matrix, y, sample_weight=weights), reference)


@pytest.mark.parametrize("raw", [False, True])
def test_hinge_with_an_intercept_is_at_least_as_good_as_libsvm(raw):
    # LIBSVM does not penalise the intercept; its kernel is float32, so that it ends a little above the optimum
    X, y = data("breast_cancer", raw)
    weights = weights_for(y)
    C = 1e-3 if raw else 1.0
    ours = df.LinearSVC(loss="hinge", C=C, tol=1e-10, random_state=0).fit(X, y, sample_weight=weights)
    reference = svm.SVC(kernel="linear", C=C, tol=1e-10).fit(X, y, sample_weight=weights)

    def objective(model):
        margins = np.where(y == 1, 1, -1) * (X @ model.coef_.ravel() + model.intercept_)
        return C * weights @ np.maximum(0, 1 - margins) + 0.5 * np.sum(model.coef_**2)

    assert objective(ours) <= objective(reference) * (1 + 1e-12)
    assert_same(ours, reference, tol=1e-4)
    assert ours.certificate_.relative_gap < 1e-9


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge(intercept):
    X, y = load_diabetes(return_X_y=True)
    for weights, matrix in ((None, X), (weights_for(y), scipy.sparse.csr_matrix(X))):
        reference = linear_model.Ridge(alpha=0.1, fit_intercept=intercept, solver="svd").fit(X, y, weights)
        assert_same(df.Ridge(alpha=0.1, fit_intercept=intercept, **EXACT).fit(matrix, y, weights), reference)


def test_ridge_with_several_targets_and_penalties():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, X[:, 0] * 100 + y, y**2 / 100])
    alphas = np.array([0.1, 1.0, 10.0])
    reference = linear_model.Ridge(alpha=alphas, solver="svd").fit(X, Y)
    ours = df.Ridge(alpha=alphas, n_jobs=2, **EXACT).fit(X, Y)
    assert_same(ours, reference)
    assert ours.coef_.shape == (3, 10)
    assert ours.predict(X).shape == (442, 3)
    assert len(ours.certificate_) == 3
    with pytest.raises(ValueError, match="Number of targets and number of penalties do not correspond: 2 != 3"):
        df.Ridge(alpha=[1.0, 2.0]).fit(X, Y)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_svr(loss):
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    parameters = {"epsilon": 10.0, "C": 10.0, "loss": loss, "fit_intercept": False}
    reference = svm.LinearSVR(
        dual=loss == "epsilon_insensitive", tol=1e-10, max_iter=1000000, random_state=0, **parameters
    )
    for weights in (None, weights_for(y)):
        reference.fit(X, y, sample_weight=weights)
        assert_same(df.LinearSVR(**parameters, **EXACT).fit(X, y, sample_weight=weights), reference)


def test_erm_is_the_mean_loss():
    X, y = data("breast_cancer")
    weights = weights_for(y)
    lam = 1e-2
    ours = df.ERMClassifier(lam=lam, **EXACT).fit(X, y, sample_weight=weights)
    same = df.LogisticRegression(C=1 / (lam * weights.sum()), **EXACT).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, same.coef_, atol=1e-9)
    X, y = load_diabetes(return_X_y=True)
    ours = df.ERMRegressor(lam=1e-3, **EXACT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, df.Ridge(alpha=1e-3 * y.size, **EXACT).fit(X, y).coef_, atol=1e-6)
