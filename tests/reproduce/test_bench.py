"""The same machinery on the user's data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.preprocessing import scale

from dualfree.cli.app import run as command_line
from dualfree.io import read_data
from dualfree.reproduce import compare


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, y = load_breast_cancer(return_X_y=True)
    path = tmp_path_factory.mktemp("data") / "cancer.svm"
    dump_svmlight_file(scale(X)[:200], y[:200], str(path), zero_based=False)
    return path


def test_the_command_compares_solvers(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", str(file), "--out", str(tmp_path), "--solvers", "prox-sdca,adfsdca+:step=safe:shrink=2,auto"]
    arguments += ["--losses", "logistic,squared", "--lams", "10/n,0.01", "--seeds", "2", "--json"]
    assert command_line(arguments) == 0
    summary = pandas.DataFrame(json.loads(capsys.readouterr().out)["summary"])
    assert summary.groupby(["loss", "lam", "method"]).ngroups == 2 * 2 * 3
    reached = summary[(summary["target"] == 1e-4) & (summary["method"] == "auto")]
    assert (reached["epochs"] > 0).all()
    assert {p.name for p in (tmp_path / "figures").glob("*.png")} == {
        f"figure{k}_cancer.svm_{loss}.png" for k in (1, 2) for loss in ("logistic", "squared")
    }
    traces = pandas.read_parquet(tmp_path / "traces.parquet")
    assert not traces["synthetic"].any()
    lams = traces.groupby("strength")["lam"].first()
    assert lams["10/n"] == pytest.approx(10 / 200)
    assert lams["0.01"] == 0.01


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--solvers", "prox"], "solver 'prox' is unknown"),
        (["--losses", "logstic"], "loss 'logstic' is unknown"),
        (["--lams", "0"], "λ must be a finite number > 0"),
        (["--solvers", "dfsdca,,auto"], "has an empty entry"),
        (["--solvers", "dfsdca", "--losses", "epsilon_insensitive"], "needs a smooth loss"),
    ],
)
def test_mistakes_are_a_sentence_before_the_first_run(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert command_line(["bench", str(file), "--out", str(tmp_path / "out"), *options]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_empty_list_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lams must be a list"):
        compare(read_data(file), tmp_path, lams=[])


def test_numbers_stay_numbers_for_the_squared_loss(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    np.savez(tmp_path / "numbers.npz", X=X, y=X @ [1.0, 2.0, 3.0])
    made = compare(read_data(tmp_path / "numbers.npz"), tmp_path / "out", ["auto"], ["squared"], ["1e-6"], seeds=1)
    assert made.traces["primal"].iloc[-1] < 1e-3
