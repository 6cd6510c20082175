"""Tables to matrices: numbers as they are, categories as columns of zeros and ones.

A column is categorical when it is named so, when its type says so (text, dictionary), or, in CSV text, when less than
half of its filled cells are numbers. Otherwise it holds numbers, and a cell that is none makes its line a broken one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import Array
from .._optional import require
from .encoding import Column, Encoding
from .errors import DataError, shown

LineOf = Callable[[int], int | None]

_EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
_DENSE_FROM = 0.4  # share of stored entries from which a dense array is the smaller one


@dataclass
class _Bad:
    """Rows that cannot be used, and what is wrong with the first of them."""

    rows: Array
    first: int = -1
    sentence: str = ""

    def add(self, flags: Array, sentence: Callable[[int], str]) -> None:
        if flags.any():
            row = int(np.argmax(flags))
            if self.first < 0 or row < self.first:
                self.first, self.sentence = row, sentence(row)
            self.rows |= flags


@dataclass
class TableReader:
    """Turns one Arrow table into a matrix.

    Parameters
    ----------
    table : pyarrow.Table
    name : str
        The file, for messages.
    line_of : callable
        From a row to its line in the file, None where there are no lines.
    skip_bad : bool
        Whether to leave out broken rows.
    dtype : dtype
        Of X.
    """

    table: Any
    name: str
    line_of: LineOf
    skip_bad: bool
    dtype: Any
    bad: _Bad = field(init=False)
    notes: list[str] = field(default_factory=list)
    unknown: int = 0

    def __post_init__(self) -> None:
        self.bad = _Bad(np.zeros(self.table.num_rows, dtype=bool))
        if self.table.num_rows == 0:
            raise DataError(self.name, "it has no rows.")

    # --- the two ways in --------------------------------------------------------------------------------------------

    def learn(self, target: str, categorical: Sequence[str], ignore: Sequence[str]) -> tuple[Any, Array, Encoding]:
        """Decide what each column is; return X, y and the encoding."""
        self._check_names([target], "target")
        self._check_names(categorical, "categorical")
        self._check_names(ignore, "ignore")
        y = self._target(target)
        columns, parts = [], []
        for name in self.table.column_names:
            if name == target or name in ignore:
                continue
            cells = self.table.column(name)
            if name in categorical or self._is_categorical(name, cells):
                levels, codes = self._learn_levels(cells)
                columns.append(Column(name, levels))
                parts.append(codes)
                if len(levels) > max(20, self.table.num_rows // 2):
                    self.notes.append(
                        f"Column {shown(name)} has {len(levels)} categories in {self.table.num_rows} rows; "
                        f"if it is a name or a number of the row, leave it out with --ignore {name}."
                    )
            else:
                columns.append(Column(name))
                parts.append(self._numbers(name, cells))
        if not columns:
            raise DataError(self.name, "no column is left besides the target.")
        keep = self._rows_to_keep()
        X = self._matrix(columns, parts, keep)
        encoding = Encoding(X.shape[1], np.dtype(self.dtype).name, columns=tuple(columns), target=target)
        return X, y[keep], encoding

    def apply(self, encoding: Encoding, need_target: bool) -> tuple[Any, Array | None]:
        """Read the columns that an encoding names; return X and, where it is there, y."""
        columns = encoding.columns or ()
        absent = [column.name for column in columns if column.name not in self.table.column_names]
        if absent:
            listed = ", ".join(shown(name) for name in absent[:5]) + (", …" if len(absent) > 5 else "")
            raise DataError(self.name, f"the model needs {'columns' if len(absent) > 1 else 'the column'} {listed}.")
        y = None
        if need_target:
            target = encoding.target or ""
            if target not in self.table.column_names:
                raise DataError(self.name, f"the target column {shown(target)} is missing.")
            y = self._target(target)
        parts = []
        for column in columns:
            cells = self.table.column(column.name)
            if column.levels is None:
                parts.append(self._numbers(column.name, cells))
            else:
                codes = self._codes(cells, column.levels)
                self.unknown += int((codes < 0).sum())
                parts.append(codes)
        keep = self._rows_to_keep()
        return self._matrix(columns, parts, keep), None if y is None else y[keep]

    # --- cells ------------------------------------------------------------------------------------------------------

    def _check_names(self, names: Sequence[str], option: str) -> None:
        for name in names:
            if name not in self.table.column_names:
                listed = ", ".join(shown(known) for known in self.table.column_names[:10])
                more = ", …" if self.table.num_columns > 10 else ""
                raise DataError(self.name, f"there is no column {shown(name)} (--{option}); it has {listed}{more}.")

    def _is_categorical(self, name: str, cells: Any) -> bool:
        types = require("pyarrow.types", "cli")
        kind = cells.type
        if types.is_dictionary(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return True
        if types.is_string(kind):
            numbers, empty = _parsed(cells)
            filled = len(cells) - int(empty.sum())
            return filled > 0 and int(np.isfinite(numbers).sum()) < filled / 2
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
            return False
        raise DataError(
            self.name,
            f"column {shown(name)} has the type {kind}, which is neither a number nor text; "
            f"convert it or leave it out with --ignore {name}.",
        )

    def _numbers(self, name: str, cells: Any) -> Array:
        numbers, empty = _parsed(cells)
        self.bad.add(empty, lambda _: f"column {shown(name)} is empty; fill such cells or skip their lines.")
        self.bad.add(
            ~empty & ~np.isfinite(numbers.astype(self.dtype, copy=False)),
            lambda row: f"column {shown(name)}: expected a finite number, got {shown(str(cells[row].as_py()))}.",
        )
        return numbers

    def _target(self, name: str) -> Array:
        cells = self.table.column(name)
        types = require("pyarrow.types", "cli")
        if types.is_boolean(cells.type) or types.is_dictionary(cells.type):
            numbers, empty = np.full(len(cells), np.nan), _nulls(cells)
        else:
            numbers, empty = _parsed(cells)
        self.bad.add(empty, lambda _: f"the target {shown(name)} is empty; skip such lines.")
        if bool((np.isfinite(numbers) | empty).all()):
            return numbers
        if types.is_floating(cells.type):
            self.bad.add(~np.isfinite(numbers), lambda row: f"the target {shown(name)} is {numbers[row]}.")
            return numbers
        return np.asarray(_text(cells).to_numpy(zero_copy_only=False)).astype(str)

    def _learn_levels(self, cells: Any) -> tuple[tuple[str | None, ...], Array]:
        compute = require("pyarrow.compute", "cli")
        found = compute.unique(_text(cells)).to_pylist()
        levels: tuple[str | None, ...] = tuple(sorted(level for level in found if level is not None))
        if None in found:
            levels += (None,)
        return levels, self._codes(cells, levels)

    def _codes(self, cells: Any, levels: tuple[str | None, ...]) -> Array:
        """Return the position of each cell's level, −1 where it is not known."""
        arrow, compute = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
        found = compute.index_in(_text(cells), value_set=arrow.array(levels, type=arrow.string()))
        return np.asarray(compute.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int32)

    # --- the matrix -------------------------------------------------------------------------------------------------

    def _rows_to_keep(self) -> Any:
        """Return which rows are good; complain about the first bad one unless they are to be skipped."""
        if self.bad.first < 0:
            return slice(None)
        if not self.skip_bad:
            line = self.line_of(self.bad.first)
            where = "" if line is not None else f"row {self.bad.first + 1}: "
            raise DataError(self.name, where + self.bad.sentence, line)
        if self.bad.rows.all():
            rows = self.bad.rows.size
            raise DataError(self.name, f"none of its {rows} rows can be used; the first: {self.bad.sentence}")
        return ~self.bad.rows

    def _matrix(self, columns: Sequence[Column], parts: list[Array], keep: Any) -> Any:
        widths = [1 if column.levels is None else len(column.levels) for column in columns]
        starts = np.concatenate([[0], np.cumsum(widths)])
        n, d = parts[0][keep].size, int(starts[-1])
        if len(columns) >= _DENSE_FROM * d:
            dense = np.zeros((n, d), dtype=self.dtype)
            for column, part, start in zip(columns, parts, starts, strict=False):
                cells = part[keep]
                if column.levels is None:
                    dense[:, start] = cells
                else:
                    known = np.flatnonzero(cells >= 0)
                    dense[known, start + cells[known]] = 1.0
            return dense
        indices, values = np.empty((n, len(columns)), dtype=np.int32), np.ones((n, len(columns)), dtype=self.dtype)
        for k, (column, part, start) in enumerate(zip(columns, parts, starts, strict=False)):
            cells = part[keep]
            if column.levels is None:
                indices[:, k], values[:, k] = start, cells
            else:
                indices[:, k], values[:, k] = start + np.maximum(cells, 0), cells >= 0
        stored = values != 0
        wide = np.int32 if stored.size < 2**31 else np.int64
        indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))]).astype(wide)
        return scipy.sparse.csr_array((values[stored], indices[stored].astype(wide), indptr), shape=(n, d))


