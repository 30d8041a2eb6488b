"""A table: as text, as CSV, and, with a page, as HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Table", "as_text"]


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row is its name. totals: the last rows that sum up the others.

    Cells are text; numbers in full, where the table is for a file.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    totals: int = 0

    def as_lines(self) -> list[str]:
        """The title, and a line for the columns and each row: names to the left, all else to the right."""
        rows = [[str(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return [self.title, *map(str.rstrip, lines)]

    def as_csv(self) -> str:
        """The columns and the rows, without the title."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.columns, *self.rows])
        return buffer.getvalue()


def as_text(tables: Iterable[Table]) -> str:
    """Tables as text, one below the other."""
    return "\n\n".join("\n".join(table.as_lines()) for table in tables)
