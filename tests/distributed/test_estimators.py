"""The estimators on a cluster agree with the local ones to the certificate, and behave as scikit-learn's do."""

import gc
import pickle
import re
import time
from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import dualfree as df
from dualfree.dask import LinearSVC, LogisticRegression, Ridge
from dualfree.dask import _base as dask_base
from dualfree.distributed import Partitions, from_array, from_libsvm

N, D = 120, 5
TOL = 1e-6

pytestmark = pytest.mark.usefixtures("client")


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(1)
    X = random.normal(size=(N, D)) + 0.3
    z = X @ random.normal(size=D) + 0.5
    y = np.where(z + random.normal(size=N) > 0, "yes", "no")
    return X, y, z + 0.1 * random.normal(size=N), random.integers(0, 4, size=N).astype(float)


def chunked(*arrays, rows=60):
    return [da.from_array(array, chunks=(rows, *array.shape[1:])) for array in arrays]


def assert_agree(model, local, tol=TOL):
    """Both are within their certificates of the one optimum."""
    certificates, others = (c if isinstance(c, list) else [c] for c in (model.certificate_, local.certificate_))
    ours, theirs = np.atleast_2d(model.coef_), np.atleast_2d(local.coef_)
    assert ours.shape == theirs.shape
    assert len(certificates) == len(others) == len(ours)
    for k, (mine, other) in enumerate(zip(certificates, others, strict=True)):
        assert mine.relative_gap <= tol
        assert abs(mine.primal - other.primal) <= mine.gap + other.gap + 1e-12
        assert np.linalg.norm(ours[k] - theirs[k]) <= mine.distance_bound + other.distance_bound
        apart = abs(np.atleast_1d(model.intercept_)[k] - np.atleast_1d(local.intercept_)[k])
        assert apart <= mine.intercept_bound + other.intercept_bound


# --- agreement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_regression_agrees(rows, intercept, weighted):
    X, y, _, s = rows
    weights = (s,) if weighted else ()
    options = {"C": 0.02, "tol": TOL, "fit_intercept": intercept, "class_weight": "balanced" if weighted else None}
    model = LogisticRegression(random_state=0, **options).fit(*chunked(X, y, *weights))
    local = df.LogisticRegression(random_state=0, **options).fit(X, y, *weights)
    assert_agree(model, local)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_iter_.shape == (1,)
    assert model.dual_gap_ == model.certificate_.gap
    assert len(model.trace_) > 0


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_agrees(rows, intercept):
    X, _, t, s = rows
    options = {"alpha": 100.0, "tol": TOL, "fit_intercept": intercept}
    model = Ridge(random_state=0, **options).fit(*chunked(X, t, s))
    assert_agree(model, df.Ridge(**options).fit(X, t, s))
    assert model.coef_.shape == (D,)
    assert isinstance(model.intercept_, float)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_svc_agrees(rows, loss):
    X, y, _, s = rows
    options = {
        "C": 0.005,
        "loss": loss,
        "tol": 1e-4 if loss == "hinge" else TOL,
        "class_weight": {"yes": 2.0, "no": 0.5},
    }
    model = LinearSVC(random_state=0, **options).fit(*chunked(X, y, s))
    local = df.LinearSVC(random_state=0, **options).fit(X, y, s)
    if loss == "squared_hinge":
        assert_agree(model, local)
    assert model.certificate_.relative_gap <= options["tol"]
    assert model.certificate_.primal == pytest.approx(local.certificate_.primal, rel=3e-4)


def test_one_model_per_class_agrees():
    X, y = load_iris(return_X_y=True)
    X, y = scale(X)[30:], y[30:]  # classes of different sizes, and partitions that lack some
    options = {"C": 0.02, "tol": 1e-4, "class_weight": {0: 3.0, 1: 1.0, 2: 0.5}}
    model = LogisticRegression(random_state=0, **options).fit(*chunked(X, y))
    local = df.LogisticRegression(multi_class="ovr", **options).fit(X, y)
    assert_agree(model, local, tol=1e-4)
    assert model.coef_.shape == (3, 4)
    assert len(model.trace_) == len(model.n_iter_) == len(model.dual_gap_) == 3
    lazy = model.predict_proba(da.from_array(X, chunks=(50, 2)))
    assert lazy.shape == (120, 3)
    np.testing.assert_allclose(lazy.compute(), local.predict_proba(X), atol=0.05)
    assert model.decision_function(da.from_array(X, chunks=(50, 4))).compute().shape == (120, 3)


