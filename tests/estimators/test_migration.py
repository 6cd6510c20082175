"""The migration example: a text pipeline written for scikit-learn, with only the import changed."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "text_pipeline_migration.py"


def test_a_text_pipeline_changes_only_its_import(capsys):
    rows = {row["solver"]: row for row in runpy.run_path(str(EXAMPLE))["main"]()}
    assert rows["lbfgs"]["classes"] == rows["saga"]["classes"] == 6
    assert rows["liblinear"]["classes"] == 2
    for solver, apart in (("lbfgs", 1e-3), ("saga", 1e-3), ("liblinear", 0.05)):
        row = rows[solver]
        assert row["same predictions"] == 1.0
        assert row["accuracy after"] == row["accuracy before"]
        assert row["probabilities differ by"] < apart  # scikit-learn's tolerance; liblinear penalises the intercept
        assert row["relative gap"] <= 1e-6
        assert row["certain"] > 0.8
    assert "relative gap" in capsys.readouterr().out
