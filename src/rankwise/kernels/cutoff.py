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

from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.contract import LossTables
from rankwise.kernels.large import solve_large
from rankwise.kernels.positives import discounted_loss, finish_positives, scaled_weights
from rankwise.kernels.regions import conclude_sorted
from rankwise.kernels.small import begin_query, conclude_query, note_ranking
from rankwise.kernels.sorting import order_descending, slots
from rankwise.kernels.steps import discount_at
from rankwise.queries import FoundRanking, Queries, Solved

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
    pos, places, weight = scores[positives].astype(np.float64), above[1:].copy(), np.empty(n_pos)
    norm = scaled_weights(*tables, n_pos, n_neg, scale, weight)
    unit = 2.0 / (float(n_pos) * float(n_neg))
    more = unit * place_large(pos, top, weight, tables.discount, tables.tail, k, n_neg, places)
    lost = conclude_large(pos, positives, top, index, places, n_neg, tables.weight, *tables[1:3], norm, gradient)
    ranking = FoundRanking(gradient, np.concatenate([[0], places]), positives)
    return Solved.of_one(float(by_score.value[0]) + more, lost, n_neg, ranking)


def highest(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The k highest negatives and all that tie with the last of them, in descending order, and their positions."""
    sample = np.sort(scores[:: max(1, scores.shape[0] // _SAMPLE)])[::-1]
    expected = k * sample.size / scores.shape[0]
    at, room, found = int(expected + _SPARE * expected**0.5 + _SPARE), 4 * k + _SAMPLE, 0
    while not k <= found <= room:
        if found < k:
            bar, at = sample[at] if at < sample.size else scores.dtype.type(-np.inf), 4 * at
        room = max(room, found)
        values, index = np.empty(room), np.empty(room, np.int64)
        found = gather_from(scores, relevant, bar, values, index)
    values, order = order_descending(values[:found])
    found = int(np.searchsorted(-values, -values[k - 1], side="right"))
    return values[:found], index[order[:found]]


@kernel
def gather_from(scores, relevant, bar, values, index):
    """Negatives that score at least `bar`, as they come, as far as there is room; how many there are."""
    n, room = np.int64(0), values.shape[0]
    for q in range(scores.shape[0]):
        if scores[q] >= bar and not relevant[q]:
            if n < room:
                values[n], index[n] = scores[q], q
            n += 1
    return n


@kernel
def place_large(pos, top, weight, discount, tail, k, n_neg, places):
    """`place_first` of one query."""
    return place_first(pos, top, weight, discount, tail, k, n_neg, places)


@kernel
def conclude_large(pos, positives, top, index, places, n_neg, weight, discount, tail, norm, gradient):
    """Gradients of the highest negatives and of all positives; Δ."""
    n_pos, last = pos.shape[0], top.shape[0]
    unit, at_rank, seen = 2.0 / (float(n_pos) * float(n_neg)), np.zeros(n_pos + 2, np.int64), np.empty(n_pos, np.int64)
    for i in range(n_pos):
        seen[i] = min(places[i], last)
    conclude_sorted(
        top, index, seen, np.int64(0), last, np.int64(1), n_pos + 1, unit, pos[0], n_pos + 1, at_rank, gradient
    )
    at_rank[:] = 0
    for i in range(n_pos):
        at_rank[i + 1] = places[i] - (places[i - 1] if i > 0 else 0)
    finish_positives(pos, positives, n_pos, at_rank, n_neg, pos[0], gradient)
    return discounted_loss(weight, discount, tail, norm, at_rank, n_pos)


@kernel
def solve_small_cut(
    scores, relevant, starts, first, last, limit, k, weight, discount, tail, per_pair, scale, gradient, out, counts,
    above_pos, order_pos, numbers, counters,
):  # fmt: skip
    """`solve_small` of small.py for a loss of the first k places."""
    val, idx, spare, idx_spare, at_rank = numbers[0], counters[0], numbers[1], counters[1], counters[2]
    weights, places = spare, idx_spare  # once all is sorted
    slot = slots(numbers.shape[1] + 1)
    for q in range(first, last):
        part, flags = scores[starts[q] : starts[q + 1]], relevant[starts[q] : starts[q + 1]]
        slopes = gradient[starts[q] : starts[q + 1]]
        n_pos = begin_query(q, part, flags, limit, out, counts, slopes, val, idx, spare, idx_spare, slot)
        if n_pos < 0:
            return q
        if n_pos == 0:
            continue
        n_neg = part.shape[0] - n_pos
        neg, neg_idx = val[:n_neg], idx[:n_neg]
        level, pos_idx = val[n_neg : n_neg + n_pos], idx[n_neg : n_neg + n_pos]
        norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)
        place_by_score(level, neg, places)
        place_first(level, neg, weights, discount, tail, k, n_neg, places)
        total = conclude_query(level, pos_idx, neg, neg_idx, places, at_rank, slopes)
        lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
        out[0, q], out[1, q] = scale * lost + total, lost
        note_ranking(q, pos_idx, at_rank, above_pos, order_pos)
    return last


@part
def place_by_score(pos, neg, places):
    """c*_i, how many negatives score above each positive, both in descending order."""
    c = np.int64(0)
    for i in range(pos.shape[0]):
        while c < neg.shape[0] and neg[c] > pos[i]:
            c += 1
        places[i] = c


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
