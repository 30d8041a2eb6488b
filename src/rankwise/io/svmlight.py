"""SVMlight and LETOR text: `label qid:7 1:0.5 3:2 # comment`, parsed by scikit-learn."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from rankwise.arguments import first_true
from rankwise.io.files import Source
from rankwise.io.quoting import message_of, shown
from rankwise.io.tables import Dataset, Wanted, check_size, find_not_finite, row_of

_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_LARGEST_INDEX = 2**31 - 2
# Nearly full data become a dense array: the least share of stored entries, and the most bytes relative to CSR.
_FULL, _LARGER = 0.4, 1.5
# Bytes in memory per entry, and per row.
_ENTRY, _ROW = 16, 16


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples. Indices start from 0 if index 0 occurs, otherwise from 1, unless `first_index` is given."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    lines = _Lines(source)
    try:
        X, y = load_svmlight_file(lines, zero_based=True)
    except _LineError as error:
        raise ValueError(f"{source.name}, line {lines.number}: {error}") from None
    except (ValueError, OverflowError) as error:
        if not lines.current:  # the error is not about a line
            raise
        raise ValueError(f"{source.name}, line {lines.number}: {_fault(lines.current) or message_of(error)}") from None
    _check_values(source, X, y)
    first = wanted.first_index
    if first is None:
        first = 0 if (X.indices == 0).any() else 1
    d = _width(source, X, wanted, first)
    index = np.int32 if max(X.nnz, d) <= _LARGEST_INDEX else np.int64  # scikit-learn does not accept wider ones
    X = csr_array((X.data, (X.indices - first).astype(index), X.indptr.astype(index)), shape=(len(y), d))
    stored, cells = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, len(y) * d
    if X.nnz > _FULL * cells and X.dtype.itemsize * cells <= _LARGER * stored:
        X = X.toarray()
    qid = np.array(lines.qid, dtype=np.int64) if lines.qid else None
    return Dataset(X, y, qid, None, first, source.name)


class _LineError(Exception):
    """Error about the current line."""


class _Lines:
    """The lines as the parser needs them, without comments. Keeps their number and the queries.

    scikit-learn would append each query to an array of all before it, which takes quadratic time.
    """

    def __init__(self, source: Source) -> None:
        self.number = self.rows = 0
        self.current = b""
        self.qid = array("q")
        self._source = source

    def read(self) -> bytes:
        raise NotImplementedError  # its presence marks this as a file

    def __iter__(self) -> Iterator[bytes]:
        taken, limit = 0, self._source.limit
        for number, line in self._source.lines():
            self.number = number
            if b"#" in line:
                line = line[: line.index(b"#")]
            start = line.split(None, 2)
            if start:
                self.current = line
                self._look_at(line, start)
                self.rows += 1
                taken += _ROW + _ENTRY * line.count(b":")
                limit.check(taken, so_far=True)
                yield line
                self.current = b""
        if not self.rows:
            raise ValueError(f"{self._source.name} holds no samples; give at least one")

    def _look_at(self, line: bytes, start: list[bytes]) -> None:
        if b":" in start[0]:
            raise _LineError(f"no label before {shown(start[0])}; begin the line with one (0 if it is unknown)")
        if b"_" in line:  # Python would read 1_0 as ten
            raise _LineError(_fault(line))
        if len(start) > 1 and start[1].startswith(b"qid"):
            name, _, value = start[1].partition(b":")
            if name != b"qid" or not value.removeprefix(b"-").isdigit():
                raise _LineError(f"{shown(start[1])} is not of the form qid:number; number the queries, or use CSV")
            if len(self.qid) < self.rows:
                raise _LineError("this line has a qid but earlier lines have none; give all lines a qid, or none")
            try:
                self.qid.append(int(value))
            except (OverflowError, ValueError):
                raise _LineError(f"{shown(start[1])} is beyond 64 bits; number the queries from 1") from None
        elif self.qid:
            raise _LineError("this line has no qid but earlier lines have one; give all lines a qid, or none")


def _fault(line: bytes) -> str:
    """Return what is wrong with a line, by its first part that is wrong."""
    label, *pairs = line.split()
    if not _NUMBER.fullmatch(label):
        return f"the label {shown(label)} is not a number"
    last = -1
    for pair in pairs[1:] if pairs and pairs[0].startswith(b"qid:") else pairs:
        index, colon, value = pair.partition(b":")
        if not colon:
            return f"{shown(pair)} is not of the form index:value; use spaces only between features"
        if not index.isdigit():
            return f"{shown(pair)} does not begin with a feature number; use whole numbers from 0 or 1"
        if len(index) > 10 or int(index) > _LARGEST_INDEX:
            return f"the index in {shown(pair)} is too large; number the features from 1"
        if int(index) <= last:
            return f"index {int(index)} comes after {last}; put the features in ascending order, each once"
        if not _NUMBER.fullmatch(value):
            return f"the value in {shown(pair)} is not a number"
        last = int(index)
    return ""


def _check_values(source: Source, X: Any, y: Any) -> None:
    if (row := first_true(~np.isfinite(y))) is not None:
        raise ValueError(f"{_line_of(source, row)}: the label is {y[row]}; give every sample a finite one")
    if found := find_not_finite(X):
        row, index, value = found
        raise ValueError(f"{_line_of(source, row)}: feature {index} is {value}; remove or replace it")


def _width(source: Source, X: Any, wanted: Wanted, first: int) -> int:
    """Return the number of features, numbered from `first`; refuse any others."""
    if first == 1 and (k := first_true(X.indices == 0)) is not None:
        where = _line_of(source, row_of(X, k))
        raise ValueError(f"{where}: index 0, but indices start from 1 here; renumber the features")
    d = int(X.indices.max(initial=first - 1)) + 1 - first
    if wanted.width is None:
        check_size(source.name, X.shape[0], d)
        if 8 * d > source.limit.most:  # the coefficients of a model
            line = _line_of(source, row_of(X, int(X.indices.argmax()))).removeprefix(f"{source.name}, ")
            source.limit.check(8 * d, f" for the index {d - 1 + first} of {line}")
        return d
    if (k := first_true(X.indices >= wanted.width + first)) is not None:
        raise ValueError(
            f"{_line_of(source, row_of(X, k))}: feature {X.indices[k]}, but the model's are {first} to "
            f"{wanted.width - 1 + first}; use data made for the model"
        )
    return wanted.width


def _line_of(source: Source, row: int) -> str:
    """Return the file and the line of a row counted from 0."""
    lines = _Lines(source)
    for k, _ in enumerate(lines):
        if k == row:
            break
    return f"{source.name}, line {lines.number}"


def write(stream: BinaryIO, data: Dataset) -> None:
    """Write samples, features numbered from 1: all of an array, the stored ones of CSR (and the last, to keep d)."""
    if data.y is None:
        raise ValueError(f"{data.source}: SVMlight text needs labels; pass y")
    if data.qid is not None and data.qid.dtype.kind not in "iu":
        raise ValueError(f"{data.source}: queries of SVMlight text must be whole numbers; number them, or write CSV")
    dense = isinstance(data.X, np.ndarray)
    every, d = list(range(1, data.X.shape[1] + 1)), data.X.shape[1]
    for row, label in enumerate(data.y.tolist()):
        if dense:
            indices, values = every, data.X[row].tolist()
        else:
            part = slice(data.X.indptr[row], data.X.indptr[row + 1])
            indices, values = (data.X.indices[part] + 1).tolist(), data.X.data[part].tolist()
            if row == 0 and (not indices or indices[-1] < d):
                indices, values = [*indices, d], [*values, 0.0]
        parts = [_number(label)] if data.qid is None else [_number(label), f"qid:{data.qid[row]}"]
        parts += [f"{index}:{_number(value)}" for index, value in zip(indices, values, strict=True)]
        stream.write(" ".join(parts).encode() + b"\n")


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")
