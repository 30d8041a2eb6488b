"""Counts for metrics of scores in several parts: the positives' scores, and the negatives at and between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.distributed.exchange import Exchange, Range, Tally
from rankwise.distributed.part import Floats, Ints, Portion, reply
from rankwise.metrics.ranked import Ties


class Standing(NamedTuple):
    """Positives of one query by score, and the negatives around them.

    level: (m,) their distinct scores, ascending. n_pos: (m,) number of positives at each. between: (2m + 1,) negatives
    below the first level, equal to it, between it and the next, …, above the last.
    """

    level: Floats
    n_pos: Ints
    between: Ints

    def ties(self) -> Ties:
        """Return the ranking, with neighbouring negatives merged into one tie."""
        n_pos = np.zeros_like(self.between)
        n_pos[1::2] = self.n_pos
        size = (self.between + n_pos)[::-1].astype(np.float64)
        used = size > 0.0
        gain = n_pos[::-1].astype(np.float64)[used]
        return Ties(size[used], gain, np.zeros(1, np.int64), gain)


def stand(exchange: Exchange) -> list[Standing]:
    """Return the standing of each query of which the parts have portions."""
    tallies: list[Tally] = exchange.ask(reply, _positives)
    between = exchange.ask(reply, _between, [(found.values,) for found in tallies])
    return [Standing(found.values, found.counts, own) for found, own in zip(tallies, between, strict=True)]


def highest_f1(exchange: Exchange) -> list[tuple[float, float]]:
    """Return for each query the scores just above and just below the cut with the highest F1; −∞ if none is below."""
    cuts = []
    for standing in stand(exchange):
        n_pos = np.cumsum(standing.n_pos[::-1])
        n_neg = np.cumsum(standing.between[::-1])[1::2]
        f1 = 2.0 * n_pos / (n_pos + n_neg + n_pos[-1])
        cuts.append(float(standing.level[::-1][np.argmax(f1)]))  # F1 can be highest only directly after a positive
    below: list[Range] = exchange.ask(reply, _below, [(cut,) for cut in cuts])
    return [(cut, found.most) for cut, found in zip(cuts, below, strict=True)]


def _positives(portion: Portion) -> Tally:
    return Tally.of(portion.scores[portion.members.where])


def _between(portion: Portion, level: Floats) -> Ints:
    negatives = np.delete(portion.scores, portion.members.where)
    at = np.searchsorted(level, negatives, side="left") + np.searchsorted(level, negatives, side="right")
    return np.bincount(at, minlength=2 * level.size + 1)


def _below(portion: Portion, cut: float) -> Range:
    return Range.of(portion.scores[portion.scores < cut])
