"""``dualfree fit``: what it fits, writes, says and returns."""

import gzip
import io
import json
import sys

import numpy as np
import pandas
import pytest
from sklearn.linear_model import LogisticRegression

import dualfree as df
from dualfree.io import load_model, read_data


class TestAnswer:
    def test_coefficients_agree_with_scikit_learn(self, dualfree, files, tmp_path):
        path = tmp_path / "m.safetensors"
        done = dualfree("fit", files / "train.svm", "--intercept", "--C", "0.5", "--tol", "1e-12", "--model", path)
        assert done.status == 0
        data = read_data(files / "train.svm")
        reference = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000).fit(data.X, data.y)
        model = load_model(path)
        assert np.allclose(model.coef, reference.coef_, atol=1e-5)
        assert np.allclose(model.intercept, reference.intercept_, atol=1e-5)

    def test_json(self, dualfree, files):
        done = dualfree(
            "fit", files / "train.svm", "--lam", "0.01", "--valid", files / "test.svm", "--json", "--seed", "1"
        )
        assert done.status == done.json["exit_status"] == 0
        assert done.json["status"] == "certified"
        assert done.json["certificates"][0]["relative_gap"] <= 1e-6
        assert done.json["data"]["n_rows"] == 455
        assert done.json["valid"]["accuracy"] > 0.9
        assert done.json["objective"]["lam"] == 0.01

    def test_default_is_c_one(self, dualfree, files):
        done = dualfree("fit", files / "train.svm", "--json")
        assert done.json["objective"]["lam"] == 1 / 455

    def test_same_seed_same_bits(self, dualfree, files, tmp_path):
        for name in ("a", "b"):
            dualfree("fit", files / "train.svm", "--seed", "7", "--model", tmp_path / name)
        assert np.array_equal(load_model(tmp_path / "a").coef, load_model(tmp_path / "b").coef)

    def test_balanced_weights(self, dualfree, files, tmp_path):
        path = tmp_path / "m"
        dualfree(
            "fit", files / "train.svm", "--class-weight", "balanced", "--lam", "0.01", "--tol", "1e-12", "--model", path
        )
        data = read_data(files / "train.svm")
        n = data.y.size
        reference = LogisticRegression(
            C=1 / (0.01 * n), class_weight="balanced", fit_intercept=False, tol=1e-12, max_iter=10_000
        ).fit(data.X, data.y)
        assert np.allclose(load_model(path).coef, reference.coef_, atol=1e-5)

    def test_several_classes_have_a_certificate_each(self, iris_model, files):
        model = load_model(iris_model)
        data = read_data(files / "iris.csv", target="species")
        assert model.coef.shape == (3, 5)
        for column, problem in enumerate(model.objective.problems(data.X, data.y)):
            found = df.certify(problem, model.coef[column], model.intercept[column], model.alpha[column])
            assert found.relative_gap <= 1e-6

    @pytest.mark.parametrize("solver", list(df.SOLVERS))
    def test_every_solver(self, dualfree, files, solver):
        done = dualfree("fit", files / "train.svm", "--solver", solver, "--lam", "0.05", "--tol", "1e-4", "--json")
        assert done.status == 0

    def test_numbers_with_a_parameter_of_the_loss(self, dualfree, files):
        arguments = (
            "--target",
            "progress",
            "--loss",
            "huber:30",
            "--intercept",
            "--valid",
            files / "diabetes.csv",
            "--json",
        )
        done = dualfree("fit", files / "diabetes.csv", *arguments)
        assert done.status == 0
        assert done.json["objective"]["loss_parameter"] == 30
        assert done.json["valid"]["mae"] > 0

    def test_float32(self, dualfree, files, tmp_path):
        assert dualfree("fit", files / "train.svm", "--float32", "--model", tmp_path / "m").status == 0
        assert load_model(tmp_path / "m").encoding.dtype == "float32"
        assert dualfree("certify", tmp_path / "m", files / "train.svm").status == 0

    def test_solver_option(self, dualfree, files):
        arguments = ("--solver", "adfsdca+", "--option", "shrink=5", "--option", "step=safe", "--lam", "0.1")
        assert dualfree("fit", files / "train.svm", *arguments).status == 0


