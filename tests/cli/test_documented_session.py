"""The session in the documentation, executed literally."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dualfree

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
README = Path(__file__).parents[2] / "README.md"
END = "---end-of-command---"


def session(page):
    """Yield each command of the ``console`` blocks with the output that the page shows for it."""
    for block in re.findall(r"^```console\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def matches(shown, found):
    """Whether the output is as shown; … stands for anything, on a line of its own for any number of lines."""
    pattern = re.escape(shown)
    pattern = re.sub(r"^…\\\n", "(?:.*\n)*?", pattern, flags=re.MULTILINE).replace("…", ".*")
    return re.fullmatch(pattern, found) is not None


@pytest.fixture
def shell(tmp_path):
    """A bash with the command ``dualfree`` on its path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "dualfree"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from dualfree.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    source = str(Path(dualfree.__file__).parents[1])
    environment = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])),
        "DUALFREE_QUIET": "1",
    }
    (tmp_path / "work").mkdir()

    def run(commands):
        script = "\n".join(f"{c}\nstatus=$?; echo '{END}'; (exit $status)" for c in commands)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path / "work", env=environment, capture_output=True, text=True, timeout=300
        )
        return done.stdout.split(f"{END}\n"), done.stderr

    return run


@pytest.mark.parametrize(
    ("page", "least"),
    [pytest.param(PAGE, 12, marks=pytest.mark.slow), (README, 4)],  # the long one takes a minute
    ids=["page", "readme"],
)
def test_session(shell, page, least):
    steps = list(session(page.read_text(encoding="utf-8")))
    assert len(steps) >= least
    outputs, errors = shell([command for command, _ in steps])
    assert errors == ""
    for (command, shown), found in zip(steps, outputs, strict=False):
        assert matches(shown, found), f"$ {command}\n--- the page shows\n{shown}--- the command printed\n{found}"


def test_matching_can_fail():
    assert matches("a …\n…\nz\n", "a b\nc\nd\nz\n")
    assert not matches("a …\nz\n", "a b\nc\nz\n")
    assert not matches("a\n", "a\nb\n")


def test_page_names_every_command_and_exit_status():
    from dualfree.cli import exits
    from dualfree.cli.app import cli

    page = PAGE.read_text(encoding="utf-8")
    for name in cli.commands:
        assert f"`dualfree {name}" in page
    for status in exits.MEANING:
        assert f"| {status} |" in page
