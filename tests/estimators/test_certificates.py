"""What the fitted attributes claim is true: gaps, certain predictions, warnings."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import dualfree as df
from dualfree.multinomial import MultinomialCertificate


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


LOOSE = [
    (df.LogisticRegression(), breast_cancer),
    (df.LogisticRegression(), wine),
    (df.LogisticRegression(multi_class="ovr", solver="prox-sdca"), wine),
    (df.LinearSVC(C=0.01), breast_cancer),
    (df.LinearSVC(C=0.01, fit_intercept=False, solver="prox-sdca"), wine),
    (df.LinearSVC(loss="hinge", C=0.01, solver="prox-sdca", fit_intercept=False), breast_cancer),
    (df.ERMClassifier(loss="smoothed_hinge", lam=0.01, solver="dfsdca"), breast_cancer),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("model", "load"), LOOSE, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_certain_predictions_are_those_of_the_optimum(model, load, dtype):
    X, y = load()
    X = X.astype(dtype)
    exact = clone(model).set_params(tol=0, solver="auto", random_state=0, max_iter=5000).fit(X.astype(float), y)
    shares = []
    for tol in (1e-1, 1e-2, 1e-3, 1e-5):
        loose = clone(model).set_params(tol=tol, random_state=0).fit(X, y)
        predictions, certain = loose.certified_predict(X)
        np.testing.assert_array_equal(predictions, loose.predict(X))
        np.testing.assert_array_equal(predictions[certain], exact.predict(X.astype(float))[certain])
        shares.append(certain.mean())
    assert shares[-1] > 0.5  # the claim is not empty
    assert shares[0] < 1.0


@pytest.mark.parametrize("model", [df.Ridge(alpha=0.1), df.LinearSVR(C=10.0, epsilon=5.0, fit_intercept=False)])
def test_certain_regression_predictions_are_within_their_bounds(model):
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    exact = clone(model).set_params(tol=0, random_state=0).fit(X, y).predict(X)
    for tol in (1e-1, 1e-3, 1e-5, 1e-12):
        loose = clone(model).set_params(tol=tol, random_state=0).fit(X, y)
        for rtol, atol in ((1e-3, 0.0), (0.0, 0.5), (0.1, 0.1)):
            predictions, certain = loose.certified_predict(X, rtol=rtol, atol=atol)
            allowed = atol + rtol * np.abs(predictions)
            assert np.all(np.abs(predictions - exact)[certain] <= allowed[certain])
    assert certain.mean() > 0.5


def test_attributes_of_a_fit():
    X, y = breast_cancer()
    model = df.LogisticRegression(tol=1e-8, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-8
    assert model.dual_gap_ == model.certificate_.gap
    assert model.n_iter_.shape == (1,)
    assert len(model.trace_) > 1
    assert model.dual_coef_.shape == (1, y.size)
    np.testing.assert_allclose(model.coef_, model.C * model.dual_coef_ @ X, rtol=1e-2)

    X, y = wine()
    for multi_class, kind in (("ovr", list), ("multinomial", MultinomialCertificate)):
        model = df.LogisticRegression(multi_class=multi_class, tol=1e-10, random_state=0).fit(X, y)
        assert isinstance(model.certificate_, kind)
        assert model.dual_coef_.shape == (3, y.size)
        assert np.max(model.dual_gap_) < 1e-9
        np.testing.assert_allclose(model.coef_, model.C * model.dual_coef_ @ X, atol=1e-4)


def test_the_certificate_of_float32_coefficients_is_that_of_the_rounded_ones():
    X, y = breast_cancer()
    model = df.LogisticRegression(tol=1e-9, random_state=0).fit(X.astype(np.float32), y)
    problem = df.Problem(X.astype(np.float32), y, lam=1 / y.size, fit_intercept=True)
    exact = df.solve(problem, tol=0, random_state=0)
    primal = problem.primal(model.coef_[0].astype(float), float(model.intercept_[0]))
    assert model.coef_.dtype == np.float32
    assert primal - exact.certificate.primal <= model.certificate_.gap <= 1e-9 * problem.at_zero
    with pytest.warns(ConvergenceWarning, match="coef_ is float32 like X.*pass X as float64"):
        df.LogisticRegression(tol=1e-18, random_state=0).fit(X.astype(np.float32), y)
    X, y = wine()
    model = df.LogisticRegression(tol=1e-9, random_state=0).fit(X.astype(np.float32), y)
    assert model.certificate_.relative_gap <= 1e-9


def test_a_warning_states_the_gap_and_what_to_do():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=2 was reached.*gap reached is [\d.e+-]+ of.*Increase max_iter"
    ):
        model = df.LinearSVC(max_iter=2, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap > 1e-6
    with pytest.warns(ConvergenceWarning, match=r"max_time=0 seconds were used up.*Increase max_time"):
        df.LinearSVC(max_time=0.0, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="in 3 of 3 problems"):
        df.LinearSVC(max_iter=1, random_state=0, tol=1e-12).fit(*wine())
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached") as caught:
        df.LogisticRegression(max_iter=1, random_state=0).fit(*wine())
    assert caught[0].filename == __file__  # the warning points at the caller's line


def test_no_warning_where_there_is_nothing_to_say():
    X, y = breast_cancer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        df.LogisticRegression(random_state=0).fit(X, y)
        df.LogisticRegression(random_state=0, tol=0).fit(X, y)  # all that floating point can give
        df.LogisticRegression(random_state=0, tol=0).fit(*wine())
        df.Ridge(random_state=0).fit(X, np.full(y.size, 3.0))  # a constant target
        df.LinearSVR(random_state=0).fit(X, np.zeros(y.size))


def test_pickled_models_predict_the_same_and_keep_their_certificates():
    X, y = wine()
    for model in (df.LogisticRegression(random_state=0), df.LinearSVC(random_state=0)):
        again = pickle.loads(pickle.dumps(model.fit(X, y)))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.certificate_ == model.certificate_
        assert len(again.trace_) == len(model.trace_)
