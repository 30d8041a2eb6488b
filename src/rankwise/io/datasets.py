"""Read samples from files of every format, and write them as SVMlight text."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, first_true
from rankwise.io import delimited, parquet, svmlight
from rankwise.io.files import PARQUET, READ, Source, check_text, open_atomic, open_source
from rankwise.io.quoting import shown
from rankwise.io.tables import Dataset, Wanted, check_size

# Each reads a format.
FORMATS: dict[str, Any] = {"svmlight": svmlight, "csv": delimited, "parquet": parquet}
_SUFFIXES = {
    **dict.fromkeys((".txt", ".svm", ".svmlight", ".letor", ".libsvm", ".dat"), "svmlight"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}
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
) -> Dataset:
    r"""Read samples from a file.

    Parameters
    ----------
    path : str or Path
        The file, or "-" for standard input. Text may be gzipped.
    format : {"svmlight", "csv", "parquet"}, optional
        Format: "svmlight" includes LETOR, "csv" TSV. By default it follows from the name, or else from the content.
    n_features : int, optional
        Number of features that the data must have, usually that of a model.
    first_index : {0, 1}, optional
        Number of the first feature in SVMlight text. By default 0 if an index 0 occurs, otherwise 1.
    feature_names : sequence of str, optional
        Names of the features that the data must have, usually those of a model. Columns are put in this order.
    label : str, optional
        Name of the label column in a table. By default "label", "y", "target" or "relevance".
    query : str, optional
        Name of the query column in a table. By default "qid", "query", "query_id" or "group", if there is one.
    ignore : sequence of str, default ()
        Names of columns in a table that are no features, such as an id. They may hold anything.
    require_labels : bool, default True
        Whether labels must be present. SVMlight text always needs them.

    Returns
    -------
    Dataset
        The samples. What cannot be read is refused with a ValueError that names the file, the place and the remedy.

    See Also
    --------
    write_data : Write samples to a file.

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
    wanted = Wanted(n_features, first_index, feature_names, label, query, ignore, require_labels)
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format={shown(format)}; use one of {', '.join(map(repr, FORMATS))}")
    source = open_source(path)
    found = format or _format_of_name(path) or _format_of(source)
    if found == "svmlight" and not (label is None and query is None and not ignore):
        raise ValueError(
            f"{source.name}: label=, query= and ignore= name columns, but svmlight data have none; leave them out"
        )
    if found != "parquet":
        check_text(source.name, source.head())
    data: Dataset = FORMATS[found].read(source, wanted)
    return data


def _format_of_name(path: str | Path) -> str | None:
    """Return the format that the ending of a name stands for, without .gz after text."""
    name = str(path).lower()
    form = _SUFFIXES.get(Path(name.removesuffix(".gz")).suffix)
    return None if form == "parquet" and name.endswith(".gz") else form


def _format_of(source: Source) -> str:
    """Guess the format from the first line with content."""
    with source.raw() as stream:
        if stream.read(len(PARQUET)) == PARQUET:
            return "parquet"
    head = source.head()
    check_text(source.name, head)
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()
    line = next((line for line in lines if line.split(b"#")[0].strip()), b"")
    if _LOOKS_SVMLIGHT.fullmatch(b" ".join(line.split(b"#")[0].split(None, 2)[:2])):
        return "svmlight"
    if any(delimiter in line for delimiter in (b",", b"\t", b";")):
        return "csv"
    if source.content is None:
        raise ValueError(f"{source.name}: cannot tell its format from {shown(line)}; {READ}; pass format=")
    return "svmlight"


def write_data(path: str | Path, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> None:
    """Write samples to SVMlight/LETOR text atomically, every value exactly.

    For tables with names of columns, use `to_csv` or `to_parquet` of pandas; `read_data` reads both.

    Parameters
    ----------
    path : str or Path
        The file. Its name ends in .svm, .txt or another ending of such text, or in these and .gz.
    X : array-like or sparse matrix of shape (n, d)
        Features. A sparse matrix stays sparse.
    y : array-like of shape (n,)
        Labels or grades.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers.

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
    if _format_of_name(path) != "svmlight":
        endings = ", ".join(suffix for suffix, form in _SUFFIXES.items() if form == "svmlight")
        raise ValueError(f"{path}: end the name in one of {endings} (and .gz); write tables with pandas")
    X = _as_features(X)
    n, d = X.shape
    check_size(str(path), n, d)
    y = _entries(y, "y", n, "biuf", "numbers").astype(np.float64)
    if (row := first_true(~np.isfinite(y))) is not None:
        raise ValueError(f"y[{row}] is {y[row]}; give every sample a finite label")
    if qid is not None:
        qid = _entries(qid, "qid", n, "iu", "whole numbers")
    lines, packed = svmlight.lines_of(X, y, qid), Path(path).suffix.lower() == ".gz"
    with open_atomic(path) as file:
        if packed:
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:
                stream.writelines(lines)
        else:
            file.writelines(lines)


def _as_features(X: Any) -> Any:
    """Return X as an array or a CSR matrix of finite numbers."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = as_array(X, "X")
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a two-dimensional array of numbers, got {_described(X)}")
    X = X.astype(np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64, copy=False)
    dense = isinstance(X, np.ndarray)
    values = X.ravel() if dense else X.data
    if (k := first_true(~np.isfinite(values))) is not None:
        row, column = np.unravel_index(k, X.shape) if dense else (X.tocoo().row[k], X.indices[k])
        raise ValueError(f"X[{row}, {column}] is {values[k]}; remove or replace it")
    return X


def _entries(values: Any, name: str, n: int, kinds: str, what: str) -> NDArray[Any]:
    array = as_array(values, name)
    if array.shape != (n,) or array.dtype.kind not in kinds:
        raise ValueError(f"{name} must be {n} {what}, one per row of X, got {_described(array)}")
    return array


def _described(array: Any) -> str:
    return f"{array.dtype} of shape {shown(array.shape)}"
