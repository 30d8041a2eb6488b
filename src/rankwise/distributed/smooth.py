"""The smooth loss of large queries that are spread over several parts: soft counts are sums over negatives.

Parts send the positives' scores. Then they send, for each gap between the scores ± width, the number of their negatives
in it and the sum of the offsets. This gives every soft count c_k, and so the weight of every positive in the gradients
of negatives, which the parts compute. O(positives) numbers are sent each way. States: Portion → Gapped → Solved.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, raise_not_finite
from rankwise.distributed.exchange import Exchange, Joined
from rankwise.distributed.part import Floats, Found, Large, Members, Portion, Solved, advance, reply
from rankwise.kernels import soft as kernels
from rankwise.kernels.soft.large import conclude_gaps, count_gaps, draw_gaps
from rankwise.metrics.loss import Loss
from rankwise.surrogates.softened import Softened, counts_of


class Gapped(NamedTuple):
    """A portion whose negatives are counted by gap. sums: (2, gaps); gaps: (n,) that of each sample."""

    members: Members
    scores: Floats
    sums: Floats
    gaps: NDArray[np.int32]


def solve_smooth(
    exchange: Exchange, queries: list[Large], loss: Loss, surrogate: Softened
) -> tuple[Exchange, list[Found]]:
    """Return parts whose portions are `Solved`, and the loss of each binary query."""
    if not queries:
        return exchange, []
    levels = [np.sort(found.values) for found in exchange.ask(reply, _positives)]
    exchange = exchange.derive(advance, _count, [(level, surrogate.width) for level in levels])
    of_gaps = exchange.ask(reply, getattr, [("sums",)] * len(queries))
    found, draws = zip(*map(partial(_conclude, loss, surrogate), queries, levels, of_gaps), strict=True)
    return exchange.derive(advance, _draw, list(draws)), list(found)


def _conclude(
    loss: Loss, surrogate: Softened, query: Large, level: Floats, sums: Floats
) -> tuple[Found, tuple[Any, ...]]:
    """Return the loss of a query, and what `_draw` needs: the weight and the gradient of each positive, ascending."""
    width, above, near, nobody = surrogate.width, np.empty(level.size), np.empty(level.size), np.empty(0, np.int32)
    conclude_gaps(level, width, sums, above, near)
    starts = np.array([0, level.size])
    soft = kernels.Softened(width, starts, level, np.arange(level.size), above, near, nobody)
    n_pos, n_neg = np.array([query.n_pos]), np.array([query.n - query.n_pos])
    found = surrogate.errors(counts_of(soft, n_pos, n_neg, loss), loss)
    value = float(found.part.sum())
    return Found(value, value), (level, width, found.ramp, found.weight, found.own, query.weight)


def _positives(portion: Portion) -> Joined:
    return Joined(portion.scores[portion.members.where])


def _count(portion: Portion, level: Floats, width: float) -> Gapped:
    members, scores = portion
    gaps: NDArray[np.int32] = np.empty(scores.size, np.int32)
    if not scores.size:
        return Gapped(members, scores, np.zeros((2, 2 * level.size + 1)), gaps)
    try:
        sums = count_gaps(scores, members.where, level, width, gaps, 1)
    except NotFiniteError:
        raise_not_finite(scores, members.first)
        raise
    return Gapped(members, scores, sums, gaps)


def _draw(portion: Gapped, level: Floats, width: float, ramp: bool, weight: Floats, own: Floats, rate: float) -> Solved:
    members, scores, _, gaps = portion
    gradient = np.empty(scores.size)
    if gradient.size:
        draw_gaps(scores, gaps, level, width, ramp, weight, gradient, 1)
    gradient[members.where] = own[np.searchsorted(level, scores[members.where])]
    return Solved(members, rate * gradient, 0.0)
