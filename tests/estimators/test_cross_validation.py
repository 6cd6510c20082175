"""LogisticRegressionCV and RidgeCV find what a grid search finds, with every fit certified."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.preprocessing import scale

import dualfree as df
from dualfree.estimators._solving import Settings

CS = [1e-3, 1.0, 1e-2]  # not in order


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_logistic_regression_cv_is_a_grid_search(load, multi_class):
    X, y = load(return_X_y=True)
    X = scale(X)
    exact = {"tol": 1e-12, "random_state": 0, "multi_class": multi_class}
    model = df.LogisticRegressionCV(Cs=CS, cv=3, n_jobs=2, scoring="neg_log_loss", **exact).fit(X, y)
    search = GridSearchCV(df.LogisticRegression(**exact), {"C": CS}, cv=3, scoring="neg_log_loss").fit(X, y)
    each = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(model.scores_, each, atol=1e-6)
    assert search.best_params_["C"] == model.C_
    np.testing.assert_allclose(model.coef_, search.best_estimator_.coef_, atol=1e-4)
    rows = 1 if load is load_breast_cancer else 3
    assert model.coefs_paths_.shape == (3, 3, rows, X.shape[1] + 1)
    assert model.gaps_.shape == (3, 3)
    assert model.gaps_.max() <= 1e-11
    assert model.score(X, y) == pytest.approx(search.score(X, y), abs=1e-6)


def test_ridge_cv_is_a_grid_search():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, y**2 / 100])
    alphas = [10.0, 0.01, 0.1]
    for target in (y, Y):
        model = df.RidgeCV(alphas, cv=4, n_jobs=2, tol=1e-12, random_state=0).fit(X, target)
        search = GridSearchCV(df.Ridge(tol=1e-12, random_state=0), {"alpha": alphas}, cv=4).fit(X, target)
        each = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(4)])
        np.testing.assert_allclose(model.scores_, each, atol=1e-6)
        assert model.alpha_ == search.best_params_["alpha"]
        assert model.best_score_ == pytest.approx(search.best_score_, abs=1e-6)
        np.testing.assert_allclose(model.coef_, search.best_estimator_.coef_, rtol=1e-4)


def test_leaving_one_out_chooses_as_sklearns_ridge_cv():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60], y[:60]
    alphas = np.logspace(-3, 1, 5)
    ours = df.RidgeCV(alphas, cv=LeaveOneOut(), scoring="neg_mean_squared_error", tol=0).fit(X, y)
    theirs = sklearn.linear_model.RidgeCV(alphas).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-6)


def test_paths_are_warm_started(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    starts = []
    original = Settings.solve

    def spy(self, problem, seed, start=None, *rest):
        starts.append(start)
        return original(self, problem, seed, start, *rest)

    monkeypatch.setattr(Settings, "solve", spy)
    df.LogisticRegressionCV(Cs=[1e-3, 1e-2], cv=2, random_state=0).fit(scale(X), y)
    kinds = [None if start is None else sorted(start) for start in starts]
    assert kinds == [None, ["alpha", "intercept"], None, ["alpha", "intercept"], ["intercept", "w"]]


def test_Cs_as_a_number_and_what_is_refused():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    model = df.LogisticRegressionCV(Cs=3, cv=KFold(3, shuffle=True, random_state=0), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.Cs_, [1e-4, 1.0, 1e4])
    with pytest.raises(ValueError, match="Cs must be a whole number or a list of positive, finite numbers"):
        df.LogisticRegressionCV(Cs=[1.0, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match="alphas must be a list of positive, finite numbers"):
        df.RidgeCV(alphas=[0.0]).fit(X, y)
    with pytest.raises(ValueError, match="training part of a fold has no sample of class"):
        df.LogisticRegressionCV(cv=KFold(3)).fit(X, y)  # the data are sorted by class


@pytest.mark.filterwarnings("ignore:LogisticRegressionCV stopped before its tolerance")
def test_late_folds_are_reported():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(
        ConvergenceWarning, match=r"4 of 4 fits on the folds stopped before tol=1e-10.*largest certified gap"
    ):
        df.LogisticRegressionCV(Cs=2, cv=2, max_iter=1, tol=1e-10, random_state=0).fit(X, y)


def test_metadata_reach_the_splitter_and_the_scorer():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    groups = np.arange(y.size) % 7
    weights = np.random.default_rng(0).uniform(0.1, 2.0, y.size)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(mean_squared_error, greater_is_better=False).set_score_request(sample_weight=True)
        model = df.RidgeCV(cv=GroupKFold(3), scoring=scorer, random_state=0).set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weights, groups=groups)
        folds = list(GroupKFold(3).split(X, y, groups))
        train, test = folds[0]
        reference = df.Ridge(alpha=0.1, random_state=0).fit(X[train], y[train], weights[train])
        error = mean_squared_error(y[test], reference.predict(X[test]), sample_weight=weights[test])
        assert model.scores_[0, 0] == pytest.approx(-error, rel=1e-4)
    with pytest.raises(ValueError, match=r"'groups'.*metadata routing is off"):
        df.RidgeCV(cv=GroupKFold(3)).fit(X, y, groups=groups)


def test_class_weights_are_those_of_all_data():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    counts = np.bincount(y)
    by_hand = dict(enumerate(y.size / (2 * counts)))
    models = [
        df.LogisticRegressionCV(Cs=2, cv=StratifiedKFold(2), class_weight=weights, tol=1e-10, random_state=0).fit(X, y)
        for weights in ("balanced", by_hand)
    ]
    np.testing.assert_allclose(models[0].coefs_paths_, models[1].coefs_paths_, atol=1e-6)
