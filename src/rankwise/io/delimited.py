"""CSV and TSV: a header of names, then numbers, parsed by NumPy."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwise.io.files import Source
from rankwise.io.quoting import message_of, shown
from rankwise.io.tables import (
    LABELS,
    QUERIES,
    Columns,
    Dataset,
    Wanted,
    check_size,
    choose_columns,
    repeated,
    samples_of,
)

_DELIMITERS = ",\t;"
# What else may separate columns, in the eyes of other programs.
_SPACED = re.compile(r"[\s|:]")
_MISSING = ("", "na", "n/a", "nan", "null", "none")
# A line that carriage returns alone may end; parts of a long one are not held all at once.
_PART = re.compile(rb"[^\r\n]*(\r\n?|\n)|[^\r\n]+")
_OPEN_QUOTE = "a quote is not closed; close it, or remove it"


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples: a label column, a query column, and features in all other columns."""
    table = _open(source)
    names, where = table.names, f"{source.name}, line {table.line}"
    if wanted.require_labels and len(names) == 1 and _SPACED.search(names[0]):
        raise ValueError(
            f"{where}: the header has one column, {shown(names[0])}; separate columns by commas, tabs or semicolons"
        )
    columns = choose_columns(names, wanted, where)
    codes: dict[str, int] = {}
    try:
        values = _numbers(source, table, columns, codes)
    except ValueError as error:
        raise ValueError(_fault(source, columns) or f"{source.name}: {message_of(error)}") from None
    check_size(source.name, len(values), len(columns.features), wanted.width)

    def fault(*_: Any) -> str:
        return _fault(source, columns) or f"{source.name}: it changed while it was read; read it again"

    if values.shape[1] != len(names):  # rows of equal length
        raise ValueError(fault())

    def queries() -> NDArray[Any]:
        return _as_qid(source, list(codes), values[:, columns.query].astype(np.intp))

    return samples_of(source, columns, lambda k: values[:, k], queries, fault)


class _Table(NamedTuple):
    """A table whose header was read: its names, their line, and the lines that follow, with their numbers."""

    names: list[str]
    line: int
    delimiter: str
    lines: Iterator[tuple[int, str]]


def _open(source: Source) -> _Table:
    """Read the header."""
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
    return _Table(names, number, delimiter, lines)


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers. A carriage return alone may end a line."""
    number = 0
    for _, line in source.lines():
        for part in (found[0] for found in _PART.finditer(line)) if b"\r" in line.removesuffix(b"\r\n") else [line]:
            number += 1
            if part.strip(b" \r\n"):
                try:
                    yield number, part.decode()
                except UnicodeDecodeError as error:
                    where = f"{source.name}, line {number}: byte 0x{part[error.start]:02x}"
                    raise ValueError(f"{where} is not UTF-8; save it as UTF-8") from None


def _numbers(source: Source, table: _Table, columns: Columns, codes: dict[str, int]) -> NDArray[np.float64]:
    """Return every cell as a number: 0 in ignored columns, and the codes of queries, which are added to codes."""
    width, limit = len(table.names), source.limit

    def rows() -> Iterator[str]:
        for row, (_, line) in enumerate(table.lines):
            limit.check(8 * width * (row + 1), so_far=True)
            yield line if _is_closed(line) else _refuse()

    def as_code(cell: str) -> float:
        return codes.setdefault(cell.strip() or _refuse(), len(codes))

    readers: dict[int | str, Any] = dict.fromkeys(columns.ignored, lambda cell: 0.0)
    if columns.query is not None:
        readers[columns.query] = as_code
    lines = rows()
    first = next(lines, None)
    if first is None:
        return np.empty((0, width))
    return np.loadtxt(
        chain([first], lines),
        delimiter=table.delimiter,
        comments=None,
        quotechar='"',
        converters=readers,
        ndmin=2,
        encoding="utf-8",
    )


def _refuse() -> NoReturn:
    raise ValueError("a line that cannot be read")  # `_fault` says which and why


def _is_closed(line: str) -> bool:
    # An open quote would swallow the lines after it.
    return line.count('"') % 2 == 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()  # Python would also read the digits of other scripts


def _fault(source: Source, columns: Columns) -> str:
    """Return the first cell that is wrong: its line, its column and why; an empty string if all are right."""
    table = _open(source)
    for number, line in table.lines:
        where = f"{source.name}, line {number}"
        if not _is_closed(line):
            return f"{where}: {_OPEN_QUOTE}"
        try:
            cells = next(csv.reader([line], delimiter=table.delimiter))
        except csv.Error as error:
            return f"{where}: {message_of(error)}; correct the line"
        if len(cells) != len(table.names):
            return f"{where}: {len(cells)} cells, but the header has {len(table.names)}; correct the line"
        for k, cell in enumerate(cells):
            if k not in columns.ignored and (why := _fault_of(cell, k == columns.query)):
                return f"{where}, column {shown(table.names[k])}: {why}"
    return ""


def _fault_of(cell: str, is_query: bool) -> str:
    text = cell.strip()
    if text.lower() in _MISSING[: 1 if is_query else None]:
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


def _as_qid(source: Source, names: list[str], codes: NDArray[np.intp]) -> NDArray[Any]:
    """Return the queries of the rows: as integers if all are written as such, otherwise as strings."""
    try:
        numbers = np.array([int(name) for name in names], dtype=np.int64)
        if [str(number) for number in numbers.tolist()] == names:
            return numbers[codes]
    except (ValueError, OverflowError):
        pass
    return repeated(source, names, codes)


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples: label, query, features; separated by tabs if the file is named so."""
    for query in [] if data.qid is None else data.qid.tolist():
        if isinstance(query, str) and (not query.isprintable() or not query or query != query.strip()):
            raise ValueError(f"{data.source}: query {shown(query)} does not fit in CSV; rename it, or write NPZ")
    first = {LABELS[0]: data.y, QUERIES[0]: data.qid}
    present = {name: values.tolist() for name, values in first.items() if values is not None}
    delimiter = "\t" if data.source.lower().removesuffix(".gz").endswith(".tsv") else ","
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        writer.writerow([*present, *(data.feature_names or [])])
        writer.writerows([*cells, *row.tolist()] for *cells, row in zip(*present.values(), data.X, strict=True))
    finally:
        text.detach()
