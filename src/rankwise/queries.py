"""The problem and its solution: `Queries` are built once and solved for many scores, each time to a `Solved`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, check_length, first_true
from rankwise.interleaving import Interleaving

# For packages that extend rankwise.
__all__ = ["Queries", "as_queries", "group"]

Kept = TypeVar("Kept")
# Booleans that say which samples are relevant, or grades.
Truth = NDArray[np.bool_] | NDArray[np.float64]
# With at least this many samples per query, counting flags one query after the other is faster.
_MANY = 1 << 12


@cache
def compiled(name: str) -> ModuleType:
    """Return a module of rankwise.kernels, imported at the first use."""
    return import_module(f"rankwise.kernels.{name}")


@dataclass(eq=False)
class Queries:
    """Samples of queries, one query after the other: what a `Surrogate` solves.

    Query q is samples starts[q] : starts[q + 1].

    Parameters
    ----------
    relevant : ndarray of bool of shape (n,)
        Which samples are relevant: those of a grade above 0.
    starts : ndarray of shape (Q + 1,)
        First sample of each query, and n.
    grades : ndarray of shape (n,), optional
        Grades. None if relevance is binary.

    See Also
    --------
    Solved : What a surrogate returns.
    Surrogate : Base class of surrogates, also of your own.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.Queries(np.array([True, False, True, False]), np.array([0, 2, 4]))
    >>> queries.counts.tolist(), queries.can_rank.tolist()
    ([[1, 1], [1, 1]], [True, True])
    """

    relevant: NDArray[np.bool_]
    starts: NDArray[np.int64]
    grades: NDArray[np.float64] | None = None
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, name: str, compute: Callable[[], Kept], of: object = None) -> Kept:
        """Return what is computed once under this name, and once more if it is asked for another object.

        Parameters
        ----------
        name : str
            Name of what is computed.
        compute : callable
            Function without arguments that computes it.
        of : object, optional
            What it depends on beside the queries.

        Returns
        -------
        object
            What `compute` returned.
        """
        kept: tuple[object, Kept] | None = self._kept.get(name)
        if kept is None or kept[0] is not of:
            kept = self._kept[name] = of, compute()
        return kept[1]

    @property
    def truth(self) -> Truth:
        """The grades, or else which samples are relevant."""
        return self.relevant if self.grades is None else self.grades

    @cached_property
    def n_pos(self) -> int:
        """Number of relevant samples of all queries."""
        return int(np.count_nonzero(self.relevant))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of samples of each query, (Q,)."""
        return np.diff(self.starts)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Numbers of positives and negatives of each query, (2, Q)."""
        if self.starts.shape[0] == 2:
            return np.array([[self.n_pos], [self.relevant.shape[0] - self.n_pos]])
        n_queries = self.sizes.size
        if n_queries * _MANY < self.relevant.shape[0]:
            each = (self.relevant[a:b] for a, b in pairwise(self.starts.tolist()))
            n_pos = np.fromiter(map(np.count_nonzero, each), np.int64, n_queries)
            return np.stack([n_pos, self.sizes - n_pos])
        n_pos = np.zeros(n_queries, np.int64)
        used = self.sizes > 0  # elsewhere reduceat would take the next sample
        n_pos[used] = np.add.reduceat(self.relevant, self.starts[:-1][used], dtype=np.int64) if used.any() else 0
        return np.stack([n_pos, self.sizes - n_pos])

    @cached_property
    def can_rank(self) -> NDArray[np.bool_]:
        """Whether each query has something to rank: positives and negatives, or several grades, (Q,)."""
        if self.grades is None:
            return np.asarray(self.counts.min(axis=0) > 0)
        found, used = np.zeros(self.sizes.size, np.bool_), self.sizes > 0
        first = self.starts[:-1][used]
        if first.size:
            found[used] = np.minimum.reduceat(self.grades, first) < np.maximum.reduceat(self.grades, first)
        return found


def as_queries(truth: Truth, starts: NDArray[np.int64]) -> Queries:
    """Return queries with these starts, from relevance (booleans) or grades (float64)."""
    if truth.dtype == np.bool_:
        return Queries(cast("NDArray[np.bool_]", truth), starts)
    return Queries(truth > 0.0, starts, cast("NDArray[np.float64]", truth))


def single_query(truth: Truth) -> Queries:
    """Return one query of all samples."""
    starts = np.empty(2, np.int64)
    starts[0], starts[1] = 0, truth.shape[0]
    return as_queries(truth, starts)


def part_of(queries: Queries, which: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the samples (n,) of some of the queries, which (Q,), and the starts of these queries on their own."""
    return np.repeat(which, queries.sizes), np.concatenate([[0], np.cumsum(queries.sizes[which])])


