"""The history of a fit as a table: Parquet, CSV or lines of JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .._optional import require
from ..io import Model, written_in_place
from ..report.words import column_names
from ..result import Result

if TYPE_CHECKING:
    from ..distributed import DistributedResult

TRACE_SUFFIXES = (".parquet", ".csv", ".jsonl")


def write_trace(model: Model, results: Sequence[Result | DistributedResult], path: str | os.PathLike[str]) -> None:
    """Write one row per evaluation; the first column says which of the model's columns it belongs to."""
    pandas = require("pandas", "report")
    frames = []
    for name, result in zip(column_names(model), results, strict=True):
        frame = result.trace.to_frame()
        frame.insert(0, "column", name)
        frames.append(frame)
    table = pandas.concat(frames, ignore_index=True)
    suffix = Path(path).suffix
    with written_in_place(path) as temporary:
        if suffix == ".parquet":
            table.to_parquet(temporary, engine="pyarrow", index=False)
        elif suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_json(temporary, orient="records", lines=True)
