"""Group samples by query when the queries come in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_array, check_length, first_true


@dataclass(frozen=True)
class Grouping:
    """Query q is samples order[starts[q]:starts[q+1]], or just that slice if order is None; sorted by ids."""

    ids: NDArray[Any]
    starts: NDArray[np.int64]
    order: NDArray[np.int64] | None

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values with the samples of each query together."""
        return values if self.order is None else values[self.order]

    def scatter(self, values: NDArray[Any]) -> NDArray[Any]:
        """Undo `gather`."""
        if self.order is None:
            return values
        result = np.empty_like(values)
        result[self.order] = values
        return result


def group(qid: ArrayLike, n: int) -> Grouping:
    """Group n samples by query, without sorting if they are already in ascending order."""
    array = as_ids(qid, n)
    if n == 0:
        return Grouping(array, np.zeros(1, np.int64), None)
    changes = np.flatnonzero(array[1:] != array[:-1]) + 1
    starts = np.concatenate([[0], changes, [n]]).astype(np.int64)
    ids = array[starts[:-1]]
    if (ids[1:] > ids[:-1]).all():
        return Grouping(ids, starts, None)
    return _sort(array, n)


def as_ids(qid: ArrayLike, n: int) -> NDArray[Any]:
    """Return the query of each of n samples as an array that can be compared: of numbers or of strings."""
    array = as_array(qid, "qid")
    check_length(array, "qid", n)
    if array.dtype.kind not in "iubfSUO":
        raise TypeError(f"qid must be integers or strings, got dtype {array.dtype}; convert it")
    if array.dtype.kind == "f" and (k := first_true(~np.isfinite(array))) is not None:
        raise ValueError(f"qid[{k}] is {array[k]}; every sample needs a query")
    return _as_comparable(array) if array.dtype.kind == "O" else array


def _as_comparable(array: NDArray[Any]) -> NDArray[Any]:
    kinds = {type(value) for value in array}
    if all(issubclass(kind, str) for kind in kinds):
        return array.astype(str)
    if all(issubclass(kind, int | np.integer) for kind in kinds):
        try:
            return array.astype(np.int64)
        except OverflowError:
            raise ValueError("qid has integers beyond 64 bits; pass them as strings") from None
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    of_kind = np.array([2 * isinstance(value, str) + isinstance(value, int | np.integer) for value in array])
    odd = np.flatnonzero(of_kind == 0) if not of_kind.all() else np.flatnonzero(of_kind != of_kind[0])
    raise TypeError(
        f"qid[{odd[0]}] is {array[odd[0]]!r}: qid must be all integers or all strings, got {names}; convert it"
    )


def _sort(array: NDArray[Any], n: int) -> Grouping:
    """Group by counting, O(n), if ids are integers in a range not much wider than n; otherwise by sorting."""
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        if high - low < 4 * n + 1024 and max(-low, high) < 2**62:
            from rankwise.inference.grouping import order_by_key

            order, ends = order_by_key(array.astype(np.int64) - low, high - low + 1)
            used = np.flatnonzero(np.diff(ends, prepend=0))
            return Grouping((used + low).astype(array.dtype), np.concatenate([[0], ends[used]]), order)
    order = np.argsort(array, kind="stable")
    inner = group(array[order], n)
    return Grouping(inner.ids, inner.starts, order)
