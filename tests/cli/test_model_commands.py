"""predict, evaluate, certify, path, info, export, demo."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import dualfree as df
from dualfree.io import load_model, read_data, save_model

FORMAT_1 = Path(__file__).parents[1] / "io" / "files" / "model-format-1.safetensors"


class TestPredict:
    def test_one_prediction_a_line(self, dualfree, files, cancer_model):
        done = dualfree("predict", cancer_model, files / "test.svm")
        lines = done.out.splitlines()
        assert len(lines) == 114
        assert set(lines) == {"1", "-1"}
        data = read_data(files / "test.svm")
        assert np.mean(np.array(lines, dtype=float) == data.y) > 0.9

    def test_same_predictions_from_another_format(self, dualfree, files, cancer_model):
        text = dualfree("predict", cancer_model, files / "test.svm").out
        assert dualfree("predict", cancer_model, files / "test.npz").out == text

    @pytest.mark.parametrize(("name", "read"), [("p.csv", pandas.read_csv), ("p.parquet", pandas.read_parquet)])
    def test_tables(self, dualfree, files, iris_model, tmp_path, name, read):
        done = dualfree("predict", iris_model, files / "iris.csv", "--proba", "--certified", "-o", tmp_path / name)
        assert done.status == 0
        table = read(tmp_path / name)
        columns = ["prediction", "p(setosa)", "p(versicolor)", "p(virginica)", "certified"]
        assert list(table.columns) == columns
        assert np.allclose(table[columns[1:4]].sum(axis=1), 1.0)
        winners = table[columns[1:4]].to_numpy().argmax(axis=1)
        assert (table["prediction"] == np.array(["setosa", "versicolor", "virginica"])[winners]).all()

    def test_certified_predictions_cannot_change(self, dualfree, files, tmp_path):
        """A loosely solved model marks as certified only what the exact optimum predicts as well."""
        common = ("--intercept", "--lam", "0.01", "--seed", "0")
        loose, exact = tmp_path / "loose", tmp_path / "exact"
        dualfree(
            "fit",
            files / "train.svm",
            *common,
            "--solver",
            "dfsdca",
            "--max-epochs",
            "40",
            "--tol",
            "0",
            "--model",
            loose,
        )
        dualfree("fit", files / "train.svm", *common, "--tol", "1e-13", "--model", exact)
        marked = dualfree("predict", loose, files / "test.svm", "--certified", "--json").json
        right = dualfree("predict", exact, files / "test.svm", "--json").json
        certain = np.array(marked["certified"])
        assert 0 < certain.sum() < certain.size
        assert (np.array(marked["prediction"])[certain] == np.array(right["prediction"])[certain]).all()

    def test_numbers_come_with_a_bound(self, dualfree, files, tmp_path):
        path = tmp_path / "m"
        dualfree(
            "fit", files / "diabetes.csv", "--target", "progress", "--loss", "squared", "--intercept", "--model", path
        )
        done = dualfree("predict", path, files / "diabetes.csv", "--certified", "--json")
        assert len(done.json["prediction"]) == len(done.json["bound"]) == 442
        assert min(done.json["bound"]) > 0

    def test_probabilities_need_the_logistic_loss(self, dualfree, files, tmp_path):
        dualfree("fit", files / "train.svm", "--loss", "squared_hinge", "--model", tmp_path / "m")
        done = dualfree("predict", tmp_path / "m", files / "test.svm", "--proba")
        assert done.status == 2
        assert "probabilities need the logistic loss; the model was fitted with 'squared_hinge'" in done.err

    def test_unknown_features_are_told(self, dualfree, cancer_model, tmp_path):
        (tmp_path / "new.svm").write_text("0 1:1 31:5 99:2\n")
        done = dualfree("predict", cancer_model, tmp_path / "new.svm")
        assert done.status == 0
        assert "2 entries were ignored because the model does not know their feature" in done.err

    def test_failed_output_leaves_nothing(self, dualfree, files, cancer_model, tmp_path):
        done = dualfree("predict", cancer_model, files / "test.svm", "-o", tmp_path / "no" / "p.txt")
        assert done.status == 2
        assert list(tmp_path.iterdir()) == []


class TestEvaluate:
    def test_classes(self, dualfree, files, cancer_model):
        done = dualfree("evaluate", cancer_model, files / "test.svm", "--json")
        data, model = read_data(files / "test.svm"), load_model(cancer_model)
        scores = model.scores(data.X)[:, 0]
        assert done.json["accuracy"] == accuracy_score(data.y, np.where(scores > 0, 1, -1))
        assert done.json["roc_auc"] == roc_auc_score(data.y, scores)
        assert done.json["log_loss"] == pytest.approx(log_loss(data.y, 1 / (1 + np.exp(-scores))))

    def test_several_classes(self, dualfree, files, iris_model):
        done = dualfree("evaluate", iris_model, files / "iris.csv", "--json")
        assert done.json["accuracy"] > 0.9
        assert 0.8 < done.json["roc_auc"] <= 1

    def test_unknown_class_counts_as_wrong(self, dualfree, cancer_model, files, tmp_path):
        lines = (files / "test.svm").read_text().splitlines()
        (tmp_path / "t.svm").write_text("\n".join("7 " + line.split(" ", 1)[1] for line in lines))
        done = dualfree("evaluate", cancer_model, tmp_path / "t.svm", "--json")
        assert (done.json["accuracy"], done.json["log_loss"], done.json["roc_auc"]) == (0.0, None, None)

    def test_one_class_has_no_roc(self, dualfree, cancer_model, tmp_path):
        (tmp_path / "t.svm").write_text("1 1:1\n1 2:1\n")
        done = dualfree("evaluate", cancer_model, tmp_path / "t.svm")
        assert "ROC AUC              not defined here" in done.out


def edited(source, target, change, keep_checksum=True):
    """Write a model with changed content, with or without a checksum that fits."""
    if not keep_checksum:
        save_model(change(load_model(source)), target)
        return
    model = change(load_model(source))
    with safe_open(source, framework="numpy") as file:
        metadata = file.metadata()
    save_file({"coef": model.coef, "intercept": model.intercept, "alpha": model.alpha}, target, metadata)


def with_coefficient(j, delta):
    def change(model):
        coef = model.coef.copy()
        coef[0, j] += delta
        return replace(model, coef=coef)

    return change


class TestCertify:
    def test_honest_model(self, dualfree, files, cancer_model):
        done = dualfree("certify", cancer_model, files / "train.svm")
        assert done.status == 0
        assert "The model's claim holds." in done.out

    def test_other_format_of_the_same_data(self, dualfree, files, cancer_model):
        assert dualfree("certify", cancer_model, files / "train.npz").status == 0

    def test_several_classes(self, dualfree, files, iris_model):
        assert dualfree("certify", iris_model, files / "iris.csv").status == 0

    @pytest.mark.parametrize("delta", [0.1, -0.1, 1e-3, 1e-6, 1e-9])
    @pytest.mark.parametrize("j", [0, 17])
    def test_one_changed_coefficient(self, dualfree, files, cancer_model, tmp_path, j, delta):
        edited(cancer_model, tmp_path / "m", with_coefficient(j, delta))
        done = dualfree("certify", tmp_path / "m", files / "train.svm", "--json")
        assert done.status == 1
        assert done.json["holds"] is False

    @pytest.mark.parametrize("delta", [0.1, -0.1, 1e-3])
    def test_one_changed_coefficient_with_a_forged_checksum(self, dualfree, files, cancer_model, tmp_path, delta):
        """Nothing but the recomputed certificate can tell."""
        edited(cancer_model, tmp_path / "m", with_coefficient(5, delta), keep_checksum=False)
        done = dualfree("certify", tmp_path / "m", files / "train.svm")
        assert done.status == 1
        assert "the model claims" in done.out
        assert "checksum" not in done.out

    @pytest.mark.parametrize("field", ["gap", "relative_gap", "distance_bound", "intercept_bound", "primal"])
    def test_forged_certificate(self, dualfree, files, cancer_model, tmp_path, field):
        def change(model):
            outcome = model.outcomes[0]
            forged = replace(outcome.certificate, **{field: getattr(outcome.certificate, field) * 0.9})
            return replace(model, outcomes=(replace(outcome, certificate=forged),))

        edited(cancer_model, tmp_path / "m", change, keep_checksum=False)
        done = dualfree("certify", tmp_path / "m", files / "train.svm")
        assert done.status == 1
        assert field.replace("_", " ").replace("primal", "objective") in done.out

    @pytest.mark.parametrize("row", [0, 200, 454])
    @pytest.mark.parametrize("what", ["value", "label", "unknown feature", "gone", "swapped"])
    def test_one_changed_row(self, dualfree, files, cancer_model, tmp_path, row, what):
        lines = (files / "train.svm").read_text().splitlines()
        label, rest = lines[row].split(" ", 1)
        if what == "value":
            first, *others = rest.split(" ")
            index, value = first.split(":")
            lines[row] = f"{label} {index}:{float(value) + 1e-6!r} {' '.join(others)}"
        elif what == "label":
            lines[row] = f"{-float(label):g} {rest}"
        elif what == "unknown feature":
            lines[row] += " 31:1"
        elif what == "gone":
            del lines[row]
        else:
            lines[row], lines[row - 1] = lines[row - 1], lines[row]
        (tmp_path / "t.svm").write_text("\n".join(lines))
        assert dualfree("certify", cancer_model, tmp_path / "t.svm").status == 1

    def test_other_data(self, dualfree, files, cancer_model):
        done = dualfree("certify", cancer_model, files / "test.svm")
        assert done.status == 1
        assert "The model was fitted on 455 rows, the data have 114." in done.out

    def test_unreadable_data_are_bad_input(self, dualfree, cancer_model):
        assert dualfree("certify", cancer_model, "nothing.svm").status == 2

    def test_format_1_is_certified_without_a_fingerprint(self, dualfree, files, tmp_path):
        assert dualfree("certify", FORMAT_1, files / "iris.csv").status == 0
        lines = (files / "iris.csv").read_text().splitlines()
        lines[77] = lines[77].replace("versicolor", "virginica")
        (tmp_path / "changed.csv").write_text("\n".join(lines))
        assert dualfree("certify", FORMAT_1, tmp_path / "changed.csv").status == 1


class TestPath:
    def test_path(self, dualfree, files, tmp_path):
        arguments = ("--count", "6", "--ratio", "1e-4", "--valid", files / "test.svm", "--json", "--intercept")
        written = ("--picture", tmp_path / "path.png", "--model", tmp_path / "best")
        done = dualfree("path", files / "train.svm", *arguments, *written)
        assert done.status == 0
        rows = done.json["path"]
        lams = np.array([row["lam"] for row in rows])
        assert np.allclose(lams[1:] / lams[:-1], 1e-4 ** (1 / 5))
        assert all(row["relative_gap"] <= 1e-6 for row in rows)
        assert np.all(np.diff([row["norm"] for row in rows]) > 0)
        best = int(np.argmin([row["log_loss"] for row in rows]))
        assert done.json["best"] == best
        assert load_model(tmp_path / "best").objective.lam == lams[best]
        assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")
        assert dualfree("certify", tmp_path / "best", files / "train.svm").status == 0

    def test_largest_lambda_outweighs_the_data(self, files):
        from dualfree.cli.path import lambda_grid

        data = read_data(files / "train.svm")
        problem = df.Problem(data.X, data.y)
        largest = lambda_grid(problem, 5, 1e-3)[0]
        hessian = 0.25 * (data.X.T @ data.X).toarray() / problem.n
        assert np.linalg.eigvalsh(hessian).max() <= largest

    def test_given_values_and_several_classes(self, dualfree, files):
        arguments = ("--target", "species", "--lams", "0.001,0.1,0.01", "--valid", files / "iris.csv")
        done = dualfree("path", files / "iris.csv", *arguments)
        assert done.status == 0
        assert [line.split()[0] for line in done.out.splitlines()[2:5]] == ["1.000e-01", "1.000e-02", "1.000e-03"]

    def test_time_limit(self, dualfree, files):
        assert dualfree("path", files / "train.svm", "--max-time", "1ms", "--tol", "1e-14").status == 3


class TestInfoAndExport:
    def test_info(self, dualfree, iris_model):
        done = dualfree("info", iris_model)
        assert "setosa, versicolor, virginica" in done.out
        assert "petal_length" in done.out
        assert dualfree("info", iris_model, "--json").json["training"]["n_rows"] == 150

    def test_info_tells_about_edits(self, dualfree, cancer_model, tmp_path):
        edited(cancer_model, tmp_path / "m", with_coefficient(0, 1.0))
        assert "the file was changed after it was written" in dualfree("info", tmp_path / "m").out
        assert dualfree("predict", tmp_path / "m", tmp_path / "m").status == 2

    def test_export(self, dualfree, cancer_model, tmp_path):
        done = dualfree(
            "export", cancer_model, "--onnx", tmp_path / "m.onnx", "--liblinear", tmp_path / "m.model", "--json"
        )
        assert done.json["files"] == {"onnx": str(tmp_path / "m.onnx"), "liblinear": str(tmp_path / "m.model")}
        assert (tmp_path / "m.model").read_text().startswith("solver_type L2R_LR\nnr_class 2\nlabel 1 -1\n")


class TestDemo:
    def test_demo(self, dualfree, tmp_path):
        done = dualfree("demo", "--out", tmp_path / "out")
        assert done.status == 0
        for solver in df.SOLVERS:
            assert f"\n{solver} " in done.out
        assert "above the optimum" in done.out
        files = {file.name for file in (tmp_path / "out").iterdir()}
        assert files == {"convergence.png", "model.safetensors", "report.html", "test.svm", "train.svm"}
        assert dualfree("certify", tmp_path / "out" / "model.safetensors", tmp_path / "out" / "train.svm").status == 0

    def test_json(self, dualfree, tmp_path):
        done = dualfree("demo", "--out", tmp_path, "--json")
        assert set(done.json["solvers"]) == set(df.SOLVERS)
        assert json.dumps(done.json)
