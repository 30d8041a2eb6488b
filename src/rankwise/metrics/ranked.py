"""Queries ranked by score, with samples of equal score as one tie: all that a metric needs to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.queries import Grouping, group

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ties:
    """Ties: groups of samples of one score, from the top of each query.

    size, gain: (m,) the number of samples of each, and the sum of their gains. first: (q,) the first tie of each query.
    each: (n,) the gain of each sample, tie by tie. times: (n,) how often each sample occurs; None means once. ideal:
    the same samples ranked by their gains, if the metric needs it.
    """

    size: FloatArray
    gain: FloatArray
    first: IntArray
    each: FloatArray
    times: FloatArray | None = None
    ideal: Ties | None = None

    def total(self, values: FloatArray) -> FloatArray:
        """Return the sum over the ties of each query, (q,)."""
        return np.add.reduceat(values, self.first)

    def repeat(self, values: FloatArray) -> FloatArray:
        """Return values (q,) of queries for each of their ties, (m,)."""
        return np.repeat(values, _sizes(self.first, self.size.size))

    def above(self, values: FloatArray) -> FloatArray:
        """Return the sum over the ties above, in the same query, (m,): exact for whole numbers."""
        before = np.cumsum(values) - values
        return before if self.first.size == 1 else before - self.repeat(before[self.first])

    def share(self, k: int) -> FloatArray:
        """Return the share of each tie that is among the first k samples of its query, (m,)."""
        return np.clip(k - self.above(self.size), 0.0, self.size) / np.maximum(self.size, 1.0)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Samples by query and falling score. order: (n,) from the grouped samples. gain: (n,) in this order.

    begins: (m,) the first sample of each tie. first: (q,) the first tie of each query. ideal: the ranking by gains.
    """

    order: IntArray
    gain: FloatArray
    begins: IntArray
    first: IntArray
    ideal: Ranked | None = None

    def ties(self, times: FloatArray | None = None) -> Ties:
        """Return the ties; with times (n,), as if each grouped sample occurred that many times."""
        ideal = self.ideal.ties(times) if self.ideal is not None else None
        if times is None:
            size, gain = _sizes(self.begins, self.order.size).astype(np.float64), self.gain
        else:
            times = times[self.order]
            size, gain = np.add.reduceat(times, self.begins), self.gain * times
        return Ties(size, np.add.reduceat(gain, self.begins), self.first, self.gain, times, ideal)


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of samples by query, made once and ranked by any scores. gain: (n,) grouped. ideal: the ranking by gains.

    used: the gains, scaled so that the largest of a query is 1 if the ideal counts: then no sum overflows.
    """

    grouping: Grouping
    gain: FloatArray
    used: FloatArray
    ideal: Ranked | None

    @classmethod
    def of(cls, gain: FloatArray, qid: ArrayLike | None, ideal: bool) -> Gains:
        """Group gains by query, and rank them by themselves if the metric needs this."""
        n = gain.size
        grouping = Grouping(np.zeros(1, np.int64), np.array([0, n]), None) if qid is None else group(qid, n)
        gain, begins = grouping.gather(gain), grouping.starts[:-1]
        if not ideal or n == 0:
            return cls(grouping, gain, gain, None)
        top = np.maximum.reduceat(gain, begins)
        scaled = gain / np.repeat(np.where(top > 0.0, top, 1.0), np.diff(grouping.starts))
        return cls(grouping, gain, scaled, _rank(scaled, scaled, begins))

    def rank(self, scores: NDArray[np.floating]) -> Ranked | None:
        """Rank the samples by scores (n,); None without samples."""
        if self.gain.size == 0:
            return None
        return _rank(self.grouping.gather(scores), self.used, self.grouping.starts[:-1], self.ideal)


def _sizes(begins: IntArray, n: int) -> IntArray:
    """Return the sizes of stretches that begin at these of n positions; np.diff(append=n) takes three times as long."""
    sizes = np.empty_like(begins)
    np.subtract(begins[1:], begins[:-1], out=sizes[:-1])
    sizes[-1] = n - begins[-1]
    return sizes


def _rank(key: NDArray[np.floating], gain: FloatArray, begins: IntArray, ideal: Ranked | None = None) -> Ranked:
    n, n_queries = key.size, begins.size
    order = np.argsort(-key)  # ties may be in any order: they are one tie
    if n_queries > 1:
        # Up to 65,536 queries fit 16 bits, which NumPy sorts by radix.
        numbers = np.arange(n_queries, dtype=np.min_scalar_type(n_queries - 1))
        query = np.repeat(numbers, _sizes(begins, n))
        order = order[np.argsort(query[order], kind="stable")]
    key = key[order]
    new = np.empty(n, np.bool_)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    new[begins] = True
    first_of_tie = np.flatnonzero(new)
    return Ranked(order, gain[order], first_of_tie, np.searchsorted(first_of_tie, begins), ideal)
