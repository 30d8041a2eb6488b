"""The smooth loss of large queries that are spread over several parts: soft counts are sums over negatives.

Parts send the positives' scores. Then they send, for each gap between the scores ± width, the number of their negatives
in it and the sum of the offsets. This gives every soft count c_k, and so the weight of every positive in the gradients
of negatives, which the parts compute. O(positives) numbers are sent each way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, raise_not_finite
from rankwise.metrics.loss import Loss
from rankwise.parts.exchange import Exchange, Joined
from rankwise.parts.hinge import Large, Pending, SolvedLarge
from rankwise.parts.share import Scored, Share, State
from rankwise.surrogates.softened import Softened, counts_of

__all__ = ["solve_smooth_parts"]

Floats = NDArray[np.float64]


class _Spread(NamedTuple):
    """Data for gradients: level, weight and gradient of each positive, ascending; the query's weight."""

    level: Floats
    width: float
    weight: Floats
    own: Floats
    ramp: bool
    of_query: float


class _Known(NamedTuple):
    """A value that needs no sum over parts."""

    value: float

    def solved(self, total: float) -> SolvedLarge:
        return SolvedLarge(self.value, self.value)


def solve_smooth_parts(
    exchange: Exchange, queries: list[Large], loss: Loss, surrogate: Softened
) -> tuple[Exchange, list[Pending]]:
    """Return parts with gradients, and the loss of each binary query; states are `Scored` with shares of queries."""
    if not queries:
        return exchange, []
    levels = [np.sort(found.values) for found in exchange.ask(_positives)]
    exchange = exchange.derive(_count, levels, surrogate.width)
    values: list[Pending] = []
    spreads = []
    for query, level, sums in zip(queries, levels, exchange.ask(_sums), strict=True):
        value, spread = _conclude(query, level, sums, loss, surrogate)
        values.append(_Known(value))
        spreads.append(spread)
    return exchange.derive(_draw, spreads), values


def _conclude(query: Large, level: Floats, sums: Floats, loss: Loss, surrogate: Softened) -> tuple[float, _Spread]:
    from rankwise.kernels.soft import Softened, conclude_gaps

    width, above, near, nobody = surrogate.width, np.empty(level.size), np.empty(level.size), np.empty(0, np.int32)
    conclude_gaps(level, width, sums[:, None, None, :], above, near)
    starts = np.array([0, level.size])
    soft = Softened(width, starts, level, np.arange(level.size), above, near, nobody)
    n_pos, n_neg = np.array([query.n_pos]), np.array([query.n - query.n_pos])
    found = surrogate.errors(soft, counts_of(above, n_pos, n_neg, loss), loss)
    weight, own = np.ascontiguousarray(found.weight), np.ascontiguousarray(found.own)
    return float(found.part.sum()), _Spread(level, width, weight, own, found.ramp, query.weight)


def _positives(state: Scored) -> list[Joined]:
    return [Joined(share.scores[share.plan.where]) for share in state.shares]


def _count(state: State, levels: list[Floats], width: float) -> State:
    return replace(state, shares=[_count_share(s, level, width) for s, level in zip(state.shares, levels, strict=True)])


def _count_share(share: Share, level: Floats, width: float) -> Share:
    from rankwise.kernels.soft import count_gaps

    gaps: NDArray[np.int32] = np.empty(share.scores.size, np.int32)
    if not share.scores.size:
        return replace(share, hist=np.zeros((2, 2 * level.size + 2)), index=gaps)
    try:
        sums = count_gaps(share.scores, share.plan.where, level, width, gaps, 1)
    except NotFiniteError:
        raise_not_finite(share.scores, share.plan.first)
        raise
    return replace(share, hist=sums.sum(axis=(1, 2)), index=gaps)


def _sums(state: Scored) -> list[Any]:
    return [share.hist for share in state.shares]


def _draw(state: State, spreads: list[_Spread]) -> State:
    return replace(state, shares=[_draw_share(s, one) for s, one in zip(state.shares, spreads, strict=True)])


def _draw_share(share: Share, given: _Spread) -> Share:
    from rankwise.kernels.soft import draw_gaps

    gradient, where = np.empty(share.scores.size), share.plan.where
    how = (given.level, given.width, given.ramp, given.weight)
    if gradient.size:
        draw_gaps(share.scores, share.index, *how, gradient, 1)
    gradient[where] = given.own[np.searchsorted(given.level, share.scores[where])]
    gradient *= given.of_query
    return replace(share, hist=None, index=None, gradient=gradient)
