"""A part's share of large queries, and its work for their hinge: count, settle, look, fill."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import limit_of, raise_not_finite
from rankwise.parts.exchange import Counted, Joined, Range

__all__ = [
    "Fill",
    "Plan",
    "Scored",
    "Settle",
    "Share",
    "count_share",
    "fill_share",
    "first_look",
    "hist_of",
    "look",
    "settle_share",
    "share_out",
    "totals_of",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Plan(NamedTuple):
    """Where the samples of a large query are in a part. rows: of the part's samples; None means all of them.

    where: positives among rows. first: number of the query's samples in the parts before. n: their number in all parts.
    """

    rows: Ints | None
    where: Ints
    first: int
    n: int


class Settle(NamedTuple):
    """Data that settle most negatives: P + 1 − rank by bucket, in runs; open buckets; the unit of gradients."""

    run_starts: Ints
    run_values: Floats
    n_values: int
    open_buckets: Ints
    unit: float
    ref: float


class Fill(NamedTuple):
    """Data that settle the rest, as steps of the score: P + 1 − rank from breaks on and for ties; positives' gradients.

    weight: of the query, a factor of the gradient.
    """

    breaks: Floats
    values: Floats
    ties: Floats
    means: Floats
    levels: Floats
    slopes: Floats
    weight: float


@dataclass(frozen=True)
class Share:
    """A part of one large query, with contiguous scores and the results so far."""

    plan: Plan
    scores: Floats
    buckets: Any = None
    pivot: Any = None
    hist: Any = None
    gradient: Any = None
    mixed: Any = None
    index: Any = None
    total: float = 0.0

    def first_look(self) -> tuple[Joined, Joined, Range]:
        """Return the scores of the positives, a sample for the choice of buckets, and the range of all scores."""
        from rankwise.kernels.buckets.choosing import sampled

        at = sampled(self.plan.n, self.plan.first, self.plan.first + self.scores.size) - self.plan.first
        return Joined(self.scores[self.plan.where]), Joined(self.scores[at]), Range.of(self.scores)

    def count(self, buckets: Any, pivot: Any) -> Share:
        """Count negatives by bucket, in hist."""
        from rankwise.kernels.buckets.passes import COPIES, OWN, count

        n_buckets, rows = (3 * (buckets.last + 1), COPIES) if pivot.size else (buckets.last + 1, 1)
        hist = np.zeros((rows, n_buckets + OWN), np.uint32)
        n, limit = self.scores.size, limit_of(self.scores)
        if n and not count(self.scores, 0, n, self.plan.where, limit, buckets, pivot, hist):
            raise_not_finite(self.scores, self.plan.first)
        return replace(self, buckets=buckets, pivot=pivot, hist=hist[0])

    def settle(self, given: Settle) -> Share:
        """Compute gradients of negatives in settled buckets; collect the other negatives in ascending order."""
        from rankwise.kernels.buckets.passes import BLOCK, assign

        n = self.scores.size
        lengths = np.diff(given.run_starts, append=given.n_values)
        value = np.repeat(given.run_values, lengths)
        ends = np.cumsum(self.hist[given.open_buckets].astype(np.int64))
        cursor = np.concatenate([[0], ends[:-1]]).astype(np.int64) if ends.size else np.zeros(0, np.int64)
        gathered = int(ends[-1]) if ends.size else 0
        mixed, index = np.empty(gathered), np.empty(gathered, np.int64)
        gradient, partial = np.empty(n), np.zeros(-(-n // BLOCK))
        shared = (self.plan.where, self.buckets, self.pivot, value, given.unit, given.ref)
        if n:
            assign(self.scores, 0, n, *shared, cursor, ends, mixed, index, gradient, partial)
        order = np.argsort(mixed)
        return replace(
            self, hist=None, gradient=gradient, mixed=mixed[order], index=index[order], total=float(partial.sum())
        )

    def look(self, edges: Floats, ends: Floats) -> tuple[Ints, Counted]:
        """Return how many open negatives are at or above each edge; count those between ends (k, 2)."""
        at_least = self.mixed.size - np.searchsorted(self.mixed, edges, side="left")
        begin, stop = np.searchsorted(self.mixed, ends, side="left").T if ends.size else (_NONE, _NONE)
        wanted = np.zeros(self.mixed.size + 1, np.int64)
        np.add.at(wanted, begin, 1)
        np.add.at(wanted, stop, -1)
        return at_least, Counted.of(self.mixed[np.cumsum(wanted[:-1]) > 0])

    def fill(self, given: Fill, unit: float, ref: float) -> Share:
        """Complete the gradient; total: Σ gradient·(score − ref) of the negatives, before the query's weight."""
        gradient, total = self.gradient.copy(), self.total
        if self.mixed.size:
            below = given.values[np.searchsorted(given.breaks, self.mixed, side="right") - 1]
            if given.ties.size:
                at = np.minimum(np.searchsorted(given.ties, self.mixed), given.ties.size - 1)
                below = np.where(given.ties[at] == self.mixed, given.means[at], below)
            gradient[self.index] = unit * below
            total += float((unit * below) @ (self.mixed - ref))
        where = self.plan.where
        gradient[where] = given.slopes[np.searchsorted(given.levels, self.scores[where])]
        gradient *= given.weight
        return replace(self, gradient=gradient, mixed=None, index=None, total=total)


_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Scored:
    """State of a part whose samples have scores, (n,), with its shares of large queries."""

    scores: Floats
    shares: list[Share] = field(default_factory=list)


State = TypeVar("State", bound=Scored)


def share_out(state: State, plans: list[Plan]) -> State:
    """Return a part with its shares of queries."""
    rows = ((one, state.scores if one.rows is None else state.scores[one.rows]) for one in plans)
    return replace(state, shares=[Share(one, np.ascontiguousarray(scores)) for one, scores in rows])


def first_look(state: Scored) -> list[tuple[Joined, Joined, Range]]:
    """See `Share.first_look`."""
    return [share.first_look() for share in state.shares]


def count_share(state: State, maps: list[tuple[Any, Any]]) -> State:
    """See `Share.count`."""
    return replace(state, shares=[share.count(*one) for share, one in zip(state.shares, maps, strict=True)])


def hist_of(state: Scored) -> list[NDArray[np.uint32]]:
    """Return the counts."""
    return [share.hist for share in state.shares]


def settle_share(state: State, given: list[Settle]) -> State:
    """See `Share.settle`."""
    return replace(state, shares=[share.settle(one) for share, one in zip(state.shares, given, strict=True)])


def look(state: Scored, given: list[tuple[Floats, Floats]]) -> list[tuple[Ints, Counted]]:
    """See `Share.look`."""
    return [share.look(*one) for share, one in zip(state.shares, given, strict=True)]


def fill_share(state: State, given: list[tuple[Fill, float, float]]) -> State:
    """See `Share.fill`."""
    return replace(state, shares=[share.fill(*one) for share, one in zip(state.shares, given, strict=True)])


def totals_of(state: Scored) -> list[float]:
    """Return Σ gradient·(score − ref) of the negatives."""
    return [share.total for share in state.shares]