class TestStandardInput:
    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_stream(self, dualfree, files, monkeypatch, compress):
        content = compress((files / "train.svm").read_bytes())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        done = dualfree("fit", "-", "--json")
        assert done.status == 0
        assert done.json["data"]["name"] == "standard input"


class TestStopping:
    def test_stopped_before_tol(self, dualfree, files, tmp_path):
        path = tmp_path / "m"
        done = dualfree("fit", files / "train.svm", "--max-epochs", "1", "--tol", "1e-12", "--model", path)
        assert done.status == 3
        assert "Not certified" in done.out
        assert load_model(path).outcomes[0].status == "max_epochs"
        assert dualfree("certify", path, files / "train.svm").status == 0

    def test_time_limit(self, dualfree, files):
        done = dualfree("fit", files / "train.svm", "--max-time", "0ms", "--json")
        assert done.status == 3
        assert done.json["certificates"][0]["status"] == "max_time"

    def test_warm_start_needs_no_epoch(self, dualfree, files, cancer_model):
        done = dualfree("fit", files / "train.svm", "--intercept", "--warm-start", cancer_model, "--json")
        assert done.json["n_epochs"] == 0

    def test_warm_start_with_another_lambda(self, dualfree, files, cancer_model):
        assert dualfree("fit", files / "train.svm", "--intercept", "--C", "3", "--warm-start", cancer_model).status == 0


class TestFiles:
    @pytest.mark.parametrize(
        ("suffix", "read"),
        [
            (".parquet", pandas.read_parquet),
            (".csv", pandas.read_csv),
            (".jsonl", lambda path: pandas.read_json(path, lines=True)),
        ],
    )
    def test_trace(self, dualfree, files, tmp_path, suffix, read):
        path = tmp_path / f"trace{suffix}"
        dualfree("fit", files / "iris.csv", "--target", "species", "--trace", path)
        table = read(path)
        assert table["column"].nunique() == 3
        assert {"epoch", "passes", "seconds", "gap", "primal", "dual"} <= set(table.columns)

    def test_model_without_the_dual(self, dualfree, files, tmp_path):
        path = tmp_path / "m"
        done = dualfree(
            "fit", files / "train.svm", "--no-dual", "--intercept", "--model", path, "--trace", tmp_path / "t.csv"
        )
        assert done.status == 0
        model = load_model(path)
        assert model.alpha is None
        assert model.outcomes[0].certificate.relative_gap <= 1e-6
        table = pandas.read_csv(tmp_path / "t.csv")
        assert (table[["epoch", "passes", "seconds"]].diff().iloc[1:] >= 0).all(axis=None)
        assert dualfree("certify", path, files / "train.svm").status == 0

    def test_the_hinge_cannot_be_certified_without_the_dual(self, dualfree, files):
        options = ("--no-dual", "--loss", "hinge", "--lam", "0.05", "--tol", "1e-5", "--seed", "0")
        done = dualfree("fit", files / "train.svm", *options)
        assert done.status == 3
        assert "leave out --no-dual" in done.out

    def test_unwritable_files_are_refused_first(self, dualfree, files, tmp_path):
        for option in ("--model", "--report", "--trace"):
            done = dualfree("fit", files / "train.svm", option, tmp_path / "no" / "such" / "folder.csv")
            assert done.status == 2
            assert "cannot be written" in done.err
            assert done.out == ""


