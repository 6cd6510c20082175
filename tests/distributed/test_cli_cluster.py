"""``dualfree fit --cluster``: the same model file and certificate as on one machine, and sentences where it cannot be."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from dualfree.cli import cluster as cluster_module
from dualfree.cli.app import run
from dualfree.io import load_model

COMMAND = [sys.executable, "-c", "from dualfree.cli import main; main()"]


@pytest.fixture
def dualfree(capfd):
    def call(*arguments):
        status = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        content = json.loads(captured.out) if "--json" in arguments else None
        return SimpleNamespace(status=status, out=captured.out, err=captured.err, json=content)

    return call


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Cancer data as three LIBSVM files and as one, iris as Parquet."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_breast_cancer(return_X_y=True)
    X, y = np.round(scale(X)[:300], 6), np.where(y[:300] == 1, 1, -1)
    dump_svmlight_file(X, y, str(folder / "all.svm"), zero_based=False)
    for k in range(3):
        part = slice(100 * k, 100 * (k + 1))
        dump_svmlight_file(X[part], y[part], str(folder / f"part-{k}.svm"), zero_based=False)
    iris = load_iris(as_frame=True)
    table = iris.data.rename(columns=lambda name: name.split(" (")[0].replace(" ", "_"))
    table["species"] = iris.target_names[iris.target]
    table["garden"] = "north"
    for k in range(2):
        table.iloc[k::2].to_parquet(folder / f"iris-{k}.parquet", index=False)
    table.to_parquet(folder / "whole_iris.parquet", index=False)
    return folder


@pytest.fixture
def address(client):
    return client.scheduler.address


def test_the_same_model_as_on_one_machine(dualfree, files, address, tmp_path):
    common = ["--intercept", "--class-weight", "balanced", "--C", "0.5", "--seed", "0"]
    local = dualfree(
        "fit", files / "all.svm", *common, "--no-dual", "--model", tmp_path / "local.safetensors", "--json"
    )
    done = dualfree(
        *("fit", files / "part-*.svm", "--cluster", address, *common, "--valid", files / "all.svm"),
        *("--model", tmp_path / "m.safetensors", "--trace", tmp_path / "t.csv", "--json"),
    )
    assert done.status == local.status == 0
    assert done.json["cluster"] == {"workers": 2, "partitions": 3}
    for key in ("n_rows", "n_features", "nnz"):
        assert done.json["data"][key] == local.json["data"][key]
    assert done.json["valid"]["accuracy"] > 0.95
    ours, theirs = load_model(tmp_path / "m.safetensors"), load_model(tmp_path / "local.safetensors")
    assert ours.objective == theirs.objective
    assert ours.encoding == theirs.encoding
    assert ours.classes.tolist() == theirs.classes.tolist()
    certificates = [model.outcomes[0].certificate for model in (ours, theirs)]
    assert certificates[0].relative_gap <= 1e-6
    assert np.linalg.norm(ours.coef - theirs.coef) <= sum(certificate.distance_bound for certificate in certificates)
    assert len(pd.read_csv(tmp_path / "t.csv")) > 1
    # whoever has the data can prove the claim, without the dual vectors that stayed on the workers
    checked = dualfree("certify", tmp_path / "m.safetensors", files / "all.svm")
    assert checked.status == 0, checked.out


def test_several_classes_from_parquet(dualfree, files, address, tmp_path):
    options = ["--target", "species", "--ignore", "garden", "--intercept", "--seed", "0"]
    done = dualfree(
        "fit", files / "iris-*.parquet", "--cluster", address, *options, "--model", tmp_path / "m.safetensors"
    )
    assert done.status == 0, done.err
    assert "150 rows, 4 features, 600 stored entries; partitions: 2, workers: 2." in done.out
    assert re.search(r"setosa .* converged\nversicolor .* converged\nvirginica .* converged", done.out)
    assert load_model(tmp_path / "m.safetensors").encoding.feature_names[0] == "sepal_length"
    local = dualfree("fit", files / "whole_iris.parquet", *options, "--json")
    scored = dualfree("evaluate", tmp_path / "m.safetensors", files / "whole_iris.parquet", "--json")
    assert scored.json["scores"]["accuracy"] > 0.9 if "scores" in scored.json else scored.status == 0
    ours = [outcome.certificate.primal for outcome in load_model(tmp_path / "m.safetensors").outcomes]
    np.testing.assert_allclose(ours, [c["primal"] for c in local.json["certificates"]], rtol=1e-5)


def test_a_regression_and_a_loss_that_is_not_smooth(dualfree, files, address, tmp_path):
    done = dualfree("fit", files / "all.svm", "--cluster", address, "--loss", "huber:1.35", "--json")
    assert (done.status, done.json["status"]) == (0, "certified")
    done = dualfree(
        "fit", files / "part-*", "--cluster", address, "--loss", "hinge", "--C", "0.01", "--tol", "1e-3", "--json"
    )
    assert (done.status, done.json["status"]) == (0, "certified")
    done = dualfree(
        "fit", files / "all.svm", "--cluster", address, "--loss", "hinge", "--model", tmp_path / "m.safetensors"
    )
    assert done.status == 2
    assert "without them nothing can be proven for the loss hinge" in done.err


def test_limits(dualfree, files, address, tmp_path):
    options = ["--C", "1e4", "--intercept", "--max-epochs", "1", "--model", tmp_path / "m.safetensors"]
    done = dualfree("fit", files / "part-*", "--cluster", address, *options)
    assert done.status == 3
    assert "Not certified after 1 round and" in done.out
    assert load_model(tmp_path / "m.safetensors").outcomes[0].status == "max_epochs"
    assert dualfree("certify", tmp_path / "m.safetensors", files / "all.svm").status == 0


def test_going_on_from_a_checkpoint(dualfree, files, address, tmp_path):
    options = ["--cluster", address, "--C", "0.5", "--intercept", "--checkpoint", tmp_path / "c.npz", "--json"]
    assert dualfree("fit", files / "part-*", *options, "--max-epochs", "1").status == 3
    assert (tmp_path / "c.npz").exists()
    assert dualfree("fit", files / "part-*", *options).status == 0
    assert "--cluster" in dualfree("fit", files / "all.svm", "--checkpoint", tmp_path / "c.npz").err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["all.svm", "--solver", "dfsdca"], "--solver is for fits on one machine"),
        (["all.svm", "--report", "r.html"], "--report is for fits on one machine"),
        (["-"], "standard input cannot be read on a cluster"),
        (["nothing-*.svm"], "nothing-*.svm: there is no such file, and none that matches"),
        (["all.svm", "--target", "price"], "--target names a column of a table"),
        (["iris-*.parquet"], "say which column is the target with --target; it has sepal_length, sepal_width"),
        (["iris-*.parquet", "--target", "species"], "Column 'garden' does not hold numbers"),
        (["iris-*.parquet", "--target", "spezies"], "Did you mean 'species'?"),
        (
            ["iris-*.parquet", "--target", "species", "--loss", "squared", "--ignore", "garden"],
            "must hold real numbers",
        ),
        (
            ["iris-*.parquet", "--target", "sepal_length", "--ignore", "garden"],
            "Column 'species' does not hold numbers",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(dualfree, files, address, arguments, sentence, monkeypatch):
    monkeypatch.chdir(files)
    done = dualfree("fit", *arguments, "--cluster", address, "--quiet")
    assert done.status == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_other_formats_are_refused(dualfree, address, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    done = dualfree("fit", tmp_path / "a.csv", "--target", "b", "--cluster", address)
    assert done.status == 2
    assert "on a cluster, DATA is LIBSVM text or Parquet; csv is read on one machine only" in done.err


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("tcp://127.0.0.1:9", "no scheduler answered at tcp://127.0.0.1:9 within 0.5 s"),
        ("host", "'host' is neither the address of a scheduler, such as tcp://host:8786, nor local:4"),
        ("local:0", "'local:0' has no workers"),
    ],
)
def test_a_cluster_that_is_not_there(dualfree, files, monkeypatch, address, sentence):
    monkeypatch.setattr(cluster_module, "_CONNECT_SECONDS", 0.5)
    done = dualfree("fit", files / "all.svm", "--cluster", address)
    assert done.status == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_processes_on_this_machine_and_ctrl_c(tmp_path):
    """Ctrl-C reaches every process of the terminal: the workers survive it, the best model so far is kept."""
    random = np.random.default_rng(0)
    for k in range(2):
        X = scipy.sparse.random_array((300, 3000), density=0.02, rng=random)
        dump_svmlight_file(X, random.integers(2, size=300), str(tmp_path / f"{k}.svm"), zero_based=False)
    arguments = ["fit", tmp_path / "*.svm", "--cluster", "local:1", "--lam", "1e-9", "--intercept", "--tol", "1e-15"]
    arguments += ["--max-epochs", "1000000", "--checkpoint", tmp_path / "c.npz", "--model", tmp_path / "m.safetensors"]
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "c.npz").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Interrupted after" in out
    assert "Traceback" not in err
    assert [
        line for line in err.splitlines() if line and not line.startswith(("Dashboard", "dualfree: stopping"))
    ] == []
    assert load_model(tmp_path / "m.safetensors").outcomes[0].status == "interrupted"