# --- data of every kind -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(rows):
    return df.LogisticRegression(C=0.02, tol=TOL).fit(rows[0], rows[1])


def test_every_kind_of_data_gives_the_same_answer(rows, reference, tmp_path):
    X, y, _, _ = rows
    lazy_X, lazy_y = chunked(X, y)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(D)]).assign(answer=y)
    dd.from_pandas(frame, npartitions=2).to_parquet(tmp_path / "data")
    table = dd.read_parquet(tmp_path / "data")
    kinds = {
        "sparse blocks": (lazy_X.map_blocks(scipy.sparse.csr_array), lazy_y),
        "dataframe": (table, "answer"),
        "series": (table[[f"x{k}" for k in range(D)]], table["answer"]),
        "delayed": ([dask.delayed((X[a : a + 60], y[a : a + 60])) for a in (0, 60)],),
        "partitions": (from_array(lazy_X, lazy_y),),
        "memory": (X, y),
        "sparse memory": (scipy.sparse.csr_matrix(X), y),
    }
    for kind, data in kinds.items():
        model = LogisticRegression(C=0.02, tol=1e-3, random_state=0).fit(*data)
        assert_agree(model, reference, tol=1e-3)
        assert hasattr(model, "feature_names_in_") == (kind in ("dataframe", "series")), kind
    assert model.n_features_in_ == D


