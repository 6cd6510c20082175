"""The Python examples of the README and of the documentation, executed; and every local link leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


# the page of the command line goes on with files that its session wrote; tests/cli executes that session
NOT_ALONE = {"command_line.md"}


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p) and p.name not in NOT_ALONE], ids=lambda p: p.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), namespace)


def test_readme_shows_what_its_first_example_prints(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^```\n(converged - .*)\n```", text, flags=re.MULTILINE).group(1)
    exec(blocks(ROOT / "README.md")[0], {})
    printed = capsys.readouterr().out
    # digits of the gap may differ between processors
    start = shown.index("at most")
    assert printed.startswith(shown[:start])
    shown_gap, gap = (float(re.search(r"at most (\S+) above", text).group(1)) for text in (shown, printed))
    assert 0.5 * shown_gap <= gap <= 2 * shown_gap


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
