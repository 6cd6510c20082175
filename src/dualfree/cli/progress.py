"""Progress on standard error, and only where somebody is looking."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..solvers import State

if TYPE_CHECKING:
    from ..distributed import RoundState

_WORTH_A_BAR = 16 << 20  # bytes; smaller files are read before anybody could look


def _console() -> Console:
    return Console(stderr=True)


@contextlib.contextmanager
def reading_progress(name: str, quiet: bool) -> Iterator[Any]:
    """Give a callback for the readers that draws a bar, or None."""
    console = _console()
    if quiet or not console.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(f"reading {os.path.basename(name) if name != '-' else 'standard input'}", total=None)

    def update(done: int, size: int | None) -> None:
        if done >= _WORTH_A_BAR and not bar.live.is_started:
            bar.start()
        bar.update(task, completed=done, total=size)

    try:
        yield update
    finally:
        bar.stop()


class FitProgress:
    """The live line of a fit: how far the gap has come, on a log scale, from where it started towards tol.

    Parameters
    ----------
    quiet : bool
        Draw nothing.
    columns : int
        Problems to solve; more than one for several classes.
    tol : float
        The relative gap asked for.
    what : str
        What a problem is called, where there are several.
    unit : str
        What is counted.
    """

    def __init__(self, quiet: bool, columns: int, tol: float, what: str = "class", unit: str = "epoch") -> None:
        console = _console()
        self._what, self._unit = what, unit
        self._columns, self._tol = columns, tol
        self._first_gap = math.nan
        self._bar = None
        if not quiet and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[left]}"),
                console=console,
            )
            self._task = self._bar.add_task("starting", total=1.0, left="")

    def __enter__(self) -> FitProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, column: int, at_zero: float, state: State | RoundState) -> None:
        """Draw the state of one evaluation of a problem whose objective is `at_zero` at w = 0."""
        if self._bar is None:
            return
        gap, target = state.certificate.gap, self._tol * at_zero
        if state.epoch == 0:
            self._first_gap = gap
        which = f"{self._what} {column + 1} of {self._columns}, " if self._columns > 1 else ""
        self._bar.update(
            self._task,
            description=f"{which}{self._unit} {state.epoch:>4}  gap {gap:8.1e}",
            completed=share_done(self._first_gap, gap, target),
            left=f"→ {target:.1e}  {state.seconds:.1f} s{_left_in_words(state, target)}",
        )


def share_done(first: float, gap: float, target: float) -> float:
    """Return how much of the way from the first gap to the target is done, on a log scale: 0 to 1."""
    if gap <= target:
        return 1.0
    if not (0 < target < first < math.inf and gap < first):
        return 0.0
    return math.log(first / gap) / math.log(first / target)


def seconds_left(gaps: list[float], seconds: list[float], target: float) -> float | None:
    """Extrapolate the last evaluations, a straight line on a log scale; None where they do not fall."""
    if len(gaps) < 2 or not 0 < target < gaps[-1]:
        return None
    back = max(0, len(gaps) - 5)
    fall, took = math.log(gaps[back] / gaps[-1]) if gaps[-1] > 0 else 0.0, seconds[-1] - seconds[back]
    if not (0 < fall < math.inf) or took <= 0:
        return None
    return math.log(gaps[-1] / target) * took / fall


def _left_in_words(state: State | RoundState, target: float) -> str:
    gaps = [entry.gap for entry in state.trace]
    left = seconds_left(gaps, [entry.seconds for entry in state.trace], target)
    if left is None or left < 1.0:
        return ""
    return f", about {left:.0f} s left" if left < 120 else f", about {left / 60:.0f} min left"


def show_cursor() -> None:
    """Undo what the live line does to the terminal, for an end without clean-up."""
    if sys.stderr.isatty():
        os.write(2, b"\x1b[?25h")
