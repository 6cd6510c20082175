"""The results as Markdown, for the README and the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dualfree.io import written_in_place

from .summary import KIND, kind_title, loose_references, ratios, totals


def write_markdown(frame: pd.DataFrame, path: Path) -> None:
    """Write totals, then a line for each data set and loss, then every cell."""
    text = "\n".join(_text(frame)) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_in_place(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _text(frame: pd.DataFrame) -> Iterator[str]:
    cells = ratios(frame)
    if cells.empty:
        yield "No cell has been measured both with dualfree and with a peer."
        return
    yield "Best peer's time divided by ours, the best peer chosen per cell; above 1 we are faster."
    yield ""
    yield from _totals(cells)
    for kind, group in cells.groupby(list(KIND), sort=False):
        yield f"### Per data set: {kind_title(*kind)}"
        yield "Geometric mean over λn (worst)."
        yield ""
        yield from _per_set(group)
    for kind, group in cells.groupby(list(KIND), sort=False):
        yield f"### Every cell: {kind_title(*kind)}"
        yield "Milliseconds of ours / of the best peer (its name), and the ratio."
        yield ""
        yield from _every_cell(group)
    yield from (f"- {sentence}" for sentence in loose_references(cells))
    yield ""
    yield from _provenance(frame)


def _totals(cells: pd.DataFrame) -> Iterator[str]:
    yield "| run | level | geometric mean | worst cell | won | only ours / only peers / nobody |"
    yield "|---|---|---|---|---|---|"
    for _, row in totals(cells).iterrows():
        worst = f"{_number(row.worst)} ({row.worst_cell})" if row.worst_cell else "–"
        yield (
            f"| {kind_title(*row[list(KIND)])} | {row.level:g} | {_number(row.geometric_mean)} "
            f"| {worst} | {row.won} of {row.cells} | {row.only_ours} / {row.only_peers} / {row.nobody} |"
        )
    yield ""


def _per_set(cells: pd.DataFrame) -> Iterator[str]:
    levels = sorted(cells.level.unique(), reverse=True)
    yield from _header(["data", "loss", *(f"{level:g}" for level in levels)])
    for (data, loss), group in cells.groupby(["data", "loss"], sort=False):
        entries = []
        for level in levels:
            known = group[(group.level == level) & group.ratio.notna()].ratio
            both = known[(known > 0) & np.isfinite(known)]
            mean = _number(float(np.exp(np.log(both).mean()))) if len(both) else "–"
            entries.append(f"{mean} ({_number(known.min())})" if len(known) else "–")
        yield f"| {data} | {loss} | {' | '.join(entries)} |"
    yield ""


def _every_cell(cells: pd.DataFrame) -> Iterator[str]:
    levels = sorted(cells.level.unique(), reverse=True)
    yield from _header(["data", "loss", "λn", *(f"{level:g}" for level in levels)])
    for (data, loss, lam_n), group in cells.groupby(["data", "loss", "lam_n"], sort=False):
        by_level = {row.level: _entry(row) for _, row in group.iterrows()}
        yield f"| {data} | {loss} | {lam_n:g} | {' | '.join(by_level.get(level, '–') for level in levels)} |"
    yield ""


def _header(columns: list[str]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"


def _entry(row: pd.Series) -> str:
    ours = "not reached" if math.isnan(row.ours) else f"{1e3 * row.ours:.3g}"
    if not row.peer:
        return f"{ours} / no peer"
    return f"{ours} / {1e3 * row.theirs:.3g} ({row.peer}): **{_number(row.ratio)}**"


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else f"{value:.2f}"


def _provenance(frame: pd.DataFrame) -> Iterator[str]:
    """Say what was measured on what; more than one line where a file holds more than one run."""
    for (machine, versions, commit), group in frame.groupby(["machine", "versions", "commit"], sort=False):
        when = sorted({stamp[:10] for stamp in group.measured_at})
        days = when[0] if len(when) == 1 else f"{when[0]} to {when[-1]}"
        yield f"Measured {days} on {machine}; {versions}; commit {commit or 'unknown'}."
