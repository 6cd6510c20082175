"""Warm starts, seeds, threads, time, progress, callbacks, metadata, Ctrl-C."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import scale

import dualfree as df
from dualfree.solvers.driver import Run


@pytest.fixture(scope="module")
def binary():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def three_classes():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


# --- warm starts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        df.LogisticRegression(solver="prox-sdca"),
        df.LinearSVC(solver="prox-sdca"),
        df.ERMClassifier(solver="prox-sdca", lam=1e-2),
        df.Ridge(solver="prox-sdca", alpha=50.0),
        df.LinearSVR(solver="prox-sdca", loss="squared_epsilon_insensitive", C=1e-2),
    ],
    ids=repr,
)
def test_a_warm_start_begins_at_the_last_dual_point(model, binary):
    X, y = binary
    model.set_params(warm_start=True, random_state=0, tol=1e-8).fit(X, y)
    cold = model.n_iter_.max()
    again = model.fit(X, y)
    assert again.n_iter_.max() == 0  # nothing left to do
    name = next(name for name in ("C", "lam", "alpha") if name in model.get_params())
    moved = model.set_params(**{name: 1.1 * getattr(model, name)}).fit(X, y)
    assert moved.trace_.gap[0] < 0.1 * moved.set_params(warm_start=False).fit(X, y).trace_.gap[0]
    assert cold > 0


def test_warm_starts_with_more_classes_other_rows_and_other_columns(three_classes):
    X, y = three_classes
    for multi_class in ("ovr", "multinomial"):
        model = df.LogisticRegression(multi_class=multi_class, warm_start=True, random_state=0, tol=1e-10).fit(X, y)
        cold = model.n_iter_.max()
        assert model.fit(X, y).n_iter_.max() <= 1
        assert model.set_params(C=1.2).fit(X, y).n_iter_.max() < cold
        fewer_rows = model.fit(X[:-5], y[:-5])  # w, for α has the wrong length
        assert np.max([c.relative_gap for c in np.atleast_1d(fewer_rows.certificate_)]) <= 1e-10
        fewer_columns = model.fit(X[:, :5], y)  # from the beginning
        expected = df.LogisticRegression(multi_class=multi_class, C=1.2, random_state=0, tol=0).fit(X[:, :5], y)
        np.testing.assert_allclose(fewer_columns.coef_, expected.coef_, atol=1e-3)
        other_classes = model.fit(X[:, :5], y == 1)
        assert other_classes.coef_.shape == (1, 5)


# --- seeds, threads, time ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_with_any_number_of_jobs(three_classes):
    X, y = three_classes
    for model in (df.LogisticRegression(multi_class="ovr"), df.LinearSVC()):
        model.set_params(random_state=3, tol=1e-3)
        one = model.fit(X, y).coef_
        np.testing.assert_array_equal(model.set_params(n_jobs=2).fit(X, y).coef_, one)
        # auto draws no numbers for data this small
        by_coordinates = model.set_params(solver="prox-sdca").fit(X, y).coef_
        assert not np.array_equal(model.set_params(random_state=4).fit(X, y).coef_, by_coordinates)
    model = df.LogisticRegression(n_jobs=2)
    np.testing.assert_array_equal(model.fit(X, y).coef_, model.fit(X, y).coef_)


def test_max_time_is_for_the_whole_fit(three_classes):
    X, y = three_classes
    for model in (df.LogisticRegression(multi_class="ovr"), df.LogisticRegression(), df.LogisticRegressionCV(Cs=3)):
        with pytest.warns(ConvergenceWarning):
            model.set_params(max_time=0.0, random_state=0).fit(X, y)
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_sklearns_solver_names_stand_for_auto(solver, binary):
    X, y = binary
    model = df.LogisticRegression(solver=solver, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, df.LogisticRegression(random_state=0).fit(X, y).coef_)


# --- progress and callbacks -------------------------------------------------------------------------------------------


def test_verbose_prints_progress(binary, three_classes, capsys):
    df.LogisticRegression(random_state=0, verbose=1).fit(*binary)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert lines[-1].startswith("[LogisticRegression] epoch ")
    assert "relative gap" in lines[-1]
    df.LinearSVC(random_state=0, verbose=1).fit(*three_classes)
    assert "[LinearSVC, class 2] epoch 0: objective" in capsys.readouterr().out
    df.LogisticRegressionCV(Cs=2, cv=2, random_state=0, verbose=1).fit(*binary)
    assert "[LogisticRegressionCV, fold 1] 2 penalties" in capsys.readouterr().out
    df.LogisticRegression(random_state=0).fit(*binary)
    assert capsys.readouterr().out == ""


class Recorder:
    """A callback that notes what it is told, and asks to stop after some evaluations."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if fitted_estimator is not None and context.task_name == "evaluation":
            self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and self.events.count("end evaluation") > self.stop_after


