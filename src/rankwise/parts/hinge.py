"""The hinge of large queries that are spread over several parts: the steps of kernels/buckets, by exchange.

1. Parts send the positives' scores and a sample of scores, from which the same buckets are chosen as on one machine.
2. They count negatives by bucket. The summed counts tell in which bucket each positive has its place.
3. Buckets without such a place are settled. In the others, parts count by edges that narrow the places down until few
   negatives are left. These are sent, with equal scores merged.
4. Then the gradient is known as a step function of the score, and parts fill it in.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import limit_of
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.parts.exchange import Counted, Exchange, Joined, Range
from rankwise.parts.share import (
    Fill,
    Settle,
    count_share,
    fill_share,
    first_look,
    hist_of,
    look,
    settle_share,
)

__all__ = ["Large", "Pending", "SolvedLarge", "is_large", "solve_hinge"]

# So few negatives around a positive's place are sent. More are divided into cells, at most so many times.
_FEW, _DEPTH = 64, 6
# Smallest and largest number of cells.
_LEAST_CELLS, _MOST_CELLS = 8, 256
_TYPE = np.empty(0)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Large(NamedTuple):
    """A query with positives and negatives in several parts. weight: factor of its gradient."""

    n: int
    n_pos: int
    weight: float = 1.0


class SolvedLarge(NamedTuple):
    """J and Δ of a query."""

    value: float
    loss: float


class Pending(Protocol):
    """A query whose parts have the gradient. J follows from a sum over parts, `totals_of`."""

    def solved(self, total: float) -> SolvedLarge:
        """Return J and Δ."""
        ...


def is_large(n: int, n_pos: int) -> bool:
    """Return whether one machine would use buckets for the query. Otherwise its number of scores is O(positives)."""
    from rankwise.kernels.engine import A_POSITIVE, LARGE

    return n >= LARGE + A_POSITIVE * n_pos


def solve_hinge(
    exchange: Exchange, queries: list[Large], loss: DiscountedLoss, scale: float
) -> tuple[Exchange, list[Pending]]:
    """Solve queries and give their gradients to the parts, whose states are `Scored` with shares of the queries."""
    if not queries:
        return exchange, []
    searches = [_Search(query, loss, scale) for query in queries]
    looked = exchange.ask(first_look)
    maps = [search.choose(*found) for search, found in zip(searches, looked, strict=True)]
    exchange = exchange.derive(count_share, maps)
    hists = exchange.ask(hist_of)
    exchange = exchange.derive(settle_share, [one.settle(hist) for one, hist in zip(searches, hists, strict=True)])
    while any(search.is_open for search in searches):
        found = exchange.ask(look, [search.next_look() for search in searches])
        for search, (at_least, counted) in zip(searches, found, strict=True):
            search.narrow(at_least, counted)
    return exchange.derive(fill_share, [search.fill() for search in searches]), list(searches)


class _Search:
    """The search for the places of the positives of one query."""

    def __init__(self, query: Large, loss: DiscountedLoss, scale: float) -> None:
        from rankwise.kernels.positives import scaled_weights

        n, n_pos, _ = query
        loss.check(n_pos, n - n_pos, thorough=False)
        self._query, self._scale = query, scale
        self._n_neg = n - n_pos
        self._tables = loss.tables(n_pos, n)
        self._weight = np.empty(n_pos)
        self._norm = scaled_weights(*self._tables, n_pos, self._n_neg, scale, self._weight)
        self._unit = 2.0 / (float(n_pos) * float(self._n_neg))
        self._at_rank = np.zeros(n_pos + 2, np.int64)
        self._upper = np.full(n_pos, np.inf)
        self._ties: list[Floats] = []
        self._depth = 0

    @property
    def is_open(self) -> bool:
        """Whether some places are still unknown."""
        return bool(self._stretches.shape[0])

    def choose(self, pos: Joined, sample: Joined, ends: Range) -> tuple[object, NDArray[np.floating]]:
        """Choose the buckets."""
        from rankwise.kernels.buckets.choosing import choose_by

        n, n_pos, _ = self._query
        self._pos = -np.sort(-pos.values)
        self._ends = ends
        self._buckets, self._pivot = choose_by(sample.values, n, n_pos, limit_of(_TYPE), _TYPE.dtype)
        return self._buckets, self._pivot

    def settle(self, hist: NDArray[np.uint32]) -> Settle:
        """Settle buckets by the counts."""
        from rankwise.kernels.buckets.narrowing import bounds_of
        from rankwise.kernels.buckets.places import find_homes, reference, settle, straighten_homes
        from rankwise.kernels.buckets.regions import BUCKET, HIGH, LOW, START, STOP, J

        n_pos, n_buckets = self._query.n_pos, (3 if self._pivot.size else 1) * (self._buckets.last + 1)
        above, home = np.empty(n_buckets + 1, np.int64), np.empty(n_pos, np.int64)
        discount, tail = self._tables.discount, self._tables.tail
        seen = (self._weight, discount, tail, self._pos, 0, self._buckets, self._pivot)
        if not find_homes(*seen, hist, above, home):
            straighten_homes(*seen, above, home)
        self._ref = float(reference(self._pos, above, home))
        value, loss = np.empty(hist.shape[0]), (self._weight, discount, tail, self._pos)
        whole = (1, n_pos + 1, 1, self._buckets, self._pivot, above, home, self._unit, self._ref)
        regions, _ = settle(*loss, *whole, value, self._at_rank)
        self._stretches = np.ascontiguousarray(
            np.stack([regions[:, LOW], regions[:, HIGH], regions[:, J] - 1, regions[:, STOP] - regions[:, START]], 1)
        )
        self._bounds = np.empty((regions.shape[0], 2))
        beyond = float(np.nextafter(self._ends.most, np.inf))
        bounds_of(self._buckets, self._pivot, regions[:, BUCKET].copy(), self._ends.least, beyond, self._bounds)
        self._floors = np.stack([self._bounds[:, 0], n_pos + 1.0 - regions[:, HIGH]], 1)
        self._searched = [np.arange(low, high) for low, high in self._stretches[:, :2]]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(value)) + 1])
        return Settle(starts, value[starts], value.size, regions[:, BUCKET].copy(), self._unit, self._ref)

    def next_look(self) -> tuple[Floats, Floats]:
        """Return the edges for the next counts, and the ends (k, 2) between which all negatives are requested."""
        from rankwise.kernels.buckets.narrowing import SIZE, edges_between

        size = self._stretches[:, SIZE]
        self._divided = (size > _FEW) & (self._depth < _DEPTH)
        few = self._bounds[~self._divided]
        bounds = self._bounds[self._divided]
        wanted = np.sqrt(2.0 * size[self._divided])
        cells = np.clip(2 ** np.ceil(np.log2(wanted)), _LEAST_CELLS, _MOST_CELLS).astype(np.int64)
        self._starts, edges = np.empty(bounds.shape[0] + 1, np.int64), np.empty(int(cells.sum()) + bounds.shape[0])
        edges_between(bounds, cells, self._depth % 2 == 0, self._starts, edges)
        self._edges = edges[: self._starts[-1]]
        self._depth += 1
        return self._edges, few

    def narrow(self, at_least: Ints, counted: Counted) -> None:
        """Narrow the places down by the counts of the parts."""
        from rankwise.kernels.buckets.narrowing import ABOVE, narrow

        stretches, bounds = self._stretches, self._bounds
        if not stretches.shape[0]:
            return
        divided = self._divided
        of_edges = stretches[divided], self._starts, self._edges, self._above_edges(at_least, stretches[divided])
        few = stretches[~divided]
        of_scores = few, *_by_score(bounds[~divided], few[:, ABOVE], counted)
        self._stretches, self._bounds = np.empty((0, 4), np.int64), np.empty((0, 2))
        kept = []
        for exact, (own, starts, edges, above) in ((False, of_edges), (True, of_scores)):
            most = int((own[:, 1] - own[:, 0]).sum())
            found, ends, ties = np.empty((most, 4), np.int64), np.empty((most, 2)), np.empty((most, 2))
            loss = (self._weight, self._tables.discount, self._tables.tail, self._pos)
            flags, out = np.full(own.shape[0], exact), (self._at_rank, self._upper, found, ends, ties)
            n_found, n_ties = narrow(*loss, np.ascontiguousarray(own), starts, edges, above, flags, *out)
            self._ties.append(ties[:n_ties])
            kept.append((found[:n_found], ends[:n_found]))
        self._stretches = np.concatenate([found for found, _ in kept])
        self._bounds = np.concatenate([ends for _, ends in kept])

    def _above_edges(self, at_least: Ints, stretches: Ints) -> Ints:
        """Return the number of all negatives at or above each edge, from the number of open ones."""
        from rankwise.kernels.buckets.narrowing import ABOVE

        counts = np.diff(self._starts)
        return np.asarray(at_least + np.repeat(stretches[:, ABOVE] - at_least[self._starts[1:] - 1], counts))

    def fill(self) -> tuple[Fill, float, float]:
        """Return the gradient as a step function of the score."""
        from rankwise.kernels.buckets.passes import finish

        n_pos, tables, pos = self._query.n_pos, self._tables, self._pos
        slopes, order = np.empty(n_pos), np.arange(n_pos)
        self._of_pos, self._lost = finish(
            tables.weight, tables.discount, tables.tail, self._norm, pos, order, self._n_neg, self._at_rank, self._ref,
            slopes,
        )  # fmt: skip
        k = np.concatenate([np.empty(0, np.int64), *self._searched])
        steps = np.concatenate([self._floors, np.stack([self._upper[k - 1], n_pos + 1.0 - k], 1)])
        steps = steps[np.lexsort((steps[:, 1], steps[:, 0]))]
        ties = np.concatenate([np.empty((0, 2)), *self._ties])
        ties = ties[np.argsort(ties[:, 0])]
        levels, first = np.unique(pos, return_index=True)
        numbers = (steps[:, 0], steps[:, 1], ties[:, 0], ties[:, 1], levels, slopes[first])
        return Fill(*numbers, self._query.weight), self._unit, self._ref

    def solved(self, total: float) -> SolvedLarge:
        """Return J and Δ, from the sum over the parts' gradients."""
        return SolvedLarge(self._scale * self._lost + total + self._of_pos, self._lost)


def _by_score(bounds: Floats, above: Ints, counted: Counted) -> tuple[Ints, Floats, Ints]:
    """Return starts, edges and negatives above: every score of a stretch is an edge, and its end is the last edge."""
    begin, stop = np.searchsorted(counted.values, bounds, side="left").T
    starts = np.concatenate([[0], np.cumsum(stop - begin + 1)]).astype(np.int64)
    edges, over = np.empty(starts[-1]), np.empty(starts[-1], np.int64)
    at_least = np.concatenate([np.cumsum(counted.counts[::-1])[::-1], [0]])
    for s, (a, b) in enumerate(zip(begin, stop, strict=True)):
        part = slice(starts[s], starts[s + 1])
        edges[part] = np.append(counted.values[a:b], bounds[s, 1])
        over[part] = at_least[a : b + 1] - at_least[b] + above[s]
    return starts, edges, over
