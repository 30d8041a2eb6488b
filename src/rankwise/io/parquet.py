"""Parquet tables, read by pyarrow."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankwise.io.sources import Source, shown
from rankwise.io.tables import LABELS, QUERIES, Dataset, Wanted, check_size, choose_columns, find_not_finite


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples: a column of labels, one of queries, and features in all others."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        with source.raw() as stream:
            table = ParquetFile(stream, page_checksum_verification=True).read()
            names = list(table.column_names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{source.name} is not a whole Parquet file ({why}); write it again") from None
    columns = choose_columns(names, wanted, source.name)
    check_size(source.name, table.num_rows, len(columns.features), wanted)
    parts = [_numbers(table, k, source.name) for k in columns.features]
    narrow = all(part.dtype.kind == "f" and part.dtype.itemsize <= 4 for part in parts)
    X = np.empty((table.num_rows, len(parts)), dtype=np.float32 if narrow else np.float64)
    for k, part in enumerate(parts):
        X[:, k] = part
    names = [names[k] for k in columns.features]
    if found := find_not_finite(X):
        raise ValueError(_not_finite(source.name, found[0], names[found[1]], found[2]))
    y = None
    if columns.label is not None:
        y = _numbers(table, columns.label, source.name).astype(np.float64)
        if found := find_not_finite(y[:, None]):
            raise ValueError(_not_finite(source.name, found[0], table.column_names[columns.label], found[2]))
    qid = None if columns.query is None else _queries(table, columns.query, source.name)
    return Dataset(X, y, qid, names, None, source.name)


def _not_finite(name: str, row: int, column: str, value: float) -> str:
    return f"{name}, row {row + 1}, column {shown(column)}: {value} is not finite; remove or replace it"


def _numbers(table: Any, k: int, name: str) -> NDArray[Any]:
    from pyarrow import types

    column, where = table.column(k), f"column {shown(table.column_names[k])}"
    if not (types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)):
        raise ValueError(f"{name}, {where}: its type is {column.type}, not a number's; drop it or turn it into numbers")
    _check_no_nulls(column, name, where)
    values: NDArray[Any] = column.to_numpy()
    return values


def _queries(table: Any, k: int, name: str) -> NDArray[Any]:
    from pyarrow import types

    column, where = table.column(k), f"column {shown(table.column_names[k])}"
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    _check_no_nulls(column, name, where)
    if types.is_integer(column.type):
        numbers: NDArray[Any] = column.to_numpy()
        return numbers
    if types.is_string(column.type) or types.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=str)
    raise ValueError(f"{name}, {where}: its type is {column.type}; queries are whole numbers or strings")


def _check_no_nulls(column: Any, name: str, where: str) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise ValueError(f"{name}, row {row + 1}, {where}: missing; fill it in, or remove the row")


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples: label, query, features."""
    import pyarrow
    from pyarrow.parquet import write_table

    if not isinstance(data.X, np.ndarray):
        raise ValueError(f"{data.source}: Parquet would hold every zero of a sparse X; write SVMlight or NPZ")
    columns = {} if data.y is None else {LABELS[0]: data.y}
    if data.qid is not None:
        columns[QUERIES[0]] = data.qid
    columns |= {name: np.ascontiguousarray(data.X[:, k]) for k, name in enumerate(data.feature_names or [])}
    write_table(pyarrow.table(columns), stream, write_page_checksum=True)
