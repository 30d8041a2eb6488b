"""CSV and TSV: a header of names, then numbers, parsed by NumPy."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwise.io.memory import TooLargeError
from rankwise.io.quoting import message_of, shown
from rankwise.io.sources import Source, check_text, lines_of
from rankwise.io.tables import LABELS, QUERIES, Columns, Dataset, Wanted, check_size, choose_columns

_DELIMITERS = ",\t;"
# What else may separate columns, in the eyes of other programs.
_SPACED = re.compile(r"[\s|:]")
_MISSING = ("", "na", "n/a", "nan", "null", "none")


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples: a label column, a query column, and features in all other columns."""
    check_text(source.name, source.head())
    with _open(source) as table:
        if wanted.require_labels and len(table.names) == 1 and _SPACED.search(table.names[0]):
            raise ValueError(
                f"{source.name}, line {table.line}: the header has one column, {shown(table.names[0])}; separate "
                "columns by commas, tabs or semicolons"
            )
        columns = choose_columns(table.names, wanted, f"{source.name}, line {table.line}")
        codes: dict[str, int] = {}

        def as_code(cell: str) -> float:
            return codes.setdefault(cell.strip() or _refuse(), len(codes))

        readers: dict[int | str, Callable[[str], float]] = dict.fromkeys(columns.ignored, _skip)
        if columns.query is not None:
            readers[columns.query] = as_code
        try:
            values = _numbers(source, table, readers)
        except TooLargeError:
            raise
        except ValueError as error:
            raise ValueError(_fault(source, columns) or f"{source.name}: {message_of(error)}") from None
    check_size(source.name, len(values), len(columns.features), wanted)
    # Rows of equal length may differ in length from the header, and numbers may not be finite.
    if values.shape[1] != len(table.names) or not (np.isfinite(values.min()) and np.isfinite(values.max())):
        raise ValueError(_fault(source, columns) or f"{source.name}: it changed while it was read; read it again")
    qid = None
    if columns.query is not None:
        queries = _as_qid(source, list(codes), len(values))
        qid = queries[values[:, columns.query].astype(np.intp)]
    y = None if columns.label is None else values[:, columns.label].copy()
    names = [table.names[k] for k in columns.features]
    return Dataset(np.ascontiguousarray(values[:, columns.features]), y, qid, names, None, source.name)


class _Table(NamedTuple):
    """A table whose header was read: its names, their line, and the lines that follow, with their numbers."""

    names: list[str]
    line: int
    delimiter: str
    lines: Iterator[tuple[int, str]]


@contextmanager
def _open(source: Source) -> Iterator[_Table]:
    """Read the header."""
    with source.open() as stream:
        lines = _lines(source.name, stream)
        number, first = next(lines, (0, ""))
        where = f"{source.name}, line {number}"
        if not first:
            raise ValueError(f"{source.name} holds no samples; begin it with a line of column names")
        if not _is_closed(first):
            raise ValueError(f"{where}: a quote is not closed; close it, or remove it")
        delimiter = max(_DELIMITERS, key=first.count)
        try:
            names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
        except csv.Error as error:
            raise ValueError(f"{where}: the header cannot be read ({message_of(error)}); correct it") from None
        if all(_is_number(name) for name in names):
            raise ValueError(f"{where}: the header has numbers, not column names; add a line of names at the top")
        yield _Table(names, number, delimiter, lines)


def _lines(name: str, stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers. A carriage return alone may end a line."""
    more = 0
    for number, line in lines_of(name, stream):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        parts = line.splitlines(keepends=True) if b"\r" in line[:-2] else [line]
        for part in parts:
            if part.strip(b" \r\n"):
                try:
                    yield number + more, part.decode()
                except UnicodeDecodeError as error:
                    where = f"{name}, line {number + more}: byte 0x{part[error.start]:02x}"
                    raise ValueError(f"{where} is not UTF-8; save it as UTF-8") from None
            more += 1
        more -= 1


def _rows(source: Source, table: _Table) -> Iterator[str]:
    """Yield the lines of numbers, as long as there is memory."""
    most = source.limit.most // (8 * len(table.names))
    for row, (_, line) in enumerate(table.lines):
        if row >= most:
            source.limit.check(8 * len(table.names) * (row + 1))
        yield line if _is_closed(line) else _refuse()


def _numbers(
    source: Source, table: _Table, converters: Mapping[int | str, Callable[[str], float]]
) -> NDArray[np.float64]:
    rows = _rows(source, table)
    first = next(rows, None)
    if first is None:
        return np.empty((0, len(table.names)))
    return np.loadtxt(
        chain([first], rows),
        delimiter=table.delimiter,
        comments=None,
        quotechar='"',
        converters=converters,
        ndmin=2,
        encoding="utf-8",
    )


def _skip(cell: str) -> float:
    return 0.0  # whatever a cell of an ignored column holds


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
    with _open(source) as table:
        for number, line in table.lines:
            where = f"{source.name}, line {number}"
            if not _is_closed(line):
                return f"{where}: a quote is not closed; close it, or remove it"
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


def _as_qid(source: Source, names: list[str], n: int) -> NDArray[Any]:
    """Return the queries of n rows: as integers if all are written as such, otherwise as strings."""
    try:
        numbers = np.array([int(name) for name in names], dtype=np.int64)
        if [str(number) for number in numbers.tolist()] == names:
            return numbers
    except (ValueError, OverflowError):
        pass
    source.limit.check(4 * max(map(len, names), default=0) * (n + len(names)))  # as wide as the longest
    return np.array(names)


def write(stream: BinaryIO, data: Dataset, delimiter: str) -> None:
    """Write samples: label, query, features."""
    if not isinstance(data.X, np.ndarray):
        raise ValueError(f"{data.source}: CSV would store every zero of a sparse X; write SVMlight or NPZ")
    names, parts = [*(data.feature_names or [])], [(row.tolist() for row in data.X)]
    if data.qid is not None:
        queries = data.qid.tolist()
        for query in queries:
            if isinstance(query, str) and (not query.isprintable() or not query or query != query.strip()):
                raise ValueError(f"{data.source}: query {shown(query)} does not fit in CSV; rename it, or write NPZ")
        names, parts = [QUERIES[0], *names], [([query] for query in queries), *parts]
    if data.y is not None:
        names, parts = [LABELS[0], *names], [([label] for label in data.y.tolist()), *parts]
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(chain.from_iterable(row) for row in zip(*parts, strict=True))
    finally:
        text.detach()