class FoundRanking(NamedTuple):
    """The most violating ranking of a query, from which an `Interleaving` is made on request.

    gradient: (n,) falls as ranks rise. above: (P + 1,) c_k for k = 1..P, the negatives above the k-th positive, and 0
    at index 0. positives: (P,) their positions, by descending score.
    """

    gradient: NDArray[np.floating]
    above: NDArray[np.int64]
    positives: NDArray[np.int64]

    def interleaving(self) -> Interleaving:
        """Return the ranking as an `Interleaving`."""
        n = self.gradient.size
        negatives = np.delete(np.arange(n), self.positives)
        counts = np.diff(self.above, append=n - self.positives.size)
        ranks = np.empty(negatives.size, np.int64)
        ranks[np.argsort(-self.gradient[negatives], kind="stable")] = np.repeat(np.arange(1, counts.size + 1), counts)
        return Interleaving(ranks, self.positives, negatives)


class Solved(NamedTuple):
    """What a surrogate returns: its value for each query, and the gradient of the sum of values.

    Parameters
    ----------
    value : ndarray of shape (Q,)
        Value of each query, 0 if it has nothing to rank.
    loss : ndarray of shape (Q,)
        Loss Δ of the most violating ranking of each query; the value again where none is searched for.
    gradient : ndarray of shape (n,)
        Gradient of the sum of values by sample, in the dtype of the scores.
    ranking : FoundRanking, optional
        The most violating ranking of a single query with positives and negatives.

    See Also
    --------
    Queries : The queries that are solved.
    Surrogate : Base class of surrogates, also of your own.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.Queries(np.array([False, True]), np.array([0, 2]))
    >>> found = rw.Smooth(width=2.0).solve(np.array([1.0, 0.0]), queries, rw.AUC())
    >>> found.value, found.gradient
    (array([0.75]), array([ 0.25, -0.25]))
    """

    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    gradient: NDArray[np.floating]
    ranking: FoundRanking | None = None


def solved_alone(value: float, loss: float, ranking: FoundRanking) -> Solved:
    """Return the result of a single query."""
    return Solved(np.array([value]), np.array([loss]), ranking.gradient, ranking)


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
            from rankwise.kernels.sorting import order_by_key

            order, ends = order_by_key(array.astype(np.int64) - low, high - low + 1)
            used = np.flatnonzero(np.diff(ends, prepend=0))
            return Grouping((used + low).astype(array.dtype), np.concatenate([[0], ends[used]]), order)
    order = np.argsort(array, kind="stable")
    inner = group(array[order], n)
    return Grouping(inner.ids, inner.starts, order)


def n_used(queries: Queries, ids: NDArray[Any] | None, empty: str) -> int:
    """Return the number of queries that a mean is taken over.

    Queries with nothing to rank count, are left out or refused. ids: their names; None if there is only one query.
    """
    can_rank = queries.can_rank
    if empty == "error" and not can_rank.all():
        q = int(np.argmin(can_rank))
        _refuse_empty(queries, q, "the query" if ids is None else f"query {ids[q]}")
    return max(int(np.count_nonzero(can_rank)) if empty == "skip" else can_rank.size, 1)


def _refuse_empty(queries: Queries, q: int, which: str) -> None:
    """Raise because query q has nothing to rank."""
    n_pos, n_neg = queries.counts[:, q].tolist()
    has = f"{n_pos} positives and {n_neg} negatives" if queries.grades is None else "no two different grades"
    raise ValueError(f"{which} has {has}, so it has no ranking loss; remove it, or pass empty='zero' or empty='skip'")
