"""Results in a Parquet file: one row per cell, solver and level. It grows cell by cell and is whole at any time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dualfree.io import written_in_place

from .grid import KEY, Cell

_NEEDED = {*KEY, "solver", "level", "seconds"}


class Results:
    """The rows of a file; a file that is not there is an empty one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.frame = pd.DataFrame()
        if path.exists():
            self.frame = pd.read_parquet(path)
            missing = _NEEDED - set(self.frame.columns)
            if missing:
                raise ValueError(
                    f"{path} holds no results of this benchmark: it lacks {', '.join(sorted(missing))}. Name another --out."
                )

    def has(self, cell: Cell, solvers: Iterable[str], levels: Collection[float]) -> bool:
        """Whether the cell has been measured for all of these solvers at all of these levels."""
        rows = self.frame[self.rows_of(cell)] if len(self.frame) else self.frame
        if rows.empty:
            return False
        there = set(zip(rows.solver, rows.level, strict=True))
        return all((solver, level) in there for solver in solvers for level in levels)

    def put(self, cell: Cell, rows: Sequence[dict[str, Any]], **everywhere: Any) -> None:
        """Store the rows of a cell; rows of the same solvers and levels are replaced, others stay. Write the file."""
        stamp = datetime.now(UTC).isoformat(timespec="seconds")
        new = pd.DataFrame([{**asdict(cell), **row, **everywhere, "measured_at": stamp} for row in rows])
        new["converged"] = new["converged"].astype("boolean")
        if len(self.frame):
            replaced = set(zip(new.solver, new.level, strict=True))
            pairs = zip(self.frame.solver, self.frame.level, strict=True)
            same = np.array([pair in replaced for pair in pairs])
            new = pd.concat([self.frame[~(self.rows_of(cell) & same)], new], ignore_index=True)
        self.frame = new
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written_in_place(self.path) as temporary:
            self.frame.to_parquet(temporary)

    def rows_of(self, cell: Cell) -> pd.Series:
        """Return which rows belong to a cell, as a mask."""
        return (self.frame[list(KEY)] == pd.Series(asdict(cell))).all(axis=1)
