"""Counts for metrics of scores in several partitions: the positives' scores, and the negatives at and between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.dask.exchange import Exchange, Range, Tally
from rankwise.dask.portions import Floats, Ints, Portion, reply
from rankwise.metrics.ranked import Ties


class Standing(NamedTuple):
    """Positives of one query by score, and the negatives at each score and between neighbouring ones.

    between: (2m + 1,) negatives below the first of m scores, equal to it, between it and the next, …, above the last.
    """

    pos: Tally
    between: Ints

    def ties(self) -> Ties:
        """Return the ranking, with neighbouring negatives merged into one tie."""
        gain = np.zeros(self.between.size)
        gain[1::2] = self.pos.counts
        size = self.between + gain
        used = np.flatnonzero(size)[::-1]
        return Ties(size[used], gain[used], np.zeros(1, np.int64), gain[used])


def stand(exchange: Exchange) -> list[Standing]:
    """Return the standing of each query of which partitions have portions."""
    tallies: list[Tally] = exchange.ask(reply, _positives)
    between = exchange.ask(reply, _between, [(found.values,) for found in tallies])
    return list(map(Standing, tallies, between))


def highest_f1(exchange: Exchange) -> tuple[float, float]:
    """Return the scores just above and just below the cut of one query with the highest F1; −∞ if none is below."""
    (standing,) = stand(exchange)
    n_pos = np.cumsum(standing.pos.counts[::-1])
    n_neg = np.cumsum(standing.between[::-1])[1::2]
    f1 = 2.0 * n_pos / (n_pos + n_neg + n_pos[-1])
    cut = float(standing.pos.values[::-1][np.argmax(f1)])  # F1 can be highest only directly after a positive
    below: list[Range] = exchange.ask(reply, _below, [(cut,)])
    return cut, below[0].most


def _positives(portion: Portion) -> Tally:
    return Tally.of(portion.scores[portion.members.where])


def _between(portion: Portion, level: Floats) -> Ints:
    negatives = np.delete(portion.scores, portion.members.where)
    at = np.searchsorted(level, negatives, side="left") + np.searchsorted(level, negatives, side="right")
    return np.bincount(at, minlength=2 * level.size + 1)


def _below(portion: Portion, cut: float) -> Range:
    return Range.of(portion.scores[portion.scores < cut])
