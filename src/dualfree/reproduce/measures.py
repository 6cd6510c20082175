"""From traces to numbers: medians over seeds, and how long a method takes to a gap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import Array

TARGETS = tuple(10.0**-k for k in range(1, 11))


@dataclass(frozen=True, slots=True)
class Curve:
    """One method on one problem, over its seeds.

    Attributes
    ----------
    epoch, passes, seconds : array
        Medians over the seeds at each evaluation.
    gap, low, high : array
        Median, smallest and largest relative gap over the seeds.
    statuses : tuple of str
        How the runs ended, one for each seed.
    """

    epoch: Array
    passes: Array
    seconds: Array
    gap: Array
    low: Array
    high: Array
    statuses: tuple[str, ...]

    def reach(self, target: float, axis: str) -> float:
        """Return where the median gap first falls to `target`, interpolated on a log scale; ∞ where it never does."""
        gap = np.minimum.accumulate(self.gap)
        x: Array = getattr(self, axis)
        below = np.flatnonzero(gap <= target)
        if below.size == 0:
            return math.inf
        k = int(below[0])
        if k == 0 or not (math.isfinite(gap[k - 1]) and gap[k] > 0):
            return float(x[k])
        share = math.log(gap[k - 1] / target) / math.log(gap[k - 1] / gap[k])
        return float(x[k - 1] + share * (x[k] - x[k - 1]))


def curve(frame: Any, column: str = "relative_gap") -> Curve:
    """Return the curve of the runs in `frame`, which differ in their seed only.

    A run that ended early keeps its last gap: the methods that converge are not punished for it.
    """
    last = int(frame["epoch"].max())
    runs: dict[str, list[Array]] = {name: [] for name in ("passes", "seconds", column)}
    statuses = []
    seeds = frame["seed"].to_numpy()
    epochs = frame["epoch"].to_numpy()
    for seed in np.unique(seeds):
        mine = np.flatnonzero(seeds == seed)
        mine = mine[np.argsort(epochs[mine], kind="stable")]
        filled = mine[np.searchsorted(epochs[mine], np.arange(last + 1), side="right") - 1]
        statuses.append(str(frame["status"].iloc[mine[0]]))
        for name, values in runs.items():
            values.append(frame[name].to_numpy(dtype=np.float64)[filled])
    gaps = np.array(runs[column])
    return Curve(
        np.arange(last + 1, dtype=np.float64),
        np.median(runs["passes"], axis=0),
        np.median(runs["seconds"], axis=0),
        np.median(gaps, axis=0),
        gaps.min(axis=0),
        gaps.max(axis=0),
        tuple(statuses),
    )


def curves(frame: Any, column: str = "relative_gap") -> dict[tuple[str, str, str, str], Curve]:
    """Return a curve for each (data, loss, strength, method)."""
    keys = ["data", "loss", "strength", "method"]
    return {key: curve(group, column) for key, group in frame.groupby(keys, sort=False)}


def common_target(one: Curve, other: Curve) -> float | None:
    """Return the smallest power of ten that both reach; None where there is none beyond their start."""
    reached = [t for t in TARGETS if all(math.isfinite(c.reach(t, "epoch")) and c.gap[0] > t for c in (one, other))]
    return min(reached, default=None)
