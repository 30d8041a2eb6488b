"""Read samples from files and write them, in any of the formats."""

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
from rankwise.io.memory import TooLargeError, as_bytes
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
    ignore: Sequence[str] = (),
    require_labels: bool = True,
    max_memory: int | str | None = None,
) -> Dataset:
    r"""Read samples from a file.

    Parameters
    ----------
    path : str or Path
        The file, or "-" for standard input. Text may be gzipped.
    format : {"svmlight", "csv", "parquet", "npz"}, optional
        Format of the file: "svmlight" includes LETOR, and "csv" includes TSV. By default it follows from the file name,
        or else from the content.
    n_features : int, optional
        Number of features that the data must have, usually that of a model.
    first_index : {0, 1}, optional
        Number of the first feature in SVMlight text. By default 0 if an index 0 occurs, otherwise 1.
    feature_names : sequence of str, optional
        Names of the features that the data must have, usually those of a model. Named columns are put in this order.
    label : str, optional
        Name of the label column in CSV and Parquet. By default "label", "y", "target" or "relevance".
    query : str, optional
        Name of the query column in CSV and Parquet. By default "qid", "query", "query_id" or "group", if there is one.
    ignore : sequence of str, default ()
        Names of columns in CSV and Parquet that are no features, such as an id. They may hold anything.
    require_labels : bool, default True
        Whether labels must be present. SVMlight text always needs them.
    max_memory : int or str, optional
        Most memory that the samples may take, in bytes or as text such as "8GB". By default 1 GB or 100 times the size
        of the file, whichever is more: this guards against small files that unpack to huge ones.

    Returns
    -------
    Dataset
        The samples.

    Raises
    ------
    ValueError
        If the file is damaged, holds a value that is not a finite number, does not fit the model, or needs more memory
        than allowed. The message names the file, the place and the remedy.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    write_data : Write samples to a file.
    Dataset : The samples and their attributes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.csv")
    ...     _ = path.write_text("label,qid,a,b\n1,7,0.5,2\n0,7,1.5,3\n")
    ...     data = read_data(path)
    >>> data.X.tolist(), data.y.tolist(), data.qid.tolist(), data.feature_names
    ([[0.5, 2.0], [1.5, 3.0]], [1.0, 0.0], [7, 7], ['a', 'b'])
    """
    wanted = Wanted(n_features, first_index, feature_names, label, query, require_labels, ignore)
    if format is not None and format not in _READERS:
        raise ValueError(f"unknown format={shown(format)}; use one of {', '.join(map(repr, _READERS))}")
    source = open_source(path, None if max_memory is None else as_bytes(max_memory))
    found = (
        format or _SUFFIXES.get(_suffix(path)) or _format_of(source, default="svmlight" if str(path) == "-" else None)
    )
    if found not in _BY_NAME and not (label is None and query is None and not ignore):
        raise ValueError(
            f"{source.name}: label=, query= and ignore= name columns, but {found} data have none; leave them out"
        )
    try:
        return _READERS[found](source, wanted)
    except MemoryError:
        raise TooLargeError(f"{source.name} takes more memory than is free; use fewer samples or features") from None


def _suffix(path: str | Path) -> str:
    """Return the ending of a name, without .gz if text comes before it."""
    path = Path(path)
    inner = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    return "" if path.suffix.lower() == ".gz" and _SUFFIXES.get(inner) not in _TEXT else inner


def _format_of(source: Source, default: str | None) -> str:
    """Guess the format from the first line with content."""
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
        raise ValueError(f"{source.name}: cannot tell its format from {shown(line)}; {READ}; pass format=")
    return default


def write_data(
    path: str | Path,
    X: Any,
    y: ArrayLike | None,
    qid: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write samples to a file atomically, for `read_data`.

    The ending of the file name decides the format. Every value is kept exactly.

    Parameters
    ----------
    path : str or Path
        The file, which ends in .svm, .txt, .csv, .tsv, .parquet, .npz or another known ending. Text may end in .gz.
    X : array-like or sparse matrix of shape (n, d)
        Features. SVMlight and NPZ keep a sparse matrix sparse; CSV and Parquet do not accept one.
    y : array-like of shape (n,) or None
        Labels or grades. SVMlight needs them.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings. SVMlight takes integers only.
    feature_names : sequence of str, optional
        Names of the features. By default f1, f2, … in CSV and Parquet. SVMlight has no names.

    Raises
    ------
    ValueError
        If the ending is unknown, a value is not finite, shapes differ, or the format cannot hold the data.

    See Also
    --------
    read_data : Read samples from a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_data(f"{folder}/data.svm", [[0.5, 2.0], [1.5, 3.0]], [1, 0], qid=[7, 7])
    ...     print(Path(folder, "data.svm").read_text().strip())
    1 qid:7 1:0.5 2:2
    0 qid:7 1:1.5 2:3
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
    """Return the arguments of `write_data` as a Dataset that could have been read."""
    sparse = hasattr(X, "tocsr")
    if sparse:
        X = X.tocsr(copy=True)
        X.sum_duplicates()
    else:
        X = as_array(X, "X")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a two-dimensional array of numbers, got {X.dtype} of shape {X.shape}")
    X = X.astype(np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64)
    n, d = X.shape
    check_size(name, n, d, Wanted())
    if found := find_not_finite(X):
        raise ValueError(f"X[{found[0]}, {found[1]}] is {found[2]}; remove or replace it")
    if y is not None:
        y = as_array(y, "y")
        if y.shape != (n,) or y.dtype.kind not in "biuf":
            raise ValueError(f"y must be {n} numbers, one per row of X, got {y.dtype} of shape {y.shape}")
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
            raise ValueError(f"feature_names has {len(feature_names)} names but X has {d} columns; name each column")
        check_names([*(["label", "qid"] if named else []), *feature_names], name)
    return Dataset(X, y, qid, feature_names, None, name)