SENTENCES = {
    "no file": (["fit", "nothing.svm"], "nothing.svm: there is no such file."),
    "loss": (["fit", "{train}", "--loss", "logisitc"], "'logisitc' is unknown. Did you mean 'logistic'?"),
    "parameter": (["fit", "{train}", "--loss", "logistic:2"], "the loss 'logistic' has no parameter"),
    "bad parameter": (["fit", "{train}", "--loss", "huber:-2"], "delta must be a finite number > 0"),
    "both strengths": (["fit", "{train}", "--lam", "1", "--C", "1"], "--lam and --C say the same thing"),
    "negative": (["fit", "{train}", "--lam", "-1"], "-1 is not a finite number above zero"),
    "nan": (["fit", "{train}", "--C", "nan"], "nan is not a finite number above zero"),
    "tol": (["fit", "{train}", "--tol", "-1"], "tol must be a finite number"),
    "time": (["fit", "{train}", "--max-time", "soon"], "'soon' is not a time; write 90, 90s, 1.5m or 1h30m."),
    "solver": (["fit", "{train}", "--solver", "sgd"], "'sgd' is not one of"),
    "solver option": (["fit", "{train}", "--option", "shrink=2"], "shrink"),
    "no target": (["fit", "{iris}"], "say which column is the target with --target"),
    "numbers as classes": (["fit", "{diabetes}", "--target", "bmi"], "needs classes, got the number"),
    "text as numbers": (
        ["fit", "{iris}", "--target", "species", "--loss", "squared"],
        "needs numbers as target, got 'setosa'",
    ),
    "weights for numbers": (
        ["fit", "{diabetes}", "--target", "progress", "--loss", "squared", "--class-weight", "balanced"],
        "--class-weight needs a loss for classes",
    ),
    "trace": (["fit", "{train}", "--trace", "trace.xls"], "the trace is written as .parquet, .csv, .jsonl"),
    "format": (["fit", "{iris}", "--format", "libsvm"], "line 1: expected a number as label, got 'sepal_length"),
    "no command": (["fti"], "No such command 'fti'"),
    "not a model": (["predict", "{train}", "{train}"], "this is not a dualfree model, or it is damaged"),
    "export": (["export", "{train}"], "say what to write: --onnx FILE, --liblinear FILE, or both."),
    "path": (["path", "{train}", "--lams", "1,x"], "is not a list of numbers"),
    "path model": (["path", "{train}", "--model", "m"], "so it needs --valid"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_one_sentence(dualfree, files, case, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    arguments, sentence = SENTENCES[case]
    names = {"train": files / "train.svm", "iris": files / "iris.csv", "diabetes": files / "diabetes.csv"}
    done = dualfree(*[argument.format(**names) for argument in arguments])
    assert done.status == 2
    assert done.err.startswith("dualfree: ")
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_errors_are_json_too(dualfree):
    done = dualfree("fit", "nothing.svm", "--json")
    assert done.json == {"error": "nothing.svm: there is no such file.", "exit_status": 2}


def test_broken_line_and_skipping(dualfree, files, tmp_path):
    path = tmp_path / "broken.svm"
    path.write_text((files / "train.svm").read_text() + "1 1:one\n")
    done = dualfree("fit", path)
    assert (done.status, done.err.count("line 456")) == (2, 1)
    done = dualfree("fit", path, "--skip-bad-lines", "--model", tmp_path / "m")
    assert done.status == 0
    assert "1 broken line was skipped" in done.err
    assert dualfree("certify", tmp_path / "m", path).status == 0


def test_bug_is_a_sentence_with_its_own_status(dualfree, files, monkeypatch):
    monkeypatch.setattr("dualfree.cli.evaluate.load_model", lambda path: 1 / 0)
    done = dualfree("evaluate", "m", files / "train.svm")
    assert done.status == 70
    assert "this is a bug in dualfree: ZeroDivisionError" in done.err


def test_every_option_has_a_help_text():
    import click

    from dualfree.cli.app import cli

    for name, command in cli.commands.items():
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


def test_examples_in_the_help_keep_their_lines(dualfree):
    from dualfree.cli.app import cli

    for name in cli.commands:
        text = dualfree(name, "--help").out
        assert "\\b" not in text
        if "Example" in text:
            assert f"\n    dualfree {name} " in text


def test_version(dualfree):
    assert df.__version__ in dualfree("--version").out


def test_help_names_the_exit_statuses(dualfree):
    text = dualfree("--help").out
    for status in ("0 ", "1 ", "2 ", "3 ", "130 "):
        assert f"\n    {status}" in text


def test_json_output_is_strict(dualfree, files):
    done = dualfree("fit", files / "train.svm", "--max-epochs", "0", "--loss", "hinge", "--intercept", "--json")
    json.loads(done.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
