"""Exports: what other programs predict with them is what the model predicts."""

import io
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import scipy.sparse

from dualfree.cli.fitting import fit_model
from dualfree.io import DataError, Objective, export_liblinear, export_onnx, load_model, read_data


def dataset(labels, n=80, d=6):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=d)
    order = np.digitize(scores, np.quantile(scores, np.linspace(0, 1, len(labels) + 1)[1:-1]))
    rows = (
        f"{labels[k]} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x))
        for k, x in zip(order, X.tolist(), strict=True)
    )
    return read_data(io.BytesIO("\n".join(rows).encode()), format="libsvm")


CASES = {
    "two classes": (["-1", "1"], "logistic"),
    "three classes": (["1", "2", "7"], "logistic"),
    "squared hinge": (["0", "1"], "squared_hinge"),
    "numbers": (["0.5", "1.5", "4", "9"], "squared"),
}


@pytest.fixture(params=[(case, b) for case in CASES for b in (False, True)], ids=str)
def fitted(request):
    case, intercept = request.param
    labels, loss = CASES[case]
    data = dataset(labels)
    return data, fit_model(data, Objective(loss, lam=1e-2, fit_intercept=intercept), seed=0).model


class TestOnnx:
    def test_same_predictions(self, fitted, tmp_path):
        data, model = fitted
        export_onnx(model, tmp_path / "m.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
        X = data.X.toarray()
        found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X}), strict=True))
        scores = model.scores(data.X)
        if model.classes is None:
            assert np.allclose(found["prediction"], scores, rtol=1e-12, atol=1e-12)
            return
        assert np.allclose(found["scores"], scores, rtol=1e-12, atol=1e-12)
        assert np.array_equal(found["label"], model.predict(scores))
        if model.objective.loss == "logistic":
            assert np.allclose(found["probabilities"], model.probabilities(scores), rtol=1e-12)

    def test_text_classes_and_names(self, tmp_path):
        data = read_data(io.BytesIO(b"a,c,t\n1,x,no\n2,y,yes\n3,x,yes\n0,y,no\n"), format="csv", target="t")
        model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
        export_onnx(model, tmp_path / "m.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
        assert session.run(["label"], {"X": data.X})[0].tolist() == model.predict(model.scores(data.X)).tolist()
        assert session.get_modelmeta().custom_metadata_map["feature_names"] == '["a", "c=x", "c=y"]'


def liblinear_scores(path, X):
    """Read the text format independently and score rows as LIBLINEAR's predict does."""
    header, _, body = path.read_text().partition("\nw\n")
    facts = dict(line.split(" ", 1) for line in header.splitlines())
    w = np.array([[float(v) for v in line.split()] for line in body.splitlines()])
    if float(facts["bias"]) >= 0:
        X = np.hstack([X, np.full((X.shape[0], 1), float(facts["bias"]))])
    return facts, X @ w


class TestLiblinear:
    def test_text_means_the_same(self, fitted, tmp_path):
        data, model = fitted
        export_liblinear(model, tmp_path / "m.model")
        facts, scores = liblinear_scores(tmp_path / "m.model", data.X.toarray())
        assert int(facts["nr_feature"]) == data.X.shape[1]
        if model.classes is None:
            assert facts["solver_type"].endswith("SVR")
            assert np.allclose(scores, model.scores(data.X), rtol=1e-12, atol=1e-12)
            return
        labels = np.array([float(c) for c in facts["label"].split()])
        two = scores.shape[1] == 1
        predicted = labels[np.where(scores[:, 0] > 0, 0, 1)] if two else labels[np.argmax(scores, axis=1)]
        assert np.array_equal(predicted, model.predict(model.scores(data.X)))

    def test_liblinear_itself_predicts_the_same(self, fitted, tmp_path):
        liblinearutil = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
        data, model = fitted
        export_liblinear(model, tmp_path / "m.model")
        theirs = liblinearutil.load_model(str(tmp_path / "m.model"))
        predicted, _, scores = liblinearutil.predict(data.y, scipy.sparse.csr_matrix(data.X), theirs, "-q")
        ours = model.scores(data.X)
        assert np.array_equal(predicted, model.predict(ours)) or np.allclose(predicted, model.predict(ours), rtol=1e-12)
        assert np.allclose(np.abs(np.array(scores)[:, : ours.shape[1]]), np.abs(ours), rtol=1e-10, atol=1e-12)

    def test_text_classes_are_refused(self, tmp_path):
        data = read_data(io.BytesIO(b"a,t\n1,no\n2,yes\n"), format="csv", target="t")
        model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
        with pytest.raises(DataError, match="LIBLINEAR knows whole numbers as classes only, the model has 'no'"):
            export_liblinear(model, tmp_path / "m.model")

    def test_zero_based_features_are_refused(self, tmp_path):
        data = read_data(io.BytesIO(b"1 0:1\n-1 1:1\n"), format="libsvm")
        model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
        with pytest.raises(DataError, match="counts features from 1"):
            export_liblinear(model, tmp_path / "m.model")
        assert not (tmp_path / "m.model").exists()


def test_old_files_can_be_exported(tmp_path):
    export_onnx(load_model(Path(__file__).parent / "files" / "model-format-1.safetensors"), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 0
