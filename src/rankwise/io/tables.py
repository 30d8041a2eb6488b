"""The contents of a data file, the roles of its columns, and the checks for every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import check_whole, is_whole
from rankwise.io.quoting import shown

LABELS = ("label", "y", "target", "relevance")
QUERIES = ("qid", "query", "query_id", "group")
# The name that pandas gives to an index written as a column.
_PANDAS_INDEX = "__index_level_"
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples that were read from a file.

    Parameters
    ----------
    X : ndarray or SciPy CSR array of shape (n, d)
        Features, float64 or float32.
    y : ndarray of shape (n,) or None
        Labels or grades. None if the file has none.
    qid : ndarray of shape (n,), optional
        Query of each sample, as integers or strings. None if the file has none.
    feature_names : list of str, optional
        Names of the features. None if the format has none.
    first_index : {0, 1}, optional
        Number of the first feature in an SVMlight file.
    source : str, default ""
        Name of the file.

    See Also
    --------
    read_data : Read samples from a file.

    Examples
    --------
    >>> data = Dataset(np.array([[0.5, 2.0]]), np.array([1.0]), feature_names=["a", "b"])
    >>> data.X.shape, data.qid is None
    ((1, 2), True)
    """

    X: Any
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | None = None
    feature_names: list[str] | None = None
    first_index: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Wanted:
    """What the caller requires of a file, see `read_data`."""

    n_features: int | None = None
    first_index: int | None = None
    feature_names: Sequence[str] | None = None
    label: str | None = None
    query: str | None = None
    ignore: Sequence[str] = ()
    require_labels: bool = True

    def __post_init__(self) -> None:
        if self.n_features is not None:
            check_whole(1, n_features=self.n_features)
        if self.first_index is not None and (not is_whole(self.first_index) or self.first_index not in (0, 1)):
            raise ValueError(f"first_index must be 0 or 1, got {shown(self.first_index)}")
        if isinstance(self.ignore, str):
            raise TypeError(
                f"ignore must be a sequence of column names, got {shown(self.ignore)}; write [{self.ignore!r}]"
            )
        if self.feature_names is not None:
            check_names(self.feature_names, "feature_names")
            if self.n_features not in (None, len(self.feature_names)):
                raise ValueError(f"n_features is {self.n_features}, but feature_names has {len(self.feature_names)}")

    @property
    def width(self) -> int | None:
        """The required number of features, if it is known."""
        return self.n_features if self.feature_names is None else len(self.feature_names)


class Columns(NamedTuple):
    """The names of a table's columns, and which are the label, the query, the features and those nobody reads."""

    names: Sequence[str]
    label: int | None
    query: int | None
    features: list[int]
    ignored: frozenset[int]


def choose_columns(names: Sequence[str], wanted: Wanted, where: str) -> Columns:
    """Choose the columns of a table by name: the label, the query, and the features in the required order."""
    check_names(names, where)
    features = wanted.feature_names
    label = _column(names, wanted.label, LABELS, "label", features, where)
    if label is None and wanted.require_labels:
        raise ValueError(f"{where}: no column {' or '.join(map(repr, LABELS))}; name the label column with label=")
    query = _column(names, wanted.query, QUERIES, "query", features, where)
    if label is not None and label == query:
        raise ValueError(f"{where}: column {shown(names[label])} cannot be both the label and the query")
    ignored = frozenset(_index(name, names, "ignore", where) for name in wanted.ignore)
    for role, k in (("label", label), ("query", query)):
        if k is not None and k in ignored:
            raise ValueError(f"{where}: column {shown(names[k])} is the {role} and cannot be ignored as well")
    rest = [k for k in range(len(names)) if k not in (label, query, *ignored)]
    if features is not None:
        index = {names[k]: k for k in rest}
        if missing := [name for name in features if name not in index]:
            raise ValueError(f"{where}: no column {_list(missing)}; the data must have every feature of the model")
        if extra := [name for name in index if name not in set(features)]:
            raise ValueError(
                f"{where}: the model has no feature {_list(extra)}; remove it, or name it with label=, query= or "
                "ignore="
            )
        rest = [index[name] for name in features]
    return Columns(names, label, query, rest, ignored)


def _index(asked: str, names: Sequence[str], option: str, where: str) -> int:
    if asked not in names:
        raise ValueError(f"{where}: no column {shown(asked)}, asked for by {option}=; the columns are {_list(names)}")
    return names.index(asked)


def _column(
    names: Sequence[str], asked: str | None, usual: Sequence[str], role: str, features: Sequence[str] | None, where: str
) -> int | None:
    """Return the column of a role: the one asked for, else the one of a usual name that is no feature of the model."""
    if asked is not None:
        return _index(asked, names, role, where)
    found = [name for name in usual if name in names and name not in (features or ())]
    if len(found) > 1:
        raise ValueError(f"{where}: columns {_list(found)} could each be the {role}; name it with {role}=")
    return names.index(found[0]) if found else None


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse column names that are not strings, are empty, or occur twice."""
    seen: set[str] = set()
    for k, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"{where}: the name of column {k + 1} is a {type(name).__name__}; it must be a string")
        if not name:
            raise ValueError(f"{where}: column {k + 1} has no name; with pandas, pass index=False when writing")
        if name.startswith(_PANDAS_INDEX):
            raise ValueError(f"{where}: column {shown(name)} is an index of pandas; pass index=False when writing")
        if name in seen:
            raise ValueError(f"{where}: two columns have the name {shown(name)}; rename one")
        seen.add(name)


def _list(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(shown, names[:_NAMED])) + more


def check_size(name: str, n: int, d: int, width: int | None = None) -> None:
    """Refuse data without samples or features, or with another number of features than required."""
    for what, number in (("samples", n), ("features", d)):
        if number < 1:
            raise ValueError(f"{name} holds no {what}; give at least one")
    if width not in (None, d):
        raise ValueError(f"{name} has {d} features, but the model has {width}; use data made for the model")


def samples_of(
    source: str, columns: Columns, column: Callable[[int], NDArray[Any]], qid: NDArray[Any] | None
) -> Dataset:
    """Return a table's columns, of finite numbers (n,) each, as samples."""
    parts = [column(k) for k in columns.features]
    narrow = all(part.dtype.kind == "f" and part.dtype.itemsize <= 4 for part in parts)
    X = np.empty((parts[0].size, len(parts)), dtype=np.float32 if narrow else np.float64)
    for k, part in enumerate(parts):
        X[:, k] = part
    y = None if columns.label is None else column(columns.label).astype(np.float64)
    return Dataset(X, y, qid, [columns.names[k] for k in columns.features], None, source)
