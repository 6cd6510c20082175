"""CSV and TSV text to an Arrow table whose columns are all text; `table` decides what they mean.

Reading everything as text first costs some memory and buys two things: a column's kind is decided from all its cells,
not from the first block, and a cell that cannot be read leads to an exact line number.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from .._optional import require
from .errors import DataError, shown
from .streams import Source


class CsvText:
    """A parsed CSV file.

    Attributes
    ----------
    table : pyarrow.Table
        One column of text per column of the file.
    bad_lines : int
        Lines with the wrong number of cells that were skipped.
    """

    def __init__(self, source: Source, delimiter: str, header: bool, skip_bad_lines: bool) -> None:
        self._name, self._delimiter, self._header = source.name, delimiter, header
        with source.readable():
            self._content = source.stream.read()
        self._check_utf8()
        self.bad_lines = 0
        self._skip = skip_bad_lines
        self.table = self._parse()

    def _check_utf8(self) -> None:
        if self._content.isascii():
            return
        try:
            self._content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self._content.count(b"\n", 0, error.start) + 1
            byte = self._content[error.start]
            raise DataError(self._name, f"the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8.", line) from None

    def _parse(self) -> Any:
        arrow, arrow_csv = require("pyarrow", "cli"), require("pyarrow.csv", "cli")
        names = self._names()
        try:
            return arrow_csv.read_csv(
                arrow.BufferReader(self._content),
                read_options=arrow_csv.ReadOptions(
                    column_names=names, skip_rows_after_names=1 if self._header else 0, block_size=_block(self._content)
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._on_bad_row
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, arrow.string()), strings_can_be_null=False
                ),
            )
        except arrow.ArrowInvalid as error:
            line = self._first_bad_line(len(names))
            if line is not None:
                count, number = line
                raise DataError(self._name, f"expected {len(names)} cells, got {count}.", number) from None
            raise DataError(self._name, f"this is not readable CSV text ({_first_line(error)}).") from None

    def _on_bad_row(self, row: Any) -> str:
        if not self._skip:
            return "error"
        self.bad_lines += 1
        return "skip"

    def _names(self) -> list[str]:
        """Return the names in the first line, or made-up ones for a file without a header."""
        first = next(self._records(), None)
        if first is None:
            raise DataError(self._name, "it is empty.")
        cells = first[1]
        if not self._header:
            return [f"column{i + 1}" for i in range(len(cells))]
        if all(_is_number(cell) for cell in cells):
            raise DataError(
                self._name,
                f"expected the names of the columns, got the numbers {shown(self._delimiter.join(cells))}. "
                "Say --no-header if the file has none.",
                first[0],
            )
        for i, name in enumerate(cells):
            if name in cells[:i]:
                raise DataError(self._name, f"the column {shown(name)} occurs twice.", first[0])
        return cells

    def _records(self) -> Any:
        """Yield (line number, cells) for each record that is not empty. Slow: for the header and for error messages."""
        text = io.TextIOWrapper(io.BytesIO(self._content), encoding="utf-8-sig", errors="replace", newline="")
        reader = csv.reader(text, delimiter=self._delimiter)
        while True:
            number = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(self._name, f"this is not readable CSV text ({error}).", number) from None
            if cells:
                yield number, cells

    def _first_bad_line(self, width: int) -> tuple[int, int] | None:
        for number, cells in self._records():
            if len(cells) != width:
                return len(cells), number
        return None

    def line_of(self, row: int) -> int | None:
        """Return the line on which a row of the table begins."""
        records = ((number, cells) for number, cells in self._records() if len(cells) == self.table.num_columns)
        for at, (number, _) in enumerate(records, start=-1 if self._header else 0):
            if at == row:
                return int(number)
        return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _block(content: bytes) -> int:
    """Blocks must be larger than the longest record; for most files one block of 16 MiB at a time is right."""
    return max(1, min(len(content), 16 << 20))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")
