"""What is wrong with a partition: workers reply it, and the client says in which partition and row of all it is."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankwise.arguments import NotFiniteError, first_true

# Errors of one machine about one entry begin with its place, such as qid[3].
_PLACE = re.compile(r"(\w+)\[(\d+)\]")
_KINDS = (NotFiniteError, TypeError, ValueError)


class Fault(NamedTuple):
    """An error about a partition. name, row, column: of the entry, if it is about one; text: what follows."""

    kind: type[Exception]
    text: str
    name: str = ""
    row: int = -1
    column: str = ""

    def error(self, number: int, first: float = math.nan) -> Exception:
        """Return the error to raise. number: of the partition; first: its first row among all, NaN if unknown."""
        if self.row < 0:
            return self.kind(f"partition {number}: {self.text}")
        if math.isnan(first):
            return self.kind(f"{self.name}[{self.row}{self.column}] of partition {number}{self.text}")
        whole = f"{self.name}[{int(first) + self.row}{self.column}]"
        return self.kind(f"{whole} (row {self.row} of partition {number}){self.text}")


def fault_of(error: Exception) -> Fault:
    """Return what an error of one machine says about a partition."""
    kind, text = next(kind for kind in _KINDS if isinstance(error, kind)), str(error)
    place = _PLACE.match(text)
    return Fault(kind, text) if place is None else Fault(kind, text[place.end() :], place[1], int(place[2]))


def fault_of_features(X: Any, error: Exception) -> Fault:
    """Return what an error says about features: their first entry that is not a finite number, if there is one."""
    found = _not_finite(X)
    if found is None:
        return fault_of(error)
    row, column, value = found
    name = repr(X.columns[column]) if hasattr(X, "columns") else str(column)
    what = repr(value) if isinstance(value, str) else str(value)
    text = f" is {what}: features must be finite numbers; impute or encode it, or drop the sample"
    return Fault(ValueError, text, "X", row, f", {name}")


def _not_finite(X: Any) -> tuple[int, int, Any] | None:
    """Return row, column and value of the first entry that is not a finite number."""
    if sparse.issparse(X):
        rows = X.tocsr()
        if (k := first_true(~np.isfinite(rows.data))) is None:
            return None
        return int(np.searchsorted(rows.indptr, k, side="right")) - 1, int(rows.indices[k]), rows.data[k]
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "fOSU":
        return None
    finite = np.isfinite(values) if values.dtype.kind == "f" else np.vectorize(_is_finite, otypes=[bool])(values)
    if (k := first_true(~finite.ravel())) is None:
        return None
    row, column = divmod(k, values.shape[1])
    return row, column, values[row, column]


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
