"""CSV and TSV: a header of names, then numbers, parsed by NumPy."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwise.io.files import Source
from rankwise.io.quoting import message_of, shown
from rankwise.io.tables import Columns, Dataset, Wanted, check_size, choose_columns, samples_of

_DELIMITERS = ",\t;"
# What else may separate columns, in the eyes of other programs.
_SPACED = re.compile(r"[\s|:]")
_MISSING = ("", "na", "n/a", "nan", "null", "none")
_OPEN_QUOTE = "a quote is not closed; close it, or remove it"


class Table(NamedTuple):
    """A table whose header was read: its names, their line, and the lines that follow, with their numbers."""

    names: list[str]
    line: int
    delimiter: str
    lines: Iterator[tuple[int, str]]


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples: a label column, a query column, and features in all other columns."""
    table = open_table(source)
    names, where = table.names, f"{source.name}, line {table.line}"
    if wanted.require_labels and len(names) == 1 and _SPACED.search(names[0]):
        raise ValueError(
            f"{where}: the header has one column, {shown(names[0])}; separate columns by commas, tabs or semicolons"
        )
    columns = choose_columns(names, wanted, where)
    codes: dict[str, int] = {}
    try:
        values = _numbers(table, columns, codes)
    except ValueError as error:
        _raise_fault(source, columns)
        raise ValueError(f"{source.name}: {message_of(error)}") from None
    check_size(source.name, len(values), len(columns.features), wanted.width)
    if values.shape[1] != len(names) or not np.isfinite(values).all():
        _raise_fault(source, columns)
        raise ValueError(f"{source.name}: it changed while it was read; read it again")
    qid = None if columns.query is None else _as_qid(list(codes))[values[:, columns.query].astype(np.intp)]
    return samples_of(source.name, columns, lambda k: values[:, k], qid)


def open_table(source: Source) -> Table:
    """Read the header of a table."""
    lines = _lines(source)
    number, first = next(lines, (0, ""))
    where = f"{source.name}, line {number}"
    if not first:
        raise ValueError(f"{source.name} holds no samples; begin it with a line of column names")
    if not _is_closed(first):
        raise ValueError(f"{where}: {_OPEN_QUOTE}")
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    except csv.Error as error:
        raise ValueError(f"{where}: the header cannot be read ({message_of(error)}); correct it") from None
    if all(_is_number(name) for name in names):
        raise ValueError(f"{where}: the header has numbers, not column names; add a line of names at the top")
    return Table(names, number, delimiter, lines)


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers. A carriage return alone may end a line."""
    number = 0
    for _, block in source.lines():
        for line in block.splitlines():
            number += 1
            if line.strip(b" "):
                try:
                    yield number, line.decode()
                except UnicodeDecodeError as error:
                    where = f"{source.name}, line {number}: byte 0x{line[error.start]:02x}"
                    raise ValueError(f"{where} is not UTF-8; save it as UTF-8") from None


def _numbers(table: Table, columns: Columns, codes: dict[str, int]) -> NDArray[np.float64]:
    """Return every cell as a number: 0 in ignored columns, and the codes of queries, which are added to codes."""
    rows = (line if _is_closed(line) else _refuse() for _, line in table.lines)
    first = next(rows, None)
    if first is None:
        return np.empty((0, len(table.names)))

    def code_of(cell: str) -> float:
        return codes.setdefault(cell.strip() or _refuse(), len(codes))

    readers: dict[int | str, Any] = dict.fromkeys(columns.ignored, lambda cell: 0.0)
    if columns.query is not None:
        readers[columns.query] = code_of
    return np.loadtxt(
        chain([first], rows),
        delimiter=table.delimiter,
        comments=None,
        quotechar='"',
        converters=readers,
        ndmin=2,
        encoding="utf-8",
    )


def _refuse() -> NoReturn:
    raise ValueError("a line that cannot be read")  # `_raise_fault` says which and why


def _is_closed(line: str) -> bool:
    # An open quote would swallow the lines after it.
    return line.count('"') % 2 == 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()  # Python would also read the digits of other scripts


def _raise_fault(source: Source, columns: Columns) -> None:
    """Raise an error for the first row or cell that is wrong: its line, its column and why."""
    table = open_table(source)
    for where, cells in rows_of(source, table):
        for k, cell in enumerate(cells):
            if k not in columns.ignored and (why := _fault_of(cell.strip(), k == columns.query)):
                raise ValueError(f"{where}, column {shown(table.names[k])}: {why}")


def rows_of(source: Source, table: Table) -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the cells of each row; refuse a row that has not one cell for each name."""
    for number, line in table.lines:
        where = f"{source.name}, line {number}"
        if not _is_closed(line):
            raise ValueError(f"{where}: {_OPEN_QUOTE}")
        try:
            cells = next(csv.reader([line], delimiter=table.delimiter))
        except csv.Error as error:
            raise ValueError(f"{where}: {message_of(error)}; correct the line") from None
        if len(cells) != len(table.names):
            raise ValueError(f"{where}: {len(cells)} cells, but the header has {len(table.names)}; correct the line")
        yield where, cells


def _fault_of(text: str, is_query: bool) -> str:
    if not text or (not is_query and text.lower() in _MISSING):
        return f"missing ({shown(text)}); fill it in, or remove the line"
    if is_query:
        return ""
    if not text.isascii() and any(character.isdigit() for character in text):
        return f"{shown(text)} is not a number; write it with the digits 0 to 9, a point and a minus"
    if not _is_number(text):
        return (
            f"{shown(text)} is not a number; write it as one (yes and no as 1 and 0), or name the column with ignore="
        )
    return "" if np.isfinite(float(text)) else f"{shown(text)} is not finite; remove or replace it"


def _as_qid(names: list[str]) -> NDArray[Any]:
    """Return the names of queries: as integers if all are written as such, otherwise as strings."""
    try:
        numbers = np.array([int(name) for name in names], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(names)
    return numbers if [str(number) for number in numbers.tolist()] == names else np.array(names)
