"""The map from the paper to the code names files and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [line for line in (ROOT / "docs" / "paper_to_code.md").read_text().splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("row", ROWS)
def test_files_and_tests_exist(row: str) -> None:
    file = None
    for path, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", row):
        file = ROOT / path if path else file
        if path:
            assert file.is_file(), path
        if name:
            assert f"def {name}(" in file.read_text(), name
    for path in re.findall(r"`((?!tests)[a-z_]+(?:/[a-z_]+)*\.py)`", row):
        assert (ROOT / "src" / "dualfree" / path).is_file(), path


def test_every_part_of_the_paper_is_there() -> None:
    text = "\n".join(ROWS)
    for part in (
        "(P)",
        "(D)",
        *(f"({k})" for k in range(1, 8)),
        "theorem 1",
        "lemma 1",
        "definition 1",
        "figure 1",
        "figure 2",
    ):
        assert part in text, part
    lines = {int(k) for span in re.findall(r"^\| (\d+)(?:–(\d+))?:", text, re.M) for k in span if k}
    assert {2, 3, 4, 5, 7, 8, 10, 12, 13, 14, 15} <= lines
