"""SVMlight and LETOR text: `label qid:7 1:0.5 3:2 # comment`, parsed by scikit-learn."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true
from rankwise.io.files import Source
from rankwise.io.quoting import message_of, shown
from rankwise.io.tables import Dataset, Wanted, check_size

_NUMBER = rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)"
_LABEL, _FEATURE = re.compile(_NUMBER, re.IGNORECASE), re.compile(rb"(\d{1,10}):" + _NUMBER, re.IGNORECASE)
_QID = re.compile(rb"qid:-?\d{1,19}")
_LARGEST_INDEX = 2**31 - 2
# Nearly full data become a dense array: the least share of stored entries, and the most bytes relative to CSR.
_FULL, _LARGER = 0.4, 1.5


def read(source: Source, wanted: Wanted) -> Dataset:
    """Read samples. Indices start from 0 if index 0 occurs, otherwise from 1, unless `first_index` is given."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    lines = _Lines(source)
    try:
        X, y = load_svmlight_file(lines, zero_based=True)
    except (ValueError, OverflowError) as error:
        if not lines.current:  # the error is not about a line
            raise
        raise ValueError(f"{source.name}, line {lines.number}: {lines.fault() or message_of(error)}") from None
    if (row := first_true(~np.isfinite(y))) is not None:
        raise ValueError(f"{_line_of(source, row)}: the label is {y[row]}; give every sample a finite one")
    if (k := first_true(~np.isfinite(X.data))) is not None:
        raise ValueError(f"{_entry(source, X, k)}: feature {X.indices[k]} is {X.data[k]}; remove or replace it")
    first = wanted.first_index
    if first is None:
        first = 0 if (X.indices == 0).any() else 1
    d = _width(source, X, wanted, first)
    index_type = np.int32 if max(X.nnz, d) <= _LARGEST_INDEX else np.int64  # scikit-learn does not accept wider ones
    X = csr_array((X.data, (X.indices - first).astype(index_type), X.indptr.astype(index_type)), shape=(len(y), d))
    stored, cells = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, len(y) * d
    if X.nnz > _FULL * cells and X.dtype.itemsize * cells <= _LARGER * stored:
        X = X.toarray()
    qid = np.array(lines.qid, dtype=np.int64) if lines.qid else None
    return Dataset(X, y, qid, None, first, source.name)


class _Lines:
    """The lines as the parser needs them, without comments. Keeps the present one, its number, and the queries.

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
        for number, line in self._source.lines():
            self.number = number
            if b"#" in line:
                line = line[: line.index(b"#")]
            start = line.split(None, 2)
            if start:
                self.current = line
                if len(start) > 1 and start[1].startswith(b"qid"):
                    self.qid.append(int(start[1].removeprefix(b"qid:")))
                self.rows += 1
                if b"_" in line or len(self.qid) not in (0, self.rows):  # Python would read 1_0 as ten
                    raise ValueError("a line that cannot be read")  # `fault` says why
                yield line
                self.current = b""
        check_size(self._source.name, self.rows, 1)

    def fault(self) -> str:
        """Return what is wrong with the present line, by its first part that is wrong."""
        label, *pairs = self.current.split()
        if not _LABEL.fullmatch(label):
            return f"the label {shown(label)} is not a number; begin the line with one (0 if it is unknown)"
        has_qid = bool(pairs) and pairs[0].startswith(b"qid")
        if has_qid and (not _QID.fullmatch(pairs[0]) or abs(int(pairs[0][4:])) >= 2**63):
            return f"{shown(pairs[0])} is not of the form qid:number, of 64 bits; number the queries, or use CSV"
        if self.rows > 1 and has_qid != (len(self.qid) > has_qid):
            this, earlier = ("a", "none") if has_qid else ("no", "one")
            return f"this line has {this} qid but earlier lines have {earlier}; give all lines a qid, or none"
        last = -1
        for pair in pairs[has_qid:]:
            found = _FEATURE.fullmatch(pair)
            if found is None or int(found[1]) > _LARGEST_INDEX:
                return (
                    f"{shown(pair)} is not of the form index:value, two numbers, the first up to {_LARGEST_INDEX}; use "
                    "spaces only between features"
                )
            if int(found[1]) <= last:
                return f"index {int(found[1])} comes after {last}; put the features in ascending order, each once"
            last = int(found[1])
        return ""


def _width(source: Source, X: Any, wanted: Wanted, first: int) -> int:
    """Return the number of features, numbered from `first`; refuse any others."""
    if first == 1 and (k := first_true(X.indices == 0)) is not None:
        raise ValueError(f"{_entry(source, X, k)}: index 0, but indices start from 1 here; renumber the features")
    d = int(X.indices.max(initial=first - 1)) + 1 - first
    if wanted.width is None:
        check_size(source.name, X.shape[0], d)
        source.check_memory(8 * d, f"number the features from 1, not to {d - 1 + first}")  # the weights of a model
        return d
    if (k := first_true(X.indices >= wanted.width + first)) is not None:
        raise ValueError(
            f"{_entry(source, X, k)}: feature {X.indices[k]}, but the model's are {first} to "
            f"{wanted.width - 1 + first}; use data made for the model"
        )
    return wanted.width


def _entry(source: Source, X: Any, k: int) -> str:
    """Return the file and the line of the k-th stored entry of a CSR matrix."""
    return _line_of(source, int(np.searchsorted(X.indptr, k, side="right")) - 1)


def _line_of(source: Source, row: int) -> str:
    """Return the file and the line of a row counted from 0."""
    lines = _Lines(source)
    for k, _ in enumerate(lines):
        if k == row:
            break
    return f"{source.name}, line {lines.number}"


def lines_of(X: Any, y: NDArray[np.float64], qid: NDArray[Any] | None) -> Iterator[bytes]:
    """Yield samples as text, features numbered from 1: all of an array, the stored ones of CSR (and the last)."""
    d = X.shape[1]
    every = list(range(1, d + 1))
    for row, label in enumerate(y.tolist()):
        if isinstance(X, np.ndarray):
            indices, values = every, X[row].tolist()
        else:
            part = slice(X.indptr[row], X.indptr[row + 1])
            indices, values = (X.indices[part] + 1).tolist(), X.data[part].tolist()
            if row == 0 and (not indices or indices[-1] < d):
                indices, values = [*indices, d], [*values, 0.0]
        parts = [_number(label)] if qid is None else [_number(label), f"qid:{qid[row]}"]
        parts += [f"{index}:{_number(value)}" for index, value in zip(indices, values, strict=True)]
        yield " ".join(parts).encode() + b"\n"


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")
