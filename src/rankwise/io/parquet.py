"""Parquet tables, read by pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true
from rankwise.io.files import Source
from rankwise.io.quoting import message_of, shown
from rankwise.io.tables import Dataset, Wanted, check_size, choose_columns, samples_of


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
        # What groups say of their columns may abort pyarrow.
        unpacked = max(sum(group.total_byte_size for group in groups), 8 * n * metadata.num_columns)
        source.check_memory(unpacked, "write it again, without compression")
        try:
            table = file.read(columns=[columns.names[k] for k in kept])
            table.validate(full=True)
        except broken as error:
            raise ValueError(_not_whole(source, error)) from None
    if table.num_rows != n:
        raise ValueError(f"{source.name} has {table.num_rows} rows, but its metadata say {n}; write it again")

    def column(k: int) -> NDArray[Any]:
        found, name = table.column(columns.names[k]), shown(columns.names[k])
        if found.null_count:
            missing = int(np.argmax(found.is_null().to_numpy()))
            raise ValueError(f"{source.name}, row {missing + 1}, column {name}: missing; fill it in, or remove the row")
        values: NDArray[Any] = found.to_numpy()
        if values.dtype.kind == "f" and (row := first_true(~np.isfinite(values))) is not None:
            raise ValueError(
                f"{source.name}, row {row + 1}, column {name}: {values[row]} is not finite; remove or replace it"
            )
        return values

    qid = None if columns.query is None else column(columns.query)
    if qid is not None and qid.dtype.kind == "O":
        qid = qid.astype(str)
    return samples_of(source.name, columns, column, qid)


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
