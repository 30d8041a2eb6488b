"""Parquet tables, read by pyarrow."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankwise.io.quoting import message_of, shown
from rankwise.io.sources import Source
from rankwise.io.tables import LABELS, QUERIES, Columns, Dataset, Wanted, check_size, choose_columns, find_not_finite


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples: a label column, a query column, and features in all other columns."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    broken = (pyarrow.ArrowException, OSError, ValueError)
    with source.raw() as stream:
        try:
            file = ParquetFile(stream, page_checksum_verification=True)
            schema, n = file.schema_arrow, _n_rows(file.metadata)
        except broken as error:
            raise ValueError(_not_whole(source.name, error)) from None
        names = list(schema.names)
        columns = choose_columns(names, wanted, source.name)
        check_size(source.name, n, len(columns.features), wanted)
        kept = [k for k in range(len(names)) if k not in columns.ignored]
        for k in kept:
            _check_type(schema.field(k), source.name, is_query=k == columns.query)
        source.limit.check(_memory(file, columns, n))
        try:
            table = file.read(columns=[names[k] for k in kept])
        except broken as error:
            raise ValueError(_not_whole(source.name, error)) from None
    if table.num_rows != n:
        raise ValueError(f"{source.name} has {table.num_rows} rows, but its metadata say {n}; write it again")
    parts = [_numbers(table, names[k], source.name) for k in columns.features]
    narrow = all(part.dtype.kind == "f" and part.dtype.itemsize <= 4 for part in parts)
    X = np.empty((table.num_rows, len(parts)), dtype=np.float32 if narrow else np.float64)
    for k, part in enumerate(parts):
        X[:, k] = part
    features = [names[k] for k in columns.features]
    if found := find_not_finite(X):
        raise ValueError(_not_finite(source.name, found[0], features[found[1]], found[2]))
    y = None
    if columns.label is not None:
        y = _numbers(table, names[columns.label], source.name).astype(np.float64)
        if found := find_not_finite(y[:, None]):
            raise ValueError(_not_finite(source.name, found[0], names[columns.label], found[2]))
    qid = None if columns.query is None else _queries(table, names[columns.query], source)
    return Dataset(X, y, qid, features, None, source.name)


def _not_finite(name: str, row: int, column: str, value: float) -> str:
    return f"{name}, row {row + 1}, column {shown(column)}: {value} is not finite; remove or replace it"


def _not_whole(name: str, error: Exception) -> str:
    return f"{name} is not a complete Parquet file ({message_of(error).rstrip('.')}); write it again"


def _n_rows(metadata: Any) -> int:
    """Return the number of rows that the metadata state, whichever part states the most."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    return max(int(metadata.num_rows), sum(int(group.num_rows) for group in groups))


def _memory(file: Any, columns: Columns, n: int) -> int:
    """Return the bytes that the columns take as they are read, plus those of the samples made from them."""
    metadata = file.metadata
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    packed = sum(group.column(j).total_uncompressed_size for group in groups for j in range(metadata.num_columns))
    return int(max(packed, 8 * n * metadata.num_columns)) + 8 * n * (len(columns.features) + 1)


def _check_type(field: Any, name: str, *, is_query: bool) -> None:
    """Refuse a column that holds neither numbers nor, for queries, strings."""
    from pyarrow import types

    kind, where = field.type, f"{name}, column {shown(field.name)}"
    if not is_query:
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(f"{where}: its type is {kind!s:.40}; convert it to numbers, or name it with ignore=")
        return
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise ValueError(f"{where}: its type is {kind!s:.40}; queries must be whole numbers or strings")


def _numbers(table: Any, column_name: str, name: str) -> NDArray[Any]:
    column = table.column(column_name)
    _check_no_nulls(column, name, f"column {shown(column_name)}")
    values: NDArray[Any] = column.to_numpy()
    return values


def _queries(table: Any, name: str, source: Source) -> NDArray[Any]:
    from pyarrow import types

    column = table.column(name)
    _check_no_nulls(column, source.name, f"column {shown(name)}")
    if types.is_integer(column.type):
        numbers: NDArray[Any] = column.to_numpy()
        return numbers
    column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names: NDArray[Any] = column.dictionary.to_numpy(zero_copy_only=False)
    codes: NDArray[Any] = column.indices.to_numpy()
    if not types.is_integer(column.type.value_type):
        longest = max(map(len, names), default=0)
        source.limit.check(4 * longest * (codes.size + names.size))  # each takes as much as the longest
        names = names.astype(str)
    queries: NDArray[Any] = names[codes]
    return queries


def _check_no_nulls(column: Any, name: str, where: str) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise ValueError(f"{name}, row {row + 1}, {where}: missing; fill it in, or remove the row")


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples: label, query, features."""
    import pyarrow
    from pyarrow.parquet import write_table

    if not isinstance(data.X, np.ndarray):
        raise ValueError(f"{data.source}: Parquet would store every zero of a sparse X; write SVMlight or NPZ")
    columns = {} if data.y is None else {LABELS[0]: data.y}
    if data.qid is not None:
        columns[QUERIES[0]] = data.qid
    columns |= {name: np.ascontiguousarray(data.X[:, k]) for k, name in enumerate(data.feature_names or [])}
    write_table(pyarrow.table(columns), stream, write_page_checksum=True)
