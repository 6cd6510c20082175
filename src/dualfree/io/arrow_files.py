"""Parquet, and Arrow's own file and stream formats (Feather is the former)."""

from __future__ import annotations

from typing import Any

from .._optional import require
from .errors import DataError, shown
from .streams import Source


def read_arrow(source: Source, parquet: bool) -> Any:
    """Return the file as a pyarrow.Table."""
    arrow = require("pyarrow", "cli")
    with source.readable():
        buffer = arrow.BufferReader(source.stream.read())
    kind = "Parquet" if parquet else "Arrow"
    try:
        if parquet:
            table = require("pyarrow.parquet", "cli").read_table(buffer)
        elif source.head.startswith(b"ARROW1"):
            table = arrow.ipc.open_file(buffer).read_all()
        else:
            table = arrow.ipc.open_stream(buffer).read_all()
        table.validate(full=True)
        names = table.column_names
    except (arrow.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise DataError(source.name, f"this is not a readable {kind} file ({reason}).") from None
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DataError(source.name, f"the column {shown(name)} occurs twice.")
    return table
