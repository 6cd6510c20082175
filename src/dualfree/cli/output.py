"""What a command prints: text for people on standard output, or one JSON object."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from typing import Any

from ..certificate import Certificate
from ..io import Dataset, Model
from ..report.words import column_names, in_words


class Output:
    """Collects what a command has to say.

    Parameters
    ----------
    command : str
        Its name.
    as_json : bool
        Whether the output is one JSON object; text is then left out.
    """

    def __init__(self, command: str, as_json: bool) -> None:
        self.as_json = as_json
        self.content: dict[str, Any] = {"command": command}

    def say(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.as_json:
            print(text)

    def note(self, text: str) -> None:
        """Print a remark on standard error, where it does not mix with data."""
        print(text, file=sys.stderr)

    def put(self, **entries: Any) -> None:
        """Add entries to the JSON object."""
        self.content.update(entries)

    def end(self, status: int) -> int:
        """Print the JSON object, if there is one; return the exit status."""
        if self.as_json:
            print(json.dumps(_plain({**self.content, "exit_status": status}), ensure_ascii=False, allow_nan=False))
        return status


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: infinity and NaN become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def certificate_entry(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate for JSON output."""
    return asdict(certificate)


def say_data_notes(output: Output, data: Dataset) -> None:
    """Tell what was skipped or left out while reading."""
    if data.bad_lines:
        output.note(f"{data.name}: {data.bad_lines} broken line{'s were' if data.bad_lines > 1 else ' was'} skipped.")
    if data.unknown:
        entries = "entries were" if data.unknown > 1 else "entry was"
        output.note(f"{data.name}: {data.unknown} {entries} ignored because the model does not know their feature.")
    for text in data.notes:
        output.note(text)


def say_certificates(output: Output, model: Model) -> None:
    """Print the certificate, or a table of them for several classes."""
    output.put(
        certificates=[
            {"column": name, "status": o.status, "n_epochs": o.n_epochs, **certificate_entry(o.certificate)}
            for name, o in zip(column_names(model), model.outcomes, strict=True)
        ]
    )
    if len(model.outcomes) == 1:
        output.say(in_words(model.outcomes[0].certificate))
        return
    names = column_names(model)
    width = max(len(name) for name in names)
    output.say(f"{'':{width}}  {'objective':>14}  {'gap at most':>11}  {'of P(0)':>8}  status")
    for name, outcome in zip(names, model.outcomes, strict=True):
        c = outcome.certificate
        output.say(f"{name:{width}}  {c.primal:14.8g}  {c.gap:11.1e}  {c.relative_gap:8.1e}  {outcome.status}")