# --- Arrow columns ----------------------------------------------------------------------------------------------------


def _nulls(cells: Any) -> Array:
    return np.asarray(cells.is_null().to_numpy())


def _text(cells: Any) -> Any:
    """Return a column as one array of strings."""
    arrow = require("pyarrow", "cli")
    if arrow.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    combined = cells.cast(arrow.string()).combine_chunks()
    return combined


def _parsed(cells: Any) -> tuple[Array, Array]:
    """Return a column as float64 numbers, NaN where a cell is none, and which cells are empty."""
    arrow = require("pyarrow", "cli")
    kind = cells.type
    if arrow.types.is_dictionary(kind):
        return _parsed(cells.cast(kind.value_type))
    if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or arrow.types.is_string_view(kind)):
        empty = _nulls(cells)
        numbers = cells.cast(arrow.float64(), safe=False).to_numpy()
        return np.asarray(numbers, dtype=np.float64), empty
    compute = require("pyarrow.compute", "cli")
    trimmed = compute.utf8_trim_whitespace(cells.cast(arrow.string()))
    missing = compute.is_in(trimmed, value_set=arrow.array(_EMPTY))
    empty = np.asarray(missing.to_numpy()) | _nulls(cells)
    filled = compute.if_else(missing, arrow.scalar(None, arrow.string()), trimmed)
    try:
        return np.asarray(filled.cast(arrow.float64()).to_numpy(), dtype=np.float64), empty
    except arrow.ArrowInvalid:
        return np.array([_float_or_nan(cell) for cell in filled.to_pylist()]), empty


def _float_or_nan(cell: str | None) -> float:
    try:
        return float(cell) if cell is not None and "_" not in cell else np.nan
    except ValueError:
        return np.nan
