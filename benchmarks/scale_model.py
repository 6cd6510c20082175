"""What a round costs, fitted to measured rounds, and what that says about a cluster that nobody measured.

    seconds of a round =   per_entry     · non-zeros that the busiest core visits, where w fits its cache
                         + per_far_entry · non-zeros that it visits, where w does not
                         + per_round                                (one request and one answer)
                         + per_partition · partitions               (tasks that the scheduler hands out)
                         + per_byte      · bytes of w and of the answers

The constants are fitted by non-negative least squares. Each equation is divided by the seconds measured, so that the fit
minimises relative errors: a round of 10 ms counts as much as one of 10 s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy.optimize import nnls

_NUMBER = 8  # bytes of a weight
_NEAR_BYTES = 1 << 21  # of w, that a core's own cache holds


@dataclass(frozen=True)
class Rounds:
    """Rounds of one fit: what was done in each, and how long it took on average.

    `entries` are the non-zeros visited in a round by all partitions together; `cores` is the number that shared them. `d` is
    the length of w.
    """

    name: str
    partitions: int
    cores: int
    entries: float
    d: float
    seconds: float

    @property
    def n_bytes(self) -> float:
        """Bytes of w to each partition and of a vector from each."""
        return 2.0 * _NUMBER * self.d * self.partitions

    @property
    def parts(self) -> tuple[float, float, float, float, float]:
        """What each constant is multiplied by."""
        entries = self.entries / min(self.partitions, self.cores)
        near, far = (entries, 0.0) if fits_cache(self.d) else (0.0, entries)
        return near, far, 1.0, float(self.partitions), self.n_bytes


def fits_cache(d: float) -> bool:
    """Return whether w of that length fits a core's own cache."""
    return _NUMBER * d <= _NEAR_BYTES


@dataclass(frozen=True)
class Constants:
    """Seconds for each non-zero visited, with w in the cache and without, round, partition and byte."""

    per_entry: float
    per_far_entry: float
    per_round: float
    per_partition: float
    per_byte: float

    def seconds(self, rounds: Rounds) -> float:
        """Return what the model says of a round."""
        return float(np.dot(astuple(self), rounds.parts))

    def residual(self, rounds: Rounds) -> float:
        """Return measured over modelled, minus one."""
        return rounds.seconds / self.seconds(rounds) - 1.0


def fit(measured: Sequence[Rounds]) -> Constants:
    """Return the constants, none of which is negative, that come closest to the measured rounds."""
    matrix = np.array([rounds.parts for rounds in measured])
    seconds = np.array([rounds.seconds for rounds in measured])
    if len(measured) < matrix.shape[1]:
        raise ValueError(f"{matrix.shape[1]} constants need as many different rounds, got {len(measured)}.")
    scaled = matrix / seconds[:, None]
    size = np.linalg.norm(scaled, axis=0)  # the columns differ by ten orders of magnitude
    size[size == 0.0] = 1.0  # what no round had, entries far from the processor for example: its constant is 0
    found, _ = nnls(scaled / size, np.ones(len(measured)))
    return Constants(*(float(value) for value in found / size))


def growth(partitions: Sequence[int], rounds: Sequence[int]) -> float:
    """Return the exponent e of rounds ∝ K^e, by least squares on the logarithms."""
    if len(set(partitions)) < 2:
        raise ValueError("partitions must hold at least two numbers; one says nothing of growth.")
    return float(np.polyfit(np.log(partitions), np.log(rounds), 1)[0])


@dataclass(frozen=True)
class Cluster:
    """Data and workers for which to predict. Each worker has one partition and a core of its own.

    `visits` is how often a round goes through the rows: a part of a pass, or two passes and once more for the sum of α_i x_i.
    """

    rows: float
    entries_per_row: float
    d: int
    workers: int
    visits: float
    fan_in: int = 8


@dataclass(frozen=True)
class Prediction:
    """Seconds of a round by cause.

    `one_wire` lets all bytes go one after the other, as they do when all workers share one machine. `tree` lets the workers
    send at the same time: only what one worker receives on its level of the sum counts, and w going down likewise.
    """

    computation: float
    latency: float
    one_wire: float
    tree: float

    @property
    def worst(self) -> float:
        """Seconds of a round where all bytes share one wire."""
        return self.computation + self.latency + self.one_wire

    @property
    def best(self) -> float:
        """Seconds of a round where the workers send at the same time."""
        return self.computation + self.latency + self.tree


def predict(constants: Constants, cluster: Cluster) -> Prediction:
    """Return what a round would cost on a cluster."""
    entries = cluster.rows * cluster.entries_per_row * cluster.visits / cluster.workers
    vector = _NUMBER * cluster.d
    levels = math.ceil(math.log(cluster.workers, cluster.fan_in)) if cluster.workers > 1 else 0
    return Prediction(
        computation=(constants.per_entry if fits_cache(cluster.d) else constants.per_far_entry) * entries,
        latency=constants.per_round + constants.per_partition * cluster.workers,
        one_wire=constants.per_byte * 2 * cluster.workers * vector,
        tree=constants.per_byte * 2 * min(cluster.fan_in * levels, cluster.workers) * vector,
    )


def worker_bytes(cluster: Cluster, kept: int) -> float:
    """Return what a worker holds: rows in float32 with 32-bit indices, `kept` dual vectors, a few vectors of length d."""
    rows = cluster.rows / cluster.workers
    return rows * (8 * cluster.entries_per_row + _NUMBER * (kept + 6)) + 4 * _NUMBER * cluster.d
