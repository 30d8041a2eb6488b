"""Parquet tables, read by pyarrow."""

from __future__ import annotations

from typing import Any, BinaryIO

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


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples: a label column, a query column, and features in all other columns."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    broken = (pyarrow.ArrowException, OSError, ValueError)
    with source.raw() as stream:
        try:
            file = ParquetFile(stream, page_checksum_verification=True)
            schema, metadata = file.schema_arrow, file.metadata
            groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        except broken as error:
            raise ValueError(_not_whole(source, error)) from None
        # Whichever part of the metadata states the most rows.
        n = max(metadata.num_rows, sum(group.num_rows for group in groups))
        columns = choose_columns(list(schema.names), wanted, source.name)
        check_size(source.name, n, len(columns.features), wanted.width)
        kept = [k for k in range(len(columns.names)) if k not in columns.ignored]
        for k in kept:
            _check_type(schema.field(k), source, is_query=k == columns.query)
        # As they are read, and the samples made from them. What groups say of their columns may abort pyarrow.
        unpacked = sum(group.total_byte_size for group in groups)
        source.limit.check(max(unpacked, 8 * n * metadata.num_columns) + 8 * n * (len(columns.features) + 1))
        # Queries stay codes of their names: a name that is on every row may be very long.
        coded = [] if columns.query is None else [columns.names[columns.query]]
        try:
            file = ParquetFile(stream, metadata=metadata, read_dictionary=coded, page_checksum_verification=True)
            table = file.read(columns=[columns.names[k] for k in kept])
            table.validate(full=True)
        except broken as error:
            raise ValueError(_not_whole(source, error)) from None
    if table.num_rows != n:
        raise ValueError(f"{source.name} has {table.num_rows} rows, but its metadata say {n}; write it again")
    return _samples(source, table, columns)


def _samples(source: Source, table: Any, columns: Columns) -> Dataset:
    from pyarrow import types

    def column(k: int) -> Any:
        found, where = table.column(columns.names[k]), f"column {shown(columns.names[k])}"
        if found.null_count:
            row = int(np.argmax(found.is_null().to_numpy()))
            raise ValueError(f"{source.name}, row {row + 1}, {where}: missing; fill it in, or remove the row")
        return found

    def queries() -> NDArray[Any]:
        found = column(columns.query or 0)
        if types.is_integer(found.type):
            numbers: NDArray[Any] = found.to_numpy()
            return numbers
        found = found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)
        if not types.is_dictionary(found.type):
            found = found.dictionary_encode()
        names, codes = found.dictionary.to_pylist(), found.indices.to_numpy()
        return np.array(names)[codes] if types.is_integer(found.type.value_type) else repeated(source, names, codes)

    def fault(row: int, name: str, value: float) -> str:
        return f"{source.name}, row {row + 1}, column {shown(name)}: {value} is not finite; remove or replace it"

    return samples_of(source, columns, lambda k: column(k).to_numpy(), queries, fault)


def _not_whole(source: Source, error: Exception) -> str:
    return f"{source.name} is not a complete Parquet file ({message_of(error).rstrip('.')}); write it again"


def _check_type(field: Any, source: Source, *, is_query: bool) -> None:
    """Refuse a column that holds neither numbers nor, for queries, strings."""
    from pyarrow import types

    kind, where = field.type, f"{source.name}, column {shown(field.name)}"
    if not is_query:
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(f"{where}: its type is {kind!s:.40}; convert it to numbers, or name it with ignore=")
        return
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise ValueError(f"{where}: its type is {kind!s:.40}; queries must be whole numbers or strings")


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples: label, query, features."""
    import pyarrow
    from pyarrow.parquet import write_table

    columns = {} if data.y is None else {LABELS[0]: data.y}
    if data.qid is not None:
        columns[QUERIES[0]] = data.qid
    columns |= {name: np.ascontiguousarray(data.X[:, k]) for k, name in enumerate(data.feature_names or [])}
    write_table(pyarrow.table(columns), stream, write_page_checksum=True)
