"""The command ``dualfree``: one file a command."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the command's name; by default what the shell passed.

    Examples
    --------
    >>> from dualfree.cli import main
    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    try:
        from .app import run
    except ImportError as error:
        print(f"dualfree: {error}. Install what the command needs with: pip install 'dualfree[cli]'", file=sys.stderr)
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no λ shows a question mark instead of failing
    sys.exit(run(arguments))
