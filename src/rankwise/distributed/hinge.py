"""The hinge of large queries that are spread over several parts: the steps of the local large query, by exchange.

1. Parts send the positives' scores and a sample of scores, from which the same buckets are chosen as on one machine.
2. They count negatives by bucket. The summed counts tell in which bucket each positive has its place.
3. Buckets without such a place are settled. In the others, parts look by edges that narrow the places down until few
   negatives are left. These are sent, with equal scores merged.
4. Then the gradient is known as a step function of the score, and parts fill it in.

States of a portion: Portion → Counted → Settled → Solved.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import limit_of, raise_not_finite
from rankwise.distributed.exchange import Exchange, Joined, Range, Tally
from rankwise.distributed.part import Floats, Found, Ints, Large, Members, Portion, Solved, advance, reply
from rankwise.kernels.buckets import narrowing, passes, places, regions
from rankwise.kernels.buckets.choosing import choose_by, sampled
from rankwise.kernels.positives import finish, scaled_weights
from rankwise.metrics.discounted import DiscountedLoss

# So few negatives around a positive's place are sent. More are divided into cells, at most so many times.
_FEW, _DEPTH = 64, 6
# Smallest and largest number of cells.
_LEAST_CELLS, _MOST_CELLS = 8, 256
# What parts reply about negatives between two edges: nothing, the edge below each of them, or their scores.
_NOTHING, _EDGE, _SCORE = range(3)
_TYPE = np.empty(0)


class Counted(NamedTuple):
    """A portion whose negatives are counted by bucket, in hist."""

    members: Members
    scores: Floats
    buckets: Any
    pivot: Floats
    hist: NDArray[np.uint32]


class Settled(NamedTuple):
    """A portion with the gradients of its settled negatives. open_scores: of the others, ascending; at: their samples.

    total: Σ gradient·(score − ref) of the settled negatives.
    """

    members: Members
    scores: Floats
    gradient: Floats
    open_scores: Floats
    at: Ints
    total: float


def solve_hinge(
    exchange: Exchange, queries: list[Large], loss: DiscountedLoss, scale: float
) -> tuple[Exchange, list[Found]]:
    """Return parts whose portions are `Solved`, and J and Δ of each query."""
    if not queries:
        return exchange, []
    searches = [_Search(query, loss, scale) for query in queries]
    looked = exchange.ask(reply, _describe)
    maps = [search.choose(*found) for search, found in zip(searches, looked, strict=True)]
    exchange = exchange.derive(advance, _count, maps)
    hists = exchange.ask(reply, getattr, [("hist",)] * len(queries))
    settles = [search.settle(hist) for search, hist in zip(searches, hists, strict=True)]
    exchange = exchange.derive(advance, _settle, settles)
    while any(search.is_open for search in searches):
        tallies = exchange.ask(reply, _look, [search.edges() for search in searches])
        for search, tally in zip(searches, tallies, strict=True):
            search.narrow(tally)
    filled = [search.fill() for search in searches]
    return exchange.derive(advance, _fill, [fill for _, fill in filled]), [found for found, _ in filled]


def _describe(portion: Portion) -> tuple[Joined, Joined, Range]:
    """Return the scores of the positives, a sample for the choice of buckets, and the range of all scores."""
    (_, where, first, n), scores = portion
    at = sampled(n, first, first + scores.size) - first
    return Joined(scores[where]), Joined(scores[at]), Range.of(scores)


def _count(portion: Portion, buckets: Any, pivot: Floats) -> Counted:
    members, scores = portion
    cells, rows = (3, passes.COPIES) if pivot.size else (1, 1)
    hist = np.zeros((rows, cells * (buckets.last + 1) + passes.OWN), np.uint32)
    n, limit = scores.size, limit_of(scores)
    if n and not passes.count(scores, 0, n, members.where, limit, buckets, pivot, hist):
        raise_not_finite(scores, members.first)
    return Counted(members, scores, buckets, pivot, hist[0])


def _settle(
    portion: Counted, run_starts: Ints, run_values: Floats, n_values: int, open_buckets: Ints, unit: float, ref: float
) -> Settled:
    """Settle most negatives; run_values: P + 1 − rank by bucket, the same from each of run_starts to the next."""
    members, scores, buckets, pivot, hist = portion
    n, value = scores.size, np.repeat(run_values, np.diff(run_starts, append=n_values))
    ends = np.cumsum(hist[open_buckets].astype(np.int64))
    cursor = ends - hist[open_buckets]
    n_open = int(ends[-1]) if ends.size else 0
    open_scores, at = np.empty(n_open), np.empty(n_open, np.int64)
    gradient, partial = np.empty(n), np.zeros(-(-n // passes.BLOCK))
    if n:
        shared = (members.where, buckets, pivot, value, unit, ref)
        passes.assign(scores, 0, n, *shared, cursor, ends, open_scores, at, gradient, partial)
    order = np.argsort(open_scores)
    return Settled(members, scores, gradient, open_scores[order], at[order], float(partial.sum()))


def _look(portion: Settled, bounds: Floats, kinds: NDArray[np.int8]) -> Tally:
    """Return the open negatives; kinds: how those from each bound on are seen. The last kind is `_NOTHING`."""
    scores = portion.open_scores
    if not bounds.size:
        return Tally.of(scores[:0])
    at = np.searchsorted(bounds, scores, side="right") - 1  # −1, below all bounds, has the last kind
    seen = np.where(kinds[at] == _EDGE, bounds[at], scores)
    return Tally.of(seen[kinds[at] != _NOTHING])


def _fill(
    portion: Settled,
    steps: Floats,
    ties: Floats,
    levels: Floats,
    slopes: Floats,
    weight: float,
    unit: float,
    ref: float,
) -> Solved:
    """Settle the rest: P + 1 − rank by steps of the score, (from where on, value), but for ties, (score, mean).

    slopes: gradients of the positives by level; weight: of the query, a factor of the gradient.
    """
    members, scores, settled, open_scores, at, total = portion
    gradient = settled.copy()
    if open_scores.size:
        below = steps[1][np.searchsorted(steps[0], open_scores, side="right") - 1]
        if ties.size:
            tie = np.minimum(np.searchsorted(ties[0], open_scores), ties.shape[1] - 1)
            below = np.where(ties[0][tie] == open_scores, ties[1][tie], below)
        gradient[at] = unit * below
        total += float((unit * below) @ (open_scores - ref))
    gradient[members.where] = slopes[np.searchsorted(levels, scores[members.where])]
    return Solved(members, weight * gradient, total)


class _Search:
    """The search for the places of the positives of one query among the negatives.

    A stretch is positives whose places are among the negatives between two bounds, see kernels/narrowing.py.
    """

    def __init__(self, query: Large, loss: DiscountedLoss, scale: float) -> None:
        n, n_pos, _ = query
        loss.check(n_pos, n - n_pos)
        self._query, self._scale = query, scale
        self._tables, weight = loss.tables(n_pos, n), np.empty(n_pos)
        self._norm = scaled_weights(*self._tables, n_pos, n - n_pos, scale, weight)
        self._loss = (weight, self._tables.discount, self._tables.tail)
        self._unit = 2.0 / (float(n_pos) * float(n - n_pos))
        self._at_rank = np.zeros(n_pos + 2, np.int64)
        self._upper = np.full(n_pos, np.inf)
        self._ties = np.empty((0, 2))
        self._depth = 0

    @property
    def is_open(self) -> bool:
        """Whether some places are still unknown."""
        return bool(self._stretches.shape[0])

    def choose(self, pos: Joined, sample: Joined, ends: Range) -> tuple[Any, NDArray[np.floating]]:
        """Choose the buckets."""
        n, n_pos, _ = self._query
        self._pos, self._ends = -np.sort(-pos.values), ends
        self._buckets, self._pivot = choose_by(sample.values, n, n_pos, limit_of(_TYPE), _TYPE.dtype)
        return self._buckets, self._pivot

    def settle(self, hist: NDArray[np.uint32]) -> tuple[Any, ...]:
        """Settle buckets by the counts; return what `_settle` needs."""
        n_pos, n_buckets = self._query.n_pos, (3 if self._pivot.size else 1) * (self._buckets.last + 1)
        above, home = np.empty(n_buckets + 1, np.int64), np.empty(n_pos, np.int64)
        seen = (*self._loss, self._pos, 0, self._buckets, self._pivot)
        if not places.find_homes(*seen, hist, above, home):
            places.straighten_homes(*seen, above, home)
        self._ref = float(places.reference(self._pos, above, home))
        value = np.empty(hist.shape[0])
        whole = (1, n_pos + 1, 1, self._buckets, self._pivot, above, home, self._unit, self._ref)
        found, _ = places.settle(*self._loss, self._pos, *whole, value, self._at_rank)
        buckets, low, high = found[:, regions.BUCKET].copy(), found[:, regions.LOW], found[:, regions.HIGH]
        size = found[:, regions.STOP] - found[:, regions.START]
        self._stretches = np.stack([low, high, found[:, regions.J] - 1, size], 1)
        self._bounds = np.empty((found.shape[0], 2))
        beyond = float(np.nextafter(self._ends.most, np.inf))
        narrowing.bounds_of(self._buckets, self._pivot, buckets, self._ends.least, beyond, self._bounds)
        self._floors = np.stack([self._bounds[:, 0], n_pos + 1.0 - high], 1)
        self._searched = [np.arange(*ends) for ends in self._stretches[:, :2]]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(value)) + 1])
        return starts, value[starts], value.size, buckets, self._unit, self._ref

    def edges(self) -> tuple[Floats, NDArray[np.int8]]:
        """Return edges that divide the stretches, ascending, and how parts see negatives from each edge on."""
        order = np.argsort(self._bounds[:, 0])
        self._stretches, self._bounds = self._stretches[order], self._bounds[order]
        size = self._stretches[:, narrowing.SIZE]
        self._exact = (size <= _FEW) | (self._depth >= _DEPTH)
        wanted = 2.0 ** np.ceil(0.5 * np.log2(2.0 * np.maximum(size, 1)))
        cells = np.where(self._exact, 1.0, np.clip(wanted, _LEAST_CELLS, _MOST_CELLS)).astype(np.int64)
        starts, found = np.empty(size.size + 1, np.int64), np.empty(int((cells + 1).sum()))
        narrowing.edges_between(self._bounds, cells, self._depth % 2 == 0, starts, found)
        kinds = np.repeat(np.where(self._exact, _SCORE, _EDGE), np.diff(starts)).astype(np.int8)
        kinds[starts[1:] - 1] = _NOTHING
        self._depth += 1
        self._edges = found[: starts[-1]]
        return self._edges, kinds

    def narrow(self, tally: Tally) -> None:
        """Narrow the stretches down: what the parts have seen begins cells, and an edge or the stretch ends them."""
        stretches, bounds = self._stretches, self._bounds
        if not stretches.shape[0]:
            return
        ends = self._edges[np.searchsorted(self._edges, tally.values, side="right")]
        seen = np.unique(np.concatenate([tally.values, ends, bounds[:, 1]]))
        below = np.append(0, np.cumsum(tally.counts))
        at_least = below[-1] - below[np.searchsorted(tally.values, seen)]
        begin, stop = np.searchsorted(seen, bounds).T
        starts = np.append(0, np.cumsum(stop - begin + 1))
        own = np.repeat(np.arange(begin.size), stop - begin + 1)
        at = np.arange(own.size) - starts[own] + begin[own]
        above = at_least[at] - at_least[stop[own]] + stretches[own, narrowing.ABOVE]
        most = int((stretches[:, 1] - stretches[:, 0]).sum())
        kept, within, ties = np.empty((most, 4), np.int64), np.empty((most, 2)), np.empty((most, 2))
        out = (self._exact, self._at_rank, self._upper, kept, within, ties)
        n_kept, n_ties = narrowing.narrow(*self._loss, self._pos, stretches, starts, seen[at], above, *out)
        self._stretches, self._bounds = kept[:n_kept], within[:n_kept]
        self._ties = np.concatenate([self._ties, ties[:n_ties]])

    def fill(self) -> tuple[Found, tuple[Any, ...]]:
        """Return J and Δ, and what `_fill` needs."""
        (n, n_pos, of_query), pos, slopes = self._query, self._pos, np.empty(self._query.n_pos)
        weights = (self._tables.weight, self._tables.discount, self._tables.tail, self._norm)
        how = (np.arange(n_pos), n - n_pos, self._at_rank, self._ref, slopes)
        of_pos, lost = finish(*weights, pos, *how)
        k = np.concatenate([np.empty(0, np.int64), *self._searched])
        steps = np.concatenate([self._floors, np.stack([self._upper[k - 1], n_pos + 1.0 - k], 1)])
        steps, ties = steps[np.lexsort((steps[:, 1], steps[:, 0]))].T, self._ties[np.argsort(self._ties[:, 0])].T
        levels, first = np.unique(pos, return_index=True)
        found = Found(self._scale * lost + of_pos, lost)
        return found, (steps, ties, levels, slopes[first], of_query, self._unit, self._ref)
