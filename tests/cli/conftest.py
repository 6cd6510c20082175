"""A command line to call, and small data for it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

from dualfree.cli.app import run


@pytest.fixture
def dualfree(capsys):
    """Run a command line in this process: status, standard output, standard error and, with --json, the object."""

    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        content = json.loads(captured.out) if "--json" in arguments else None
        return SimpleNamespace(status=status, out=captured.out, err=captured.err, json=content)

    return call


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Data files: cancer (two classes) as LIBSVM text and .npz, iris (three) and diabetes (numbers) as CSV."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_breast_cancer(return_X_y=True)
    X = np.round(scale(X), 6)
    test = np.arange(y.size) % 5 == 0
    for name, rows in (("train", ~test), ("test", test)):
        dump_svmlight_file(X[rows], np.where(y[rows] == 1, 1, -1), str(folder / f"{name}.svm"), zero_based=False)
        np.savez(folder / f"{name}.npz", X=X[rows], y=np.where(y[rows] == 1, 1, -1))
    iris = load_iris()
    lines = ["sepal_length,petal_length,petal_width,size,species"]
    for x, t in zip(iris.data.tolist(), iris.target.tolist(), strict=True):
        lines.append(f"{x[0]},{x[2]},{x[3]},{'large' if x[0] > 6 else 'small'},{iris.target_names[t]}")
    (folder / "iris.csv").write_text("\n".join(lines) + "\n")
    diabetes = load_diabetes()
    lines = [",".join([*diabetes.feature_names, "progress"])]
    lines += [
        ",".join(map(repr, [*x, t])) for x, t in zip(diabetes.data.tolist(), diabetes.target.tolist(), strict=True)
    ]
    (folder / "diabetes.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def cancer_model(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "cancer.safetensors"
    arguments = [
        "fit",
        str(files / "train.svm"),
        "--intercept",
        "--solver",
        "prox-sdca",
        "--seed",
        "0",
        "--model",
        str(path),
    ]
    assert run(arguments) == 0
    return path


@pytest.fixture(scope="session")
def iris_model(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "iris.safetensors"
    arguments = [
        "fit",
        str(files / "iris.csv"),
        "--target",
        "species",
        "--intercept",
        "--seed",
        "0",
        "--model",
        str(path),
    ]
    assert run(arguments) == 0
    return path
