"""The history of a solve: one entry per evaluation of the certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ._checks import Array

QUANTILES = (0.5, 0.9, 0.99, 1.0)
_QUANTILE_ROWS = 1024


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """What was known at one evaluation.

    Attributes
    ----------
    epoch : int
        n coordinate updates are one epoch.
    passes : float
        Rows touched by the solver until now, residual scans included, divided by n.
    seconds : float
        Time spent solving, evaluations excluded.
    evaluation_seconds : float
        Time spent on certificates.
    primal, dual, gap : float
        Of the point evaluated, not of the best one so far.
    residual_quantiles : tuple of float
        The 0.5, 0.9, 0.99 and 1.0 quantiles of |κ_i|; all but the last from at most 1,024 evenly spaced rows.
    phase : str
        Which method made the last step (``auto`` changes methods on its way).
    """

    epoch: int
    passes: float
    seconds: float
    evaluation_seconds: float
    primal: float
    dual: float
    gap: float
    residual_quantiles: tuple[float, ...]
    phase: str


@dataclass
class Trace:
    """The entries in order; a column is an attribute of the same name.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> problem = df.Problem(np.eye(4), [1.0, 2.0, 3.0, 4.0], loss="squared", lam=1.0)
    >>> trace = df.solve(problem, random_state=0).trace
    >>> bool(trace.gap[-1] <= 1e-6 * problem.at_zero)
    True
    >>> len(trace) == len(trace.epoch)
    True
    """

    entries: list[TraceEntry] = field(default_factory=list)

    def append(self, entry: TraceEntry) -> None:
        """Add one evaluation."""
        self.entries.append(entry)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[TraceEntry]:
        return iter(self.entries)

    def __getitem__(self, index: int) -> TraceEntry:
        return self.entries[index]

    def __getattr__(self, name: str) -> Array:
        if name in TraceEntry.__dataclass_fields__:
            return np.array([getattr(entry, name) for entry in self.entries])
        raise AttributeError(f"Trace has no column {name!r}; it has {', '.join(TraceEntry.__dataclass_fields__)}.")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per evaluation."""
        from ._optional import require

        pandas = require("pandas", "report")
        records = []
        for entry in self.entries:
            record = asdict(entry)
            quantiles = record.pop("residual_quantiles")
            record.update({f"residual_q{int(100 * q)}": value for q, value in zip(QUANTILES, quantiles, strict=True)})
            records.append(record)
        return pandas.DataFrame.from_records(records)


def residual_quantiles(absolute: Array) -> tuple[float, ...]:
    """Return the quantiles of |κ|, the largest of all rows and the others of at most 1,024 evenly spaced ones."""
    return quantiles_of(absolute[:: quantile_step(absolute.size)], float(absolute.max()))


def quantile_step(n: int) -> int:
    """How far the rows are apart that quantiles are taken from."""
    return -(-n // _QUANTILE_ROWS)


def quantiles_of(some: Array, largest: float) -> tuple[float, ...]:
    """Return the quantiles of |κ|, given that of some rows and the largest of all."""
    in_order = np.sort(some)
    ranks = [min(some.size - 1, math.ceil(q * some.size) - 1) for q in QUANTILES[:-1]]
    return (*(float(in_order[rank]) for rank in ranks), largest)
