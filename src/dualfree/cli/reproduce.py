"""``dualfree reproduce``: the paper's experiments and, claim by claim, what holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import exits
from .options import json_option, quiet_option
from .output import Output
from .progress import reading_progress

_TITLE_WIDTH = 58


@click.command(short_help="Reproduce the paper's figures and judge its claims.")
@click.option(
    "--data-dir",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Look here for mushrooms and rcv1 (LIBSVM text or .npz). What is missing is downloaded.",
)
@click.option("--out", metavar="FOLDER", type=click.Path(file_okay=False), required=True, help="Write everything here.")
@click.option(
    "--quick", "mode", flag_value="quick", default=True, help="1,500 rows of each data set: a minute. [default]"
)
@click.option("--full", "mode", flag_value="full", help="All rows: tens of minutes.")
@click.option("--seeds", type=click.IntRange(min=1), help="Seeds of each run.  [default: 3]")
@click.option(
    "--no-download", is_flag=True, help="Do not use the network; what is missing is made up, and labelled so."
)
@json_option
@quiet_option
def reproduce(
    data_dir: str | None, out: str, mode: str, seeds: int | None, no_download: bool, as_json: bool, quiet: bool
) -> int:
    r"""Regenerate the paper's experiments and say, claim by claim, what holds.

    Writes a page (index.html), the figures (PNG, SVG), the verdicts (claims.json) and the traces of all runs (Parquet).
    Interrupted, it goes on where it was when the same command is given again.

    \b
    Examples:
      dualfree reproduce --data-dir data --out paper
      dualfree reproduce --data-dir data --out paper-full --full --seeds 5
    """
    from ..reproduce import reproduce as run

    output = Output("reproduce", as_json)
    with plan_bar(quiet) as progress, reading_progress("the paper's data", quiet) as download_progress:
        try:
            made = run(
                data_dir,
                out,
                mode=mode,
                seeds=seeds,
                progress=progress,
                download=not no_download,
                download_progress=download_progress,
                note=output.note,
            )
        except KeyboardInterrupt:
            return interrupted(output, out)
    for source in made.data.values():
        output.say(f"{source.name}: {source.label}, {source.X.shape[0]:,} × {source.X.shape[1]:,} ({source.origin})")
    width = max(len(claim.id) for claim in made.claims)
    for claim in made.claims:
        output.say(f"  {claim.id:<{width}}  {claim.verdict}")
    output.say(f"Wrote {made.out / 'index.html'}, claims.json, traces.parquet and figures in {made.seconds:.0f} s.")
    output.put(
        out=str(made.out),
        seconds=made.seconds,
        data=[
            {"name": s.name, "label": s.label, "origin": s.origin, "synthetic": s.synthetic} for s in made.data.values()
        ],
        verdicts={claim.id: claim.verdict for claim in made.claims},
    )
    return output.end(exits.CERTIFIED)


def interrupted(output: Output, out: str) -> int:
    """Say that nothing is lost; return the exit status."""
    output.note(
        f"dualfree: interrupted; the runs that are done are kept in {out}. The same command goes on from there."
    )
    return output.end(exits.INTERRUPTED)


@contextlib.contextmanager
def plan_bar(quiet: bool) -> Iterator[Callable[[float, float, str], None] | None]:
    """Give a callback that draws one bar over a whole plan, or None."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns: list[Any] = [
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    ]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the data", total=None)

        def update(done: float, total: float, title: str) -> None:
            shown = title if len(title) <= _TITLE_WIDTH else title[: _TITLE_WIDTH - 1] + "…"
            bar.update(task, completed=done, total=total, description=shown)

        yield update
