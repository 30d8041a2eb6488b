"""Read samples from files and write them, in any of the formats."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from rankwise.io import delimited, npz, parquet, svmlight
from rankwise.io.files import PARQUET, READ, ZIP, Source, check_text, open_atomic, open_source
from rankwise.io.memory import TooLarge, as_bytes
from rankwise.io.quoting import shown
from rankwise.io.tables import Dataset, Wanted, check_names, checked

# Each reads and writes a format.
FORMATS: dict[str, Any] = {"svmlight": svmlight, "csv": delimited, "parquet": parquet, "npz": npz}
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
        The samples. What cannot be read is refused with a ValueError that names the file, the place and the remedy.

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
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format={shown(format)}; use one of {', '.join(map(repr, FORMATS))}")
    source = open_source(path, None if max_memory is None else as_bytes(max_memory))
    found = format or _SUFFIXES.get(_suffix(path)) or _format_of(source)
    if found not in _BY_NAME and not (label is None and query is None and not ignore):
        raise ValueError(
            f"{source.name}: label=, query= and ignore= name columns, but {found} data have none; leave them out"
        )
    if found in _TEXT:
        check_text(source.name, source.head())
    try:
        data: Dataset = FORMATS[found].read(source, wanted)
        return data
    except TooLarge as error:
        raise ValueError(str(error)) from None
    except MemoryError:
        raise ValueError(f"{source.name} takes more memory than is free; use fewer samples or features") from None


def _suffix(path: str | Path) -> str:
    """Return the ending of a name, without .gz if text comes before it."""
    path = Path(path)
    inner = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    return "" if path.suffix.lower() == ".gz" and _SUFFIXES.get(inner) not in _TEXT else inner


def _format_of(source: Source) -> str:
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
    if source.content is None:
        raise ValueError(f"{source.name}: cannot tell its format from {shown(line)}; {READ}; pass format=")
    return "svmlight"


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
        Features. SVMlight keeps a sparse matrix sparse; other formats do not accept one.
    y : array-like of shape (n,) or None
        Labels or grades. SVMlight needs them.
    qid : array-like of shape (n,), optional
        Query of each sample, as integers or strings. SVMlight takes integers only.
    feature_names : sequence of str, optional
        Names of the features. By default f1, f2, … in CSV and Parquet. SVMlight has no names.

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
    data = checked(name, X, y, qid, feature_names)
    if form in _BY_NAME:
        names = data.feature_names or [f"f{k + 1}" for k in range(data.X.shape[1])]
        check_names(["label", "qid", *names], name)
        data = replace(data, feature_names=names)
    if form != "svmlight" and not isinstance(data.X, np.ndarray):
        raise ValueError(f"{name}: {form} would store every zero of a sparse X; write SVMlight")
    with open_atomic(path) as file, _packed(file, path) as stream:
        FORMATS[form].write(stream, data)


def _packed(file: BinaryIO, path: str | Path) -> AbstractContextManager[Any]:
    if Path(path).suffix.lower() != ".gz":
        return nullcontext(file)
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
