"""Tables: as text, as CSV and, in a page, as HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row is its name.

    totals: how many of the last rows sum up the others. said: what to see in the table, below its title on a page.
    Cells are text, or numbers in full if the table is for a file.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    totals: int = 0
    said: str = ""

    def as_lines(self) -> list[str]:
        """Return the title, then one line for the columns and one per row: names on the left, the rest on the right."""
        rows = [[str(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return [self.title, *map(str.rstrip, lines)]

    def as_csv(self) -> str:
        """Return the columns and the rows, without the title."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.columns, *self.rows])
        return buffer.getvalue()


def as_text(tables: Iterable[Table]) -> str:
    """Return tables as text, one below the other."""
    return "\n\n".join("\n".join(table.as_lines()) for table in tables)
