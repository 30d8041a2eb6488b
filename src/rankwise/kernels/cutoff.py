"""Exact inference for a loss of the first k places, D(m) = 0 for m > k, which has no (C2). O(N + P + k·min(k, P)).

Let c_1 ≤ … ≤ c_P be the negatives above each positive, and c*_i those that score above it. If p positives are within
the first k places, those i > p add a constant to the loss, and c_i = max(c*_i, k − p) is best for them. For i ≤ p, a
dynamic programme over the k highest negatives finds the best c_i ≤ k − p:

    V_i(c) = max(V_i(c − 1), V_{i−1}(c) + f_i(c)),   f_i(c) = v_i·(D(i) − D(i + c)) + g_i(c) − g_i(c*_i),

g_i(c) = Σ_{j ≤ c} (s_j − s⁺_i). It is greatest at c*_i, and g_i(c) − g_i(c*_i) is a sum of differences of one sign, so
that nothing cancels, wherever the scores lie. No p is better than p*, the number of positives within the first k places
by score: let c*_p ≥ k − p + 1, then positive p is no worse with c*_p negatives above it (this needs w ≥ 0 and D ≥ 0).
So negatives beyond the k highest stay where their scores put them, and a solution with scale 0 tells all about them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.kernels.buckets.large import solve_large
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.contract import LossTables
from rankwise.kernels.positives import finish, scaled_weights
from rankwise.kernels.sorting import order_descending
from rankwise.kernels.steps import discount_at
from rankwise.kernels.walk import conclude_sorted
from rankwise.queries import FoundRanking, Queries, Solved, solved_alone

# Places and positives that are looked at together, at one byte each.
MOST_CELLS = 1 << 32
# So many scores tell above which of them the k highest negatives are; with so many deviations to spare.
_SAMPLE, _SPARE = 1 << 12, 4.0


def solve_large_cut(
    scores: NDArray[np.floating], queries: Queries, tables: LossTables, k: int, scale: float, n_threads: int
) -> Solved:
    """Solve a single large query with positives and negatives."""
    n_pos = queries.n_pos
    n_neg = scores.shape[0] - n_pos
    if min(k, n_pos) * k > MOST_CELLS:
        raise ValueError(
            f"a cut-off of {k} places with {n_pos} positives would take {min(k, n_pos) * k} steps; its limit is "
            f"{MOST_CELLS}: use a smaller k, or none"
        )
    by_score = solve_large(scores, queries, tables, 0.0, n_threads)
    assert by_score.ranking is not None
    gradient, above, positives = by_score.ranking
    top, index = highest(scores, queries.relevant, min(k, n_neg))
    pos, places = scores[positives].astype(np.float64), above[1:].copy()
    more, lost = finish_cut(pos, positives, top, index, places, n_neg, tuple(tables), k, scale, gradient)
    ranking = FoundRanking(gradient, np.concatenate([[0], places]), positives)
    return solved_alone(float(by_score.value[0]) + more, lost, ranking)


def highest(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The k highest negatives and all that tie with the last of them, in descending order, and their positions."""
    sample = np.sort(scores[:: max(1, scores.shape[0] // _SAMPLE)])[::-1]
    expected, index = k * sample.size / scores.shape[0], np.empty(0, np.int64)
    at = int(expected + _SPARE * expected**0.5 + _SPARE)
    while index.size < k:
        bar, at = sample[at] if at < sample.size else scores.dtype.type(-np.inf), 4 * at
        index = np.flatnonzero((scores >= bar) & ~relevant)
    values, order = order_descending(scores[index].astype(np.float64))
    found = int(np.searchsorted(-values, -values[k - 1], side="right"))
    return values[:found], index[order[:found]]


@kernel
def finish_cut(pos, positives, top, index, places, n_neg, tables, k, scale, gradient):
    """From the ranking by scores to the best one: gradients, places; how much greater the maximum is, and Δ."""
    weight, discount, tail, per_pair = tables
    n_pos, last = pos.shape[0], top.shape[0]
    scaled, seen, at_rank = np.empty(n_pos), np.empty(n_pos, np.int64), np.zeros(n_pos + 2, np.int64)
    norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, scaled)
    unit = 2.0 / (float(n_pos) * float(n_neg))
    more = unit * place_first(pos, top, scaled, discount, tail, k, n_neg, places)
    for i in range(n_pos):
        seen[i] = min(places[i], last)
    conclude_sorted(top, index, seen, np.int64(1), n_pos + 1, n_pos, unit, pos[0], at_rank, gradient)
    at_rank[:] = 0
    for i in range(n_pos):
        at_rank[i + 1] = places[i] - (places[i - 1] if i > 0 else 0)
    return more, finish(weight, discount, tail, norm, pos, positives, n_neg, at_rank, pos[0], gradient)[1]


@part
def place_first(pos, top, weight, discount, tail, k, n_neg, places):
    """From c*_i to the best c_i, in places; how much better they are, in units of 2/(PN).

    pos, top: positives and at least min(k, N) negatives, in descending order. weight: v_i, see `scaled_weights`.
    """
    n_pos = pos.shape[0]
    k = min(k, n_pos + n_neg)
    inside = np.int64(0)  # p*
    while inside < n_pos and inside + 1 + places[inside] <= k:
        inside += 1
    took = np.empty((inside, min(k, n_neg) + 1), np.uint8)
    best = climb_first(pos, top, weight, discount, tail, k, n_neg, inside, places, took)
    p, value = choose_inside(pos, top, weight, discount, tail, k, n_neg, inside, places, best)
    c = min(k - p, n_neg)
    for i in range(p, n_pos):
        places[i] = max(places[i], k - p)
    for i in range(p - 1, -1, -1):
        while took[i, c] == 0:
            c -= 1
        places[i] = c
    return value


@part
def climb_first(pos, top, weight, discount, tail, k, n_neg, inside, places, took):
    """V_p(k − p) for 0 ≤ p ≤ inside; took[i − 1, c]: whether V_i(c) exceeds all V_i before. Of equal ones the first."""
    best, lead, own = np.zeros(inside + 1), np.zeros(min(k, n_neg) + 1), np.empty(min(k, n_neg) + 1)
    for i in range(1, inside + 1):
        level, at, last = pos[i - 1], places[i - 1], min(k - i, n_neg)
        own[at] = 0.0
        for c in range(at, last):
            own[c + 1] = own[c] + (top[c] - level)
        for c in range(at - 1, -1, -1):
            own[c] = own[c + 1] - (top[c] - level)
        ideal, highest = discount_at(discount, tail, i), -np.inf
        for c in range(last + 1):
            value = lead[c] + (weight[i - 1] * (ideal - discount_at(discount, tail, i + c)) + own[c])
            took[i - 1, c] = value > highest
            highest = max(highest, value)
            lead[c] = highest
        best[i] = lead[last]
    return best


@part
def choose_inside(pos, top, weight, discount, tail, k, n_neg, inside, places, best):
    """p, the number of positives within the first k places, and the value of the best ranking. From p* down.

    With one fewer, t = k − p rises by one: positives with c* ≤ t before let one more negative pass, at the cost of
    `cost` in all, and positive p joins them.
    """
    n_pos, beyond = pos.shape[0], 0.0
    for i in range(inside, min(k, n_pos)):
        beyond += weight[i] * discount_at(discount, tail, i + 1)
    most, chosen, cost, lost, q = best[inside] + beyond, inside, 0.0, 0.0, inside
    for p in range(inside, max(np.int64(0), k - n_neg), -1):
        t = k - p
        level, before = top[t], top[t - 1] if t > 0 else top[t]
        cost += (q - p) * (before - level)
        while q < n_pos and places[q] <= t:
            cost += pos[q] - level
            q += 1
        lost -= cost
        for j in range(places[p - 1], t + 1):
            lost -= pos[p - 1] - top[j]
        cost += pos[p - 1] - level
        beyond += weight[p - 1] * discount_at(discount, tail, p)
        if best[p - 1] + beyond + lost > most:
            most, chosen = best[p - 1] + beyond + lost, p - 1
    return chosen, most
