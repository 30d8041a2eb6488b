"""Samples from files and to files, in any of the formats."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.inputs import as_array
from rankwise.io import delimited, npz, parquet, svmlight
from rankwise.io.atomic import open_atomic
from rankwise.io.memory import as_bytes
from rankwise.io.quoting import shown
from rankwise.io.sources import PARQUET, READ, ZIP, Source, check_text, open_source
from rankwise.io.tables import Dataset, Wanted, check_names, check_size, find_not_finite

__all__ = ["Dataset", "read_data", "write_data"]

_READERS = {"svmlight": svmlight.read, "csv": delimited.read, "parquet": parquet.read, "npz": npz.read}
_SUFFIXES = {
    **dict.fromkeys((".txt", ".svm", ".svmlight", ".letor", ".libsvm", ".dat"), "svmlight"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".npz": "npz",
}
_BY_NAME = ("csv", "parquet")
_TEXT = ("svmlight", "csv")
# The first two words of a line: a label and a feature, or a label alone, or a feature without a label.
_LOOKS_SVMLIGHT = re.compile(rb"[-+.\deE]+( \w+:[^,;]*)?|[^,;:]+:[^,;]*")


def read_data(
    path: str | Path,
    *,
    format: str | None = None,
    n_features: int | None = None,
    first_index: int | None = None,
    feature_names: Sequence[str] | None = None,
    label: str | None = None,
    query: str | None = None,
    require_labels: bool = True,
    max_memory: int | str | None = None,
) -> Dataset:
    """Read samples from a file, or from standard input where `path` is "-".

    format is "svmlight" (LETOR too), "csv" (TSV too), "parquet" or "npz"; by default as the name ends, or the content
    looks. n_features, first_index and feature_names are those of the model that is to be applied: what does not fit is
    refused, and columns with names are put in the order of feature_names. label and query name the columns in CSV and
    Parquet. Labels may be absent only if require_labels is False, and never from SVMlight text.

    max_memory is the most that the samples may take in memory, in bytes or as text ("8GB"); ValueError, before they are
    unpacked, if it is more. By default it is what the machine has free, and at most 1 GB or 100 times the file's size,
    whichever is more: a small file that unpacks to a large one is not trusted.
    """
    wanted = Wanted(n_features, first_index, feature_names, label, query, require_labels)
    if format is not None and format not in _READERS:
        raise ValueError(f"unknown format={shown(format)}; use one of {', '.join(map(repr, _READERS))}")
    source = open_source(path, None if max_memory is None else as_bytes(max_memory))
    found = (
        format or _SUFFIXES.get(_suffix(path)) or _format_of(source, default="svmlight" if str(path) == "-" else None)
    )
    if found not in _BY_NAME and not (label is None and query is None):
        raise ValueError(f"{source.name}: label= and query= name columns, and {found} data have none; leave them out")
    if found in _TEXT:
        source.check_unpacked()
    return _READERS[found](source, wanted)


def _suffix(path: str | Path) -> str:
    """How a name ends, but for .gz where it is the end of text."""
    path = Path(path)
    inner = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    return "" if path.suffix.lower() == ".gz" and _SUFFIXES.get(inner) not in _TEXT else inner


def _format_of(source: Source, default: str | None) -> str:
    """The format by the look of the first line that says something."""
    with source.raw() as stream:
        magic = stream.read(len(ZIP))
    for begins, form in ((ZIP, "npz"), (PARQUET, "parquet")):
        if magic == begins:
            return form
    head = source.head()
    check_text(source.name, head)
    lines = (line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.split(b"#")[0].strip())
    line = next(lines, b"")
    if _LOOKS_SVMLIGHT.fullmatch(b" ".join(line.split(b"#")[0].split(None, 2)[:2])):
        return "svmlight"
    if any(delimiter in line for delimiter in (b",", b"\t", b";")):
        return "csv"
    if default is None:
        raise ValueError(f"{source.name}: its format is not clear from {shown(line)}; {READ}: pass format=")
    return default


def write_data(
    path: str | Path,
    X: Any,
    y: ArrayLike | None,
    qid: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write samples for `read_data`, atomically, in the format that the file's name ends in (and .gz after text).

    Every value is kept to the last bit. Columns are called label, qid and, without feature_names, f1, f2, …; SVMlight
    text has no names. Of sparse X, SVMlight and NPZ hold the stored entries; CSV and Parquet refuse it.
    """
    name = str(path)
    form = _SUFFIXES.get(_suffix(path))
    if form is None:
        raise ValueError(f"{name}: end the name in one of {', '.join(_SUFFIXES)} (.gz after text)")
    data = _checked(name, X, y, qid, feature_names, named=form in _BY_NAME)
    with open_atomic(path) as file:
        if form == "npz":
            npz.write(file, data)
        elif form == "parquet":
            parquet.write(file, data)
        elif Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                _write_text(packed, data, path)
        else:
            _write_text(file, data, path)


def _write_text(stream: Any, data: Dataset, path: str | Path) -> None:
    if _SUFFIXES[_suffix(path)] == "svmlight":
        svmlight.write(stream, data)
    else:
        delimited.write(stream, data, "\t" if _suffix(path) == ".tsv" else ",")


def _checked(name: str, X: Any, y: Any, qid: Any, feature_names: Sequence[str] | None, *, named: bool) -> Dataset:
    """The arguments of `write_data` as a Dataset that could have been read."""
    sparse = hasattr(X, "tocsr")
    if sparse:
        X = X.tocsr(copy=True)
        X.sum_duplicates()
    else:
        X = as_array(X, "X")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be numbers in rows and columns, got {X.dtype} of shape {X.shape}")
    X = X.astype(np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64)
    n, d = X.shape
    check_size(name, n, d, Wanted())
    if found := find_not_finite(X):
        raise ValueError(f"X[{found[0]}, {found[1]}] is {found[2]}; remove or replace it")
    if y is not None:
        y = as_array(y, "y")
        if y.shape != (n,) or y.dtype.kind not in "biuf":
            raise ValueError(f"y must be {n} numbers, as X has rows, got {y.dtype} of shape {y.shape}")
        y = y.astype(np.float64)
        if found := find_not_finite(y[:, None]):
            raise ValueError(f"y[{found[0]}] is {found[2]}; give every sample a finite label")
    if qid is not None:
        qid = as_array(qid, "qid")
        if qid.dtype.kind == "O" and all(isinstance(part, str) for part in qid):
            qid = qid.astype(str)
        if qid.shape != (n,) or qid.dtype.kind not in "iuU":
            raise ValueError(f"qid must be {n} whole numbers or strings, got {qid.dtype} of shape {qid.shape}")
    if feature_names is None and named:
        feature_names = [f"f{k + 1}" for k in range(d)]
    if feature_names is not None:
        feature_names = list(feature_names)
        if len(feature_names) != d:
            raise ValueError(f"feature_names has {len(feature_names)} and X has {d} columns; give each one")
        check_names([*(["label", "qid"] if named else []), *feature_names], name)
    return Dataset(X, y, qid, feature_names, None, name)