def test_libsvm_files(rows, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y, _, _ = rows
    X = np.round(X, 6)
    for k in range(2):
        part = slice(60 * k, 60 * (k + 1))
        dump_svmlight_file(X[part], y[part] == "yes", str(tmp_path / f"{k}.svm"), zero_based=False)
    model = LogisticRegression(C=0.02, tol=1e-3, random_state=0).fit(from_libsvm(tmp_path / "*.svm"))
    assert_agree(model, df.LogisticRegression(C=0.02).fit(X, y == "yes"), tol=1e-3)


# --- predictions ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(client, rows):
    return LogisticRegression(C=0.02, tol=1e-3, random_state=0).fit(*chunked(rows[0], rows[1]))


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_predictions_are_lazy_for_dask_and_eager_for_arrays(fitted, rows, method):
    X = rows[0]
    eager = getattr(fitted, method)(X)
    assert isinstance(eager, np.ndarray)
    kinds = {
        "array": da.from_array(X, chunks=(50, 2)),
        "sparse": da.from_array(X, chunks=(50, D)).map_blocks(scipy.sparse.csr_matrix),
        "unknown": (lambda Z: Z[Z[:, 0] > -np.inf])(da.from_array(X, chunks=(50, D))),
    }
    for kind, lazy in kinds.items():
        answer = getattr(fitted, method)(lazy)
        assert isinstance(answer, da.Array), kind
        assert answer.dtype == eager.dtype
        assert answer.ndim == eager.ndim
        computed = answer.compute()
        assert computed.dtype == eager.dtype
        (np.testing.assert_array_equal if method == "predict" else np.testing.assert_allclose)(computed, eager)


def test_predictions_for_frames_look_at_names(rows):
    frame = pd.DataFrame(rows[0], columns=list("abcde"))
    lazy = dd.from_pandas(frame.assign(t=rows[2]), npartitions=3)
    model = Ridge(alpha=100.0, tol=1e-3, random_state=0).fit(lazy, "t")
    assert model.feature_names_in_.tolist() == list("abcde")
    answer = model.predict(lazy[list("abcde")])
    assert isinstance(answer, da.Array)
    np.testing.assert_allclose(answer.compute(), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(lazy[list("edcba")])
    with pytest.raises(ValueError, match="X has 6 features, but Ridge is expecting 5"):
        model.predict(lazy)
    with pytest.raises(ValueError, match="X has 4 features, but Ridge is expecting 5"):
        model.predict(da.zeros((10, 4), chunks=5))


def test_scores(fitted, rows):
    X, y, t, s = rows
    lazy = chunked(X, y, s)
    score = fitted.score(*lazy)
    assert isinstance(score, da.Array)
    assert float(score) == pytest.approx(fitted.score(X, y, s))
    assert isinstance(fitted.score(X, y), float)
    ridge = Ridge(alpha=100.0, tol=1e-3, random_state=0).fit(*chunked(X, t))
    assert float(ridge.score(*chunked(X, t, s, rows=33))) == pytest.approx(ridge.score(X, t, s))
    parts = [dask.delayed((X[a : a + 60], t[a : a + 60])) for a in (0, 60)]
    assert float(ridge.score(parts)) == pytest.approx(ridge.score(X, t))


# --- as scikit-learn expects ------------------------------------------------------------------------------------------


def test_clones_and_pickles(client, fitted, rows):
    model = LogisticRegression(C=0.02, tol=1e-2, class_weight={"no": 2.0}, client=client)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert twin.client is client
    assert twin.class_weight is not model.class_weight
    assert not hasattr(clone(fitted), "coef_")
    fitted_twin = pickle.loads(pickle.dumps(clone(model).fit(*chunked(rows[0], rows[1]))))
    assert fitted_twin.client is None
    assert fitted_twin.predict(rows[0]).shape == (N,)
    assert is_classifier(model)
    assert is_regressor(Ridge())


def test_a_client_that_is_not_the_current_one(client, rows):
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as other:
        model = Ridge(client=other, max_rounds=1, tol=1.0).fit(*chunked(rows[0], rows[2]))
    assert model.n_features_in_ == D


def test_the_fitted_model_needs_no_cluster(fitted, rows):
    local = fitted.to_local()
    assert type(local) is df.LogisticRegression
    np.testing.assert_array_equal(local.predict_proba(rows[0]), fitted.predict_proba(rows[0]))
    classes, certain = local.certified_predict(rows[0])
    assert certain.mean() > 0.5
    np.testing.assert_array_equal(classes, fitted.predict(rows[0]))


def test_the_same_seed_gives_the_same_bits(fitted, rows):
    again = LogisticRegression(C=0.02, tol=1e-3, random_state=0).fit(*chunked(rows[0], rows[1]))
    assert again.coef_.tobytes() == fitted.coef_.tobytes()
    measured = LogisticRegression(C=0.02, tol=1e-3, random_state=0, local_passes="measured")
    measured.fit(*chunked(rows[0], rows[1]))
    again.set_params(local_passes=measured.local_passes_).fit(*chunked(rows[0], rows[1]))
    assert again.coef_.tobytes() == measured.coef_.tobytes()


def test_stopping_early_is_said(rows):
    with pytest.warns(ConvergenceWarning, match=r"Ridge stopped before its tolerance: .*gap reached"):
        model = Ridge(max_rounds=1).fit(*chunked(rows[0], rows[2]))
    assert model.certificate_.gap > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": -1.0}, "'C' parameter"),
        ({"tol": "small"}, "'tol' parameter"),
        ({"class_weight": "even"}, "'class_weight' parameter"),
        ({"max_rounds": 0}, "'max_rounds' parameter"),
        ({"local_passes": "often"}, "'local_passes' parameter"),
        ({"client": "tcp://somewhere"}, r"client must be a distributed\.Client"),
    ],
)
def test_bad_parameters(rows, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LogisticRegression(**parameters).fit(*chunked(rows[0], rows[1]))


def test_bad_data(rows):
    X, y, _, _ = rows
    spoiled = X.copy()
    spoiled[70, 3] = np.nan
    with pytest.raises(ValueError, match=r"^Partition 1: X contains NaN \(row 10, column 3\)"):
        LogisticRegression().fit(*chunked(spoiled, y))
    with pytest.raises(ValueError, match="at least two classes, all partitions hold one class only: 'no'"):
        LogisticRegression().fit(*chunked(X, np.full(N, "no")))
    with pytest.raises(ValueError, match="The weights leave no sample of class number 1"):
        LogisticRegression().fit(*chunked(X, y, (y == "no").astype(float)))
    with pytest.raises(ValueError, match="y is missing"):
        LogisticRegression().fit(chunked(X)[0])
    with pytest.raises(ValueError, match="part of the partitions already"):
        LogisticRegression().fit([dask.delayed((X, y))], y)
    with pytest.raises(TypeError, match=r"got the path 'data\.svm'.*from_libsvm"):
        LogisticRegression().fit("data.svm", y)
    with pytest.raises(TypeError, match="X is one delayed value"):
        LogisticRegression().fit(dask.delayed(X), y)


@pytest.fixture(scope="module")
def one_worker():
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@pytest.mark.slow
@pytest.mark.usefixtures("one_worker")  # data in memory become one partition: thousands of small fits, no communication
@parametrize_with_checks([LogisticRegression(tol=0), LinearSVC(tol=0), Ridge(tol=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_progress_and_checkpoints(rows, tmp_path, capsys):
    X, y = chunked(rows[0], rows[1])
    options = {"C": 0.02, "tol": 1e-3, "random_state": 0}
    first = LogisticRegression(checkpoint=tmp_path / "point", verbose=1, **options).fit(X, y)
    assert re.search(r"round \d+  relative gap", capsys.readouterr().err)
    assert (tmp_path / "point").exists()
    again = LogisticRegression(checkpoint=str(tmp_path / "point"), **options).fit(X, y)
    assert again.certificate_.relative_gap <= 1e-3
    assert again.n_iter_ >= first.n_iter_  # the rounds before the checkpoint count
    with pytest.raises(ValueError, match="belongs to another problem"):
        LogisticRegression(checkpoint=tmp_path / "point", **{**options, "C": 1.0}).fit(X, y)
    three = da.from_array(np.arange(N) % 3, chunks=60)
    with pytest.warns(ConvergenceWarning):
        LogisticRegression(checkpoint=tmp_path / "classes", max_rounds=1, tol=0).fit(X, three)
    assert sorted(path.name for path in tmp_path.glob("classes*")) == ["classes.0", "classes.1", "classes.2"]


def test_ctrl_c_keeps_the_best_point(rows, monkeypatch):
    """The solver returns its best point after Ctrl-C; an estimator keeps it and passes the interrupt on."""
    real = dask_base.solve

    def interrupted(*arguments, **options):
        return replace(real(*arguments, **options), status=df.Status.INTERRUPTED)

    monkeypatch.setattr(dask_base, "solve", interrupted)
    model = Ridge(alpha=100.0, tol=0.1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*chunked(rows[0], rows[2]))
    assert model.predict(rows[0]).shape == (N,)
    several = LogisticRegression(C=0.02, tol=0.1)
    with pytest.raises(KeyboardInterrupt):
        several.fit(rows[0], np.arange(N) % 3)
    assert not hasattr(several, "coef_")


def test_nothing_is_left_on_the_cluster(client, rows):
    partitions = from_array(*chunked(rows[0], rows[1]))
    kept = Partitions(client.compute(partitions.blocks))
    LogisticRegression(C=0.02, tol=0.1).fit(kept)
    assert all(block.status == "finished" for block in kept.blocks)  # what the user holds stays
    before = set(client.who_has())
    gc.disable()  # the workers' memory must not wait for Python's garbage collection
    try:
        LogisticRegression(C=0.02, tol=1e-3, random_state=0).fit(*chunked(rows[0], rows[1]))
        deadline = time.monotonic() + 5
        while (left := set(client.who_has()) - before) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        gc.enable()
    assert not left
