"""A tiny plan from data to page, interrupted and resumed."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from dualfree.cli.app import run as command_line
from dualfree.reproduce import Reproduction, paper, reproduce, runs
from dualfree.reproduce.plan import Plan, Strength

TINY = Plan("tiny", 50, 40, 2, 2, seeds=2, epochs=6, strengths=(Strength(1.0),))
CLAIMS = {
    "outperforms-dfsdca",
    "outperforms-prox-sdca",
    "residuals",
    "theorem",
    "better-rate",
    "optimal-probabilities",
    "vanishing-variance",
    "adfsdca+-as-printed",
    "adfsdca+-repaired",
    "cost",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """A plan that is interrupted inside its 21st run, then run again; the second time must do the others only."""
    out = tmp_path_factory.mktemp("made")
    solved: list[str] = []
    original = runs.solve_run

    def counted(run: Any, problem: Any, callback: Any = None) -> Any:
        solved.append(run.title)
        if len(solved) == 21:
            raise KeyboardInterrupt
        return original(run, problem, callback)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "solve_run", counted)
        with pytest.raises(KeyboardInterrupt):
            reproduce(None, out, plan=TINY, download=False)
        stored = {file.name: file.stat().st_mtime_ns for file in (out / "traces").glob("*.parquet")}
        assert len(stored) == 20
        assert not (out / "index.html").exists()
        made = reproduce(None, out, plan=TINY, download=False)
        assert len(solved) == 21 + len(TINY.runs()) - 20
        assert all((out / "traces" / name).stat().st_mtime_ns == time for name, time in stored.items())
    return made


def test_the_traces_of_all_runs_are_there(made: Reproduction) -> None:
    frame = pandas.read_parquet(made.out / "traces.parquet")
    keys = ["study", "data", "loss", "strength", "method", "seed"]
    assert frame.groupby(keys).ngroups == len(TINY.runs())
    assert frame["synthetic"].all()
    assert frame["data_label"].str.startswith("synthetic, shaped like").all()
    fine = frame[~frame["method"].str.contains("step=paper")]
    assert (fine["gap"] <= fine["pair_gap"] * (1 + 1e-9) + 1e-12).all()  # the certified gap is the smaller one
    first = fine[fine["epoch"] == 0]
    assert np.allclose(first["passes"], 0)


def test_claims_have_their_form(made: Reproduction) -> None:
    content = json.loads((made.out / "claims.json").read_text())
    assert content["schema"] == 1
    assert content["synthetic"] is True
    assert {claim["id"] for claim in content["claims"]} == CLAIMS
    for claim in content["claims"]:
        assert set(claim) == {"id", "claim", "where", "verdict", "sentence", "rule", "measured", "rows"}
        assert claim["verdict"]
        assert re.search(r"\d", claim["sentence"])
        for row in claim["rows"]:
            assert row["synthetic"] is True
            assert "synthetic" in row["data"]
    for source in content["data"]:
        assert {"name", "label", "origin", "synthetic", "where", "rows", "features", "fingerprint"} == set(source)


def test_what_is_a_theorem_holds(made: Reproduction) -> None:
    verdicts = {claim.id: claim.verdict for claim in made.claims}
    assert verdicts["theorem"] == verdicts["optimal-probabilities"] == verdicts["better-rate"] == "holds"
    assert "as printed" in verdicts["adfsdca+-as-printed"]


def test_every_figure_says_that_its_data_are_synthetic(made: Reproduction) -> None:
    pictures = sorted((made.out / "figures").glob("*.svg"))
    assert len(pictures) == 4 + 4 + 3
    for picture in pictures:
        assert "synthetic, shaped like" in picture.read_text(), picture.name
        assert picture.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_the_page_opens_offline_and_holds_everything(made: Reproduction) -> None:
    text = (made.out / "index.html").read_text()
    assert "SYNTHETIC" in text
    assert not re.search(r"(src|href)=['\"](?!data:)", text)
    pictures = re.findall(r"data:image/svg\+xml;base64,([^']+)'", text)
    assert len(pictures) == 11
    assert all(base64.b64decode(p).lstrip().startswith(b"<?xml") for p in pictures)
    for claim in made.claims:
        assert f"id='{claim.id}'" in text
    assert "½(wᵀx − y)²" in text


def test_more_seeds_add_to_what_is_there() -> None:
    names = {run.file_stem("f") for run in TINY.runs()}
    more = Plan("tiny", 50, 40, 2, 2, seeds=3, epochs=6, strengths=(Strength(1.0),))
    assert names < {run.file_stem("f") for run in more.runs()}


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="data_dir must be a folder"):
        reproduce(tmp_path / "nowhere", tmp_path)
    with pytest.raises(ValueError, match="mode 'slow' is unknown"):
        reproduce(None, tmp_path, mode="slow")


def test_the_command_interrupted_and_resumed(
    made: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made.out, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(paper.Plan, "of", classmethod(lambda cls, mode, seeds=None: TINY))
    monkeypatch.setattr(paper, "write_paper_page", lambda *parts: None)  # drawn once is enough
    monkeypatch.setattr(runs, "solve_run", lambda *parts: pytest.fail("a stored run was run again"))
    arguments = ["reproduce", "--out", str(tmp_path), "--no-download", "--json"]
    with monkeypatch.context() as patch:

        def pressed(*args: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(paper, "execute", pressed)
        assert command_line(arguments) == 130
    shown = capsys.readouterr()
    assert "The same command goes on from there" in shown.err
    assert command_line(arguments) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["verdicts"]) == CLAIMS
    assert all(source["synthetic"] for source in content["data"])
