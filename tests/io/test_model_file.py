"""Model files: what is written comes back; what is old, cut off, foreign or hostile gives a sentence."""

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from dualfree.cli.fitting import fit_model
from dualfree.io import DataError, Objective, load_model, read_data, save_model
from dualfree.io.model_file import FORMAT_VERSION

FORMAT_1 = Path(__file__).parent / "files" / "model-format-1.safetensors"
TEXT = b"colour,size,kind\nred,1,u\nblue,2,v\nred,3,w\nred,2,u\nblue,0,v\nred,5,w\n"


@pytest.fixture(scope="module")
def data():
    return read_data(io.BytesIO(TEXT), format="csv", target="kind")


@pytest.fixture(scope="module")
def model(data):
    return fit_model(data, Objective("logistic", lam=0.01, fit_intercept=True), seed=0).model


@pytest.fixture
def written(model, tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(model, path)
    return path


def contents(path):
    with safe_open(path, framework="numpy") as file:
        keys = file.keys()
        return {key: file.get_tensor(key) for key in keys}, dict(file.metadata())


class TestRoundTrip:
    def test_everything_comes_back(self, model, written):
        again = load_model(written)
        for name in ("coef", "intercept", "alpha", "classes"):
            assert np.array_equal(getattr(again, name), getattr(model, name))
        for name in ("objective", "encoding", "training", "outcomes", "version", "intact"):
            assert getattr(again, name) == getattr(model, name)

    def test_infinite_numbers_survive(self, model, tmp_path):
        first = model.outcomes[0]
        unknown = replace(first, certificate=replace(first.certificate, intercept_bound=np.inf))
        save_model(replace(model, outcomes=(unknown, *model.outcomes[1:])), tmp_path / "m.safetensors")
        assert load_model(tmp_path / "m.safetensors").outcomes[0] == unknown

    def test_a_failed_write_leaves_the_old_file(self, model, written, monkeypatch):
        before = written.read_bytes()

        def broken(*args, **kwargs):
            Path(args[1]).write_bytes(b"half of it")
            raise OSError("no space left on device")

        monkeypatch.setattr("safetensors.numpy.save_file", broken)
        with pytest.raises(OSError, match="no space"):
            save_model(model, written)
        assert written.read_bytes() == before
        assert os.listdir(written.parent) == [written.name]

    def test_permissions_are_those_of_any_new_file(self, written, tmp_path):
        (tmp_path / "plain").touch()
        assert written.stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_the_file_holds_no_pickle(self, written):
        assert b"pickle" not in written.read_bytes()


class TestOlderFormats:
    def test_format_1_loads_and_predicts(self):
        model = load_model(FORMAT_1)
        assert model.training.fingerprint is None
        assert model.classes.tolist() == ["setosa", "versicolor", "virginica"]
        assert model.encoding.feature_names == (
            "sepal_length",
            "petal_length",
            "petal_width",
            "size=large",
            "size=small",
        )
        assert model.alpha.shape == (3, 150)
        X = np.array([[5.1, 1.4, 0.2, 0, 1], [5.9, 4.2, 1.5, 0, 1], [6.3, 6.0, 2.5, 1, 0]])
        assert model.predict(model.scores(X)).tolist() == ["setosa", "versicolor", "virginica"]
        assert model.coef[0, 1] == pytest.approx(-3.79281554, abs=1e-7)
        assert model.outcomes[2].certificate.gap == pytest.approx(3.4392524172445254e-09)

    def test_newer_format(self, written):
        tensors, metadata = contents(written)
        metadata["format_version"] = str(FORMAT_VERSION + 1)
        save_file(tensors, written, metadata)
        with pytest.raises(DataError, match="install a newer dualfree"):
            load_model(written)


class TestDamage:
    @pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.9, 0.999])
    def test_cut_off(self, written, share):
        content = written.read_bytes()
        written.write_bytes(content[: int(share * len(content))])
        with pytest.raises(DataError, match="not a dualfree model, or it is damaged"):
            load_model(written)

    def test_one_changed_byte_of_the_weights(self, written):
        content = bytearray(written.read_bytes())
        content[-3] ^= 1
        written.write_bytes(content)
        with pytest.raises(DataError, match="does not match its checksum"):
            load_model(written)
        assert not load_model(written, accept_edited=True).intact

    @pytest.mark.parametrize("content", [b"", b"\x80\x04\x95", b"hello", b"\xff" * 100, b"PK\x03\x04"])
    def test_foreign_bytes(self, tmp_path, content):
        path = tmp_path / "m.safetensors"
        path.write_bytes(content)
        with pytest.raises(DataError):
            load_model(path)

    def test_foreign_safetensors(self, tmp_path):
        path = tmp_path / "m.safetensors"
        save_file({"weight": np.zeros(3)}, path)
        with pytest.raises(DataError, match="was not written by dualfree"):
            load_model(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(DataError, match="there is no such model file"):
            load_model(tmp_path / "nothing")


def _set(path, value):
    def change(description, tensors):
        *way, last = path
        for key in way:
            description = description[key]
        description[last] = value

    return change


def _tensor(name, value):
    def change(description, tensors):
        if value is None:
            del tensors[name]
        else:
            tensors[name] = value

    return change


HOSTILE = {
    "loss": _set(["objective", "loss"], "__import__('os')"),
    "loss of another type": _set(["objective", "loss"], ["logistic"]),
    "parameter": _set(["objective", "loss_parameter"], 3.0),
    "negative λ": _set(["objective", "lam"], -1.0),
    "λ as text": _set(["objective", "lam"], "1e-4"),
    "class weight": _set(["objective", "class_weight"], "none"),
    "no classes": _set(["classes"], []),
    "unsorted classes": _set(["classes"], ["w", "v", "u"]),
    "mixed classes": _set(["classes"], [1, "v", None]),
    "features": _set(["encoding", "n_features"], 10**9),
    "columns": _set(["encoding", "columns"], [{"name": "a", "levels": None}]),
    "levels": _set(["encoding", "columns"], [{"name": "a", "levels": [1, 2, 3]}]),
    "repeated levels": _set(["encoding", "columns"], [{"name": "a", "levels": ["x", "x", "y"]}]),
    "index base": _set(["encoding", "index_base"], 7),
    "dtype": _set(["encoding", "dtype"], "object"),
    "rows": _set(["training", "n_rows"], True),
    "tol": _set(["training", "tol"], None),
    "outcomes": _set(["outcomes"], []),
    "status": _set(["outcomes", 0, "status"], "perfect"),
    "certificate": _set(["outcomes", 0, "certificate"], None),
    "gap": _set(["outcomes", 0, "certificate", "gap"], "small"),
    "huge number": _set(["outcomes", 0, "certificate", "gap"], 10**400),
    "model": lambda description, tensors: description.clear(),
    "no coefficients": _tensor("coef", None),
    "shape": _tensor("coef", np.zeros((3, 2))),
    "type": _tensor("coef", np.zeros((3, 3), dtype=np.float32)),
    "infinite": _tensor("intercept", np.full(3, np.inf)),
    "dual": _tensor("alpha", np.zeros((3, 5))),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_content_gives_a_sentence(written, case):
    tensors, metadata = contents(written)
    description = json.loads(metadata["model"])
    HOSTILE[case](description, tensors)
    metadata["model"] = json.dumps(description)
    save_file(tensors, written, metadata)
    with pytest.raises(DataError) as caught:
        load_model(written, accept_edited=True)
    assert str(caught.value).startswith(str(written))


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "[" * 100_000, '{"a": ' * 50_000, "1" * 10_000])
def test_hostile_description(written, text):
    tensors, metadata = contents(written)
    metadata["model"] = text
    save_file(tensors, written, metadata)
    with pytest.raises(DataError):
        load_model(written, accept_edited=True)


@pytest.mark.parametrize("version", ["", "-1", "1.5", "x", "9" * 5000, "²", "0"])
def test_hostile_version(written, version):
    tensors, metadata = contents(written)
    metadata["format_version"] = version
    save_file(tensors, written, metadata)
    with pytest.raises(DataError, match="format version"):
        load_model(written)