def test_sklearn_callbacks(binary, three_classes):
    pytest.importorskip("sklearn.callback")
    models = [
        (df.LogisticRegression(), binary),
        (df.LogisticRegression(), three_classes),
        (df.LogisticRegression(multi_class="ovr"), three_classes),
        (df.LinearSVC(), three_classes),
        (df.LogisticRegressionCV(Cs=2, cv=2), binary),
        (df.RidgeCV(cv=2), binary),
        (df.Ridge(), binary),
        (df.LinearSVR(), binary),
    ]
    for model, (X, y) in models:
        recorder = Recorder()
        model.set_params(random_state=0).set_callbacks(recorder).fit(X, y)
        begun = [event[6:] for event in recorder.events if event.startswith("begin ")]
        ended = [event[4:] for event in recorder.events if event.startswith("end ")]
        assert sorted(begun) == sorted(ended)
        assert recorder.events[0] == "setup"
        assert recorder.events[-2:] == ["end fit", "teardown"]
        assert begun.count("evaluation") > 1
        if not isinstance(model.certificate_, list):
            assert len(recorder.scores) > 1
            assert recorder.scores[-1] == pytest.approx(model.score(X, y), abs=1e-3)


def test_a_callback_can_stop_the_fit(binary):
    pytest.importorskip("sklearn.callback")
    model = df.LogisticRegression(random_state=0, solver="prox-sdca", tol=1e-12).set_callbacks(Recorder(stop_after=1))
    with pytest.warns(ConvergenceWarning, match="the run was interrupted"):
        model.fit(*binary)
    assert len(model.trace_) == 2


def test_progress_bars_of_sklearn(binary, capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    search = GridSearchCV(df.LogisticRegression(random_state=0), {"C": [0.1, 1.0]}, cv=2)
    if hasattr(search, "set_callbacks"):
        search.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(*binary)
    df.LogisticRegression(random_state=0).set_callbacks(callback.ProgressBar()).fit(*binary)
    assert "LogisticRegression - fit" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_reached(binary, monkeypatch):
    X, y = binary
    calls = []
    original = Run._one_epoch

    def interrupted(run):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(run)

    monkeypatch.setattr(Run, "_one_epoch", interrupted)
    model = df.LogisticRegression(
        random_state=0, tol=1e-12, solver="prox-sdca"
    )  # `auto` would make all steps in one call
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.certificate_.relative_gap < 1.0
    assert model.predict(X).shape == y.shape


# --- metadata ---------------------------------------------------------------------------------------------------------


def test_sample_weights_are_routed(binary):
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.1, 2.0, y.size)
    with sklearn.config_context(enable_metadata_routing=True):
        model = df.LogisticRegression(random_state=0)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"C": [0.1]}, cv=2).fit(X, y, sample_weight=weights)
        expected = df.LogisticRegression(C=0.1, random_state=0).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(search.best_estimator_.coef_, expected.coef_)
        ridge = df.Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        cross_validate(ridge, X, y, params={"sample_weight": weights}, cv=2)


# --- losses of one's own ----------------------------------------------------------------------------------------------


class LogCosh(df.Loss):
    """A regression loss that the package does not have."""

    name, task, smoothness = "log_cosh", "regression", 1.0

    @staticmethod
    def value(z, y):
        r = abs(z - y)
        return r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)

    @staticmethod
    def derivative(z, y):
        return np.tanh(z - y)


@pytest.mark.slow  # compiles for ten seconds
def test_a_loss_of_ones_own():
    X, y = load_diabetes(return_X_y=True)
    model = sklearn.clone(df.ERMRegressor(loss=LogCosh(), lam=1e-2, random_state=0)).fit(X, y / 100)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.score(X, y / 100) > 0.2
