"""Frames, sparse formats, 64-bit indices, float32, read-only memory: in as they are, names kept, no silent copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualfree as df
from dualfree.estimators import _solving
from dualfree.losses import Huber

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_names(library):
    frames = pytest.importorskip(library)
    names = [f"column {j}" for j in range(X.shape[1])]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    labels = frames.Series(np.where(Y == 1, "benign", "malignant"))
    model = df.LogisticRegression(random_state=0).fit(frame, labels)
    assert model.feature_names_in_.tolist() == names
    assert model.classes_.tolist() == ["benign", "malignant"]
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame))
    assert model.certified_predict(frame)[1].any()
    reordered = frame[names[::-1]]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(reordered)


def test_pipelines_with_set_output():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    pipeline = make_pipeline(
        make_column_transformer((StandardScaler(), ["c0", "c1"]), verbose_feature_names_out=False),
        df.LogisticRegression(random_state=0),
    ).set_output(transform="pandas")
    pipeline.fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == ["c0", "c1"]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("container", ["matrix", "array"])
@pytest.mark.parametrize("model", [df.LogisticRegression(), df.LinearSVC(), df.LogisticRegression(multi_class="ovr")])
def test_sparse_formats(kind, container, model):
    sparse = getattr(scipy.sparse, f"{kind}_{container}")(np.where(np.abs(X) > 1, X, 0.0))
    y = Y if model.__class__ is df.LinearSVC else Y + (X[:, 0] > 1)
    model.set_params(tol=1e-10, random_state=0)
    dense = model.fit(sparse.toarray(), y).coef_
    np.testing.assert_allclose(model.fit(sparse, y).coef_, dense, atol=1e-3)
    assert model.predict(sparse).shape == y.shape


def test_64_bit_indices_are_taken_as_they_are():
    matrix = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
    expected = df.LogisticRegression(tol=1e-10, random_state=0).fit(matrix, Y).coef_
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    model = df.LogisticRegression(tol=1e-10, random_state=0)
    np.testing.assert_array_equal(model.fit(matrix, Y).coef_, expected)
    assert matrix.indices.dtype == np.int64
    labels = Y + (X[:, 0] > 1)
    assert model.fit(matrix, labels).certificate_.relative_gap <= 1e-10


@pytest.mark.parametrize(
    "model",
    [
        df.LogisticRegression(),
        df.LogisticRegression(multi_class="ovr"),
        df.LinearSVC(),
        df.ERMClassifier(lam=0.01),
        df.Ridge(),
        df.LinearSVR(),
        df.ERMRegressor(lam=0.01),
    ],
    ids=repr,
)
@pytest.mark.parametrize("sparse", [False, True])
def test_float32_stays_float32(model, sparse, monkeypatch):
    X32 = scipy.sparse.csr_matrix(X.astype(np.float32)) if sparse else X.astype(np.float32)
    seen = []
    original = _solving.Settings.solve
    monkeypatch.setattr(
        _solving.Settings, "solve", lambda self, p, *a, **k: seen.append(p.X) or original(self, p, *a, **k)
    )
    y = Y + (X[:, 0] > 1) if isinstance(model, df.LogisticRegression) else Y
    model.set_params(random_state=0).fit(X32, y)
    assert all(matrix.dtype == np.float32 for matrix in seen)
    if not sparse:
        assert all(np.shares_memory(matrix, X32) for matrix in seen)  # not even copied
    assert model.coef_.dtype == np.float32
    assert np.asarray(model.intercept_).dtype == np.float32
    double = model.fit(X32.astype(np.float64), y)
    assert double.coef_.dtype == np.float64


def test_grid_search_in_processes_on_read_only_memory():
    search = GridSearchCV(df.LogisticRegression(random_state=0), {"C": [0.01, 1.0]}, n_jobs=2, cv=3)
    X_big = np.tile(X, (10, 1))  # joblib maps what is larger than 1 MB, read-only
    X_big.setflags(write=False)
    search.fit(X_big, np.tile(Y, 10))
    assert search.best_estimator_.certificate_.relative_gap <= 1e-6


def test_integers_and_lists():
    model = df.Ridge(random_state=0).fit([[1, 2], [3, 4], [5, 7]], [1, 2, 3])
    assert model.coef_.dtype == np.float64
    X_d, y_d = load_diabetes(return_X_y=True)
    assert df.Ridge(random_state=0).fit(X_d, y_d[:, None]).coef_.shape == (1, 10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": -1.0}, "The 'C' parameter of LogisticRegression must be a float in the range"),
        ({"C": np.inf}, "The 'C' parameter of LogisticRegression must be a float in the range"),
        ({"tol": -1e-3}, "The 'tol' parameter of LogisticRegression"),
        ({"solver": "newton"}, "The 'solver' parameter of LogisticRegression must be a str among"),
        ({"multi_class": "crammer_singer"}, "The 'multi_class' parameter"),
        ({"max_iter": 0}, "The 'max_iter' parameter"),
        ({"class_weight": "equal"}, "The 'class_weight' parameter"),
    ],
)
def test_bad_parameters_are_refused_in_sklearns_words(change, message):
    with pytest.raises(ValueError, match=message):
        df.LogisticRegression(**change).fit(X, Y)


def test_bad_input_is_refused_in_sklearns_words():
    model = df.LogisticRegression()
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(np.full_like(X, np.nan), Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[:-1])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="at least 2 classes in the data, but the data contains only one class"):
        model.fit(X, np.zeros(Y.size))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.fit(X, Y, sample_weight=-np.ones(Y.size))
    with pytest.raises(ValueError, match="The weights leave no sample of class"):
        model.fit(X, Y, sample_weight=Y)
    with pytest.raises(ValueError, match="The weights leave no sample of class"):
        model.fit(X, Y + (X[:, 0] > 1), sample_weight=Y)
    with pytest.raises(ValueError, match=r"'liblinear' solver does not support multiclass.*multi_class='ovr'"):
        df.LogisticRegression(solver="liblinear").fit(X, Y + (X[:, 0] > 1))
    with pytest.raises(ValueError, match="solver 'dfsdca' solves binary models only"):
        df.LogisticRegression(solver="dfsdca").fit(X, Y + (X[:, 0] > 1))
    with pytest.raises(ValueError, match="loss must be a classification loss, got Huber"):
        df.ERMClassifier(Huber()).fit(X, Y)
