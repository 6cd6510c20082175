"""One cell: the reference, the tolerances of each solver, then interleaved repeats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .datasets import DataSet
from .grid import Cell
from .ladder import Attempt, Choice, choose
from .peers import OURS, Peer
from .reference import Reference, reference_for
from .worker import Fit, Job, Worker, task_of

_TINY = 0.05  # seconds; shorter fits are repeated more often
_TINY_FACTOR = 3
_LEAST_WORTH = 0.02  # seconds; below this, giving up would save nothing
_LEAST_LIMIT = 0.5  # seconds; a new process costs more than waiting that long


@dataclass(frozen=True)
class Effort:
    """How much time a cell may take.

    `patience` seconds are the most for one fit; a fit that takes `give_up` times as long as the best solver needed for a
    level is not followed by tighter ones. A peer beyond `contender` times the best is not repeated: what was measured
    while its tolerance was chosen says enough.
    """

    repeats: int = 5
    patience: float = 60.0
    give_up: float = 20.0
    contender: float = 5.0


@dataclass
class _Setting:
    """A solver at a tolerance that was chosen for at least one level."""

    peer: Peer
    tol: float
    first: Attempt
    levels: list[float] = field(default_factory=list)
    rounds: int = 0
    seconds: list[float] = field(default_factory=list)
    reached: list[float] = field(default_factory=list)


class CellRun:
    """The measurement of one cell."""

    def __init__(self, cell: Cell, data: DataSet, worker: Worker, effort: Effort) -> None:
        self.cell, self.worker, self.effort = cell, worker, effort
        self.reference: Reference = reference_for(task_of(data, cell))
        self.best: dict[float, float] = {}

    def measure(self, peers: Sequence[Peer], levels: Sequence[float]) -> list[dict[str, Any]]:
        """Return a row for each solver and level."""
        judged = [level for level in levels if self.reference.can_judge(level)]
        choices = {peer.name: self._choose(peer, judged) if judged else Choice() for peer in peers}
        settings = _settings(peers, choices)
        self._repeat(list(settings.values()))
        rows = []
        for peer in peers:
            choice = choices[peer.name]
            for level in levels:
                if level not in judged:
                    rows.append(_row(peer, level, note="the reference is not close enough to judge this level"))
                elif level in choice.missed:
                    rows.append(_row(peer, level, note=choice.missed[level]))
                else:
                    rows.append(_row(peer, level, settings[peer.name, choice.chosen[level][0]]))
        return rows

    # --- tolerances -------------------------------------------------------------------------------------------------

    def _choose(self, peer: Peer, levels: Sequence[float]) -> Choice:
        def attempt(tol: float, limit: float) -> Attempt:
            return self._attempt(peer, tol, limit)

        choice = choose(attempt, peer.tolerances, levels, self._worth)
        if choice.error:  # it may be the best peer: nobody should have to find out from a column
            print(f"  {self.cell}: {peer.name} failed: {choice.error}", flush=True)
        for level, (_, attempted) in choice.chosen.items():
            self.best[level] = min(attempted.seconds, self.best.get(level, math.inf))
        return choice

    def _worth(self, level: float) -> float:
        best = self.best.get(level, math.inf)
        return min(self.effort.patience, max(_LEAST_WORTH, self.effort.give_up * best))

    def _attempt(self, peer: Peer, tol: float, limit: float) -> Attempt:
        outcome = self.worker.fit(Job(self.cell, peer.name, tol), max(limit, _LEAST_LIMIT))
        if isinstance(outcome, Fit):
            reached = self.reference.suboptimality(outcome.answer)
            return Attempt(outcome.seconds, reached, outcome.answer.converged)
        return Attempt(math.nan, math.nan, failed=outcome.note, broken=not outcome.too_slow)

    # --- repeats ----------------------------------------------------------------------------------------------------

    def _repeat(self, settings: list[_Setting]) -> None:
        """Run all settings in turn, so that other work on the machine hits them alike."""
        for setting in settings:  # once for all of them, so that nothing is loaded or compiled in what counts
            again = self._attempt(setting.peer, setting.tol, self.effort.patience)
            setting.first = min(setting.first, again, key=lambda one: math.inf if one.failed else one.seconds)
        for level in self.best:
            self.best[level] = min(setting.first.seconds for setting in settings if level in setting.levels)
        for setting in settings:
            setting.rounds = self._rounds(setting)
        for number in range(max((setting.rounds for setting in settings), default=0)):
            for setting in settings:
                if number < setting.rounds:
                    attempt = self._attempt(setting.peer, setting.tol, self.effort.patience)
                    if not attempt.failed:
                        setting.seconds.append(attempt.seconds)
                        setting.reached.append(attempt.reached)

    def _rounds(self, setting: _Setting) -> int:
        seconds = setting.first.seconds
        hopeless = all(seconds > self.effort.contender * self.best[level] for level in setting.levels)
        if hopeless and setting.peer.name != OURS:
            return 0
        return self.effort.repeats * (_TINY_FACTOR if seconds < _TINY else 1)


def _settings(peers: Sequence[Peer], choices: dict[str, Choice]) -> dict[tuple[str, float], _Setting]:
    settings: dict[tuple[str, float], _Setting] = {}
    for peer in peers:
        for level, (tol, first) in choices[peer.name].chosen.items():
            settings.setdefault((peer.name, tol), _Setting(peer, tol, first)).levels.append(level)
    return settings


def _row(peer: Peer, level: float, setting: _Setting | None = None, note: str = "") -> dict[str, Any]:
    row = {"solver": peer.name, "level": level, "note": note}
    if setting is None:
        nothing = dict.fromkeys(("seconds", "seconds_min", "seconds_max", "tol", "reached"), math.nan)
        return {**row, **nothing, "repeats": 0, "converged": None}
    seconds = setting.seconds or [setting.first.seconds]
    return {
        **row,
        "seconds": float(np.median(seconds)),
        "seconds_min": min(seconds),
        "seconds_max": max(seconds),
        "tol": setting.tol,
        "reached": max(setting.reached, default=setting.first.reached),
        "repeats": len(seconds),
        "converged": setting.first.converged,
    }
