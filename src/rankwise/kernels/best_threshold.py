"""The level that the F-measure of the most violating ranking reaches: exact, by branch and bound over levels.

With c_k negatives above the k-th positive, F = max_k 2k/(k + c_k + P). Let t = (2 − F)/F, so that Δ = 1 − F is
(t − 1)/(t + 1). A ranking has at least this Δ if c_k ≥ k·t − P for all k. Let c*_k negatives score above the k-th
positive; scores are concave in c_k, and both bounds rise with k. So c_k = max(c*_k, ⌈k·t⌉ − P) is best, and costs

    g(t) = scale·(t − 1)/(t + 1) − unit·K(t),   K(t) = Σ_k Σ {s⁺_k − s_j : c*_k < j ≤ ⌈k·t⌉ − P},   unit = 2/(PN).

K has a step after each t = (c + P)/k, and g is greatest at one of these or where K is still 0. Between them:

- Without ⌈ ⌉, costs being linear between whole numbers, g is concave and never less. Where it is greatest is a good
  place to begin; where it is not above the best g found, nothing is to be found.
- On (t₁, t₂] no g is above scale·(t₂ − 1)/(t₂ + 1) − unit·K(t₁ +), K just after t₁. Such intervals are halved until
  they are no better than the best, or have few steps: these are counted in cells of t, which have the same bound, and
  the steps of cells that may be better are looked at one after the other.

As measured for P ≤ 1000 and N ≤ 10⁶, K(t) is summed up a hundred times at most, and of PN steps 10⁴ are sorted at most.
Ends of intervals are whole numbers over `GRID`, and t is a fraction: ⌈k·t⌉ is never rounded.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, part
from rankwise.kernels.sorting import slots, sort_descending

GRID = 1 << 20
# Running sums are kept of every fourth score, where there are so many that memory counts.
_FOURTH, _MANY = np.uint64(2), 1 << 16
# So many steps are looked at together, and so many more for each positive; so many share a cell.
FEW_STEPS, A_POSITIVE, A_CELL = 64, 4, 32
# Fractions of a small denominator, up to this, have few levels rounded up: one of them is often the best.
_DENOMINATORS = 16
# Bounds that exceed the best by less are rounded: in units of `scale`.
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
_HALVINGS, _STACK = 64, 128


@inline
def add(high, low, x):
    """high + low + x as a sum of two numbers, to twice the digits."""
    total = high + x
    back = total - high
    return total, low + ((high - (total - back)) + (x - back))


@inline
def block_bits(n_neg):
    """Every how many scores, as a power of two, running sums are kept."""
    return _FOURTH if n_neg >= _MANY else np.uint64(0)


@part
def sums_of(neg, ref, places):
    """Σ {s_j − ref : j ≤ c} at c*_k; in rows from P on, each c or each fourth. Two numbers each, for far-off scores."""
    n_pos, n_neg, k = places.shape[0], neg.shape[0], 0
    bits, high, low = np.int64(block_bits(n_neg)), 0.0, 0.0
    sums = np.empty((n_pos + (n_neg >> bits) + 1, 2))
    for c in range(n_neg + 1):
        if (c >> bits) << bits == c:
            sums[n_pos + (c >> bits), 0], sums[n_pos + (c >> bits), 1] = high, low
        while k < n_pos and places[k] == c:
            sums[k, 0], sums[k, 1] = high, low
            k += 1
        if c < n_neg:
            high, low = add(high, low, neg[c] - ref)
    return sums


@inline
def cost_to(k, c, pos, neg, ref, sums, places):
    """Σ {s⁺_k − s_j : c*_k < j ≤ c}."""
    stop, bits = np.uint64(c), block_bits(neg.shape[0])
    at = np.uint64(pos.shape[0]) + (stop >> bits)
    high, low = sums[at, 0], sums[at, 1]
    for j in range((stop >> bits) << bits, stop):
        high, low = add(high, low, neg[j] - ref)
    return float(c - places[k - 1]) * (pos[k - 1] - ref) - ((high - sums[k - 1, 0]) + (low - sums[k - 1, 1]))


@part
def cost_at(pos, neg, ref, sums, places, num, den, after):
    """K(t) of t = num/den; just after that if after = 1, else 0."""
    total, n_pos = 0.0, pos.shape[0]
    for k in range(1, n_pos + 1):
        c = (k * num + (den - 1) * (1 - after)) // den + after - n_pos
        if c > places[k - 1]:
            total += cost_to(k, c, pos, neg, ref, sums, places)
    return total


@part
def relaxed(pos, neg, ref, sums, places, scale, unit, t):
    """The concave function that is nowhere below g, at any t, and its slope to the right."""
    n_pos, last = pos.shape[0], neg.shape[0] - 1
    cost = slope = 0.0
    for k in range(1, n_pos + 1):
        c, least = k * t - n_pos, places[k - 1]
        if c >= least and least <= last:
            j = min(max(np.int64(c), least), last)
            gap = pos[k - 1] - neg[j]
            cost += cost_to(k, j, pos, neg, ref, sums, places) + (c - j) * gap
            slope += k * gap
    return scale * ((t - 1.0) / (t + 1.0)) - unit * cost, scale * (2.0 / (t + 1.0) ** 2) - unit * slope


@part
def best_level(pos, neg, places, scale):
    """The best t as a fraction. pos, neg: in descending order. places: c*_k."""
    n_pos, n_neg = pos.shape[0], neg.shape[0]
    ref, unit = pos[n_pos // 2], 2.0 / (float(n_pos) * float(n_neg))
    num, den = places[0] + n_pos, np.int64(1)  # the lowest: K is 0 up to here
    for k in range(2, n_pos + 1):
        if (places[k - 1] + n_pos) * den < num * k:
            num, den = places[k - 1] + n_pos, np.int64(k)
    if scale == 0.0 or num * n_pos >= (n_pos + n_neg) * den:
        return num, den
    sums = sums_of(neg, ref, places)
    of_query = (pos, neg, ref, sums, places, scale, unit)
    best = scale * (float(num - den) / float(num + den))
    first, last = num * GRID // den, -(-(n_pos + n_neg) * GRID // n_pos)
    if steps_between(pos, n_neg, places, first, last) <= FEW_STEPS:
        cost = cost_at(pos, neg, ref, sums, places, first, GRID, 1)
        best, num, den = look_through(*of_query, first, last, cost, best, num, den)
        return num, den
    top = highest_relaxed(*of_query, float(num) / den, float(n_pos + n_neg) / n_pos)
    best, num, den = try_fractions(*of_query, top, best, num, den)
    middle, wide = np.int64(GRID * top), GRID * few_steps(n_pos) // (n_pos * n_pos) + 1  # K has P²/2 steps for 1 of t
    left, right = max(first, middle - wide), min(last, middle + wide)
    cost = cost_at(pos, neg, ref, sums, places, left, GRID, 1)
    best, num, den = look_through(*of_query, left, right, cost, best, num, den)
    first = max(first, np.int64(GRID * edge_of(*of_query, top, float(first) / GRID, best)))
    last = min(last, np.int64(GRID * edge_of(*of_query, top, float(last) / GRID, best)) + 1)
    return branch(*of_query, first, last, best, num, den)


@part
def highest_relaxed(pos, neg, ref, sums, places, scale, unit, least, most):
    """Where the concave function is greatest, about."""
    for _ in range(_HALVINGS):
        t = 0.5 * (least + most)
        if (most - least) * GRID <= 1.0:
            break
        if relaxed(pos, neg, ref, sums, places, scale, unit, t)[1] > 0.0:
            least = t
        else:
            most = t
    return most


@part
def edge_of(pos, neg, ref, sums, places, scale, unit, top, outer, best):
    """A t between top and outer beyond which the concave function is not above the best; outer if there is none."""
    if relaxed(pos, neg, ref, sums, places, scale, unit, outer)[0] > best:
        return outer
    inner = top
    while abs(outer - inner) * GRID > 1.0 and 16.0 * abs(outer - inner) > abs(inner - top):
        t = 0.5 * (inner + outer)
        if relaxed(pos, neg, ref, sums, places, scale, unit, t)[0] > best:
            inner = t
        else:
            outer = t
    return outer


@part
def try_fractions(pos, neg, ref, sums, places, scale, unit, top, best, num, den):
    """The best g at fractions of small denominators around top, and at the highest t of all."""
    n_pos, n_neg = pos.shape[0], neg.shape[0]
    least, below = num, den
    for d in range(1, _DENOMINATORS + 2):
        for more in range(2):
            a, b = np.int64(top * d) + more, np.int64(d)
            if d > _DENOMINATORS:
                a, b = np.int64(n_pos + n_neg), np.int64(n_pos)
            if a * below > least * b and a * n_pos <= (n_pos + n_neg) * b:
                value = scale * (float(a - b) / float(a + b))
                value -= unit * cost_at(pos, neg, ref, sums, places, a, b, 0)
                if value > best:
                    best, num, den = value, a, b
    return best, num, den


@part
def branch(pos, neg, ref, sums, places, scale, unit, first, last, best, num, den):
    """The best t in (first, last]/GRID, or num/den, if its g, best, is no less."""
    few = few_steps(pos.shape[0])
    ends, costs, depth = np.empty((_STACK, 2), np.int64), np.empty(_STACK), 1
    ends[0, 0], ends[0, 1] = first, last
    costs[0] = cost_at(pos, neg, ref, sums, places, first, GRID, 1)
    while depth > 0:
        depth -= 1
        a, b, cost = ends[depth, 0], ends[depth, 1], costs[depth]
        if scale * (float(b - GRID) / float(b + GRID)) - unit * cost <= best + _ROUNDING * scale:
            continue
        if b - a == 1 or steps_between(pos, neg.shape[0], places, a, b) <= few:
            best, num, den = look_through(pos, neg, ref, sums, places, scale, unit, a, b, cost, best, num, den)
            continue
        middle = (a + b) >> 1
        ends[depth, 0], ends[depth, 1], costs[depth] = a, middle, cost
        depth += 1
        ends[depth, 0], ends[depth, 1] = middle, b
        costs[depth] = cost_at(pos, neg, ref, sums, places, middle, GRID, 1)
        depth += 1
    return num, den


@part
def few_steps(n_pos):
    """How many steps are looked at together."""
    return FEW_STEPS + A_POSITIVE * n_pos


@part
def steps_of(k, n_pos, n_neg, place, first, last):
    """The least and the greatest c + P of steps of K, those of the k-th positive, at t in (first, last]/GRID."""
    most = min(k * last // GRID, k * (n_pos + n_neg) // n_pos)
    return max(k * first // GRID + 1, place + n_pos), most


@part
def steps_between(pos, n_neg, places, first, last):
    """How many steps K has at t in (first, last]/GRID."""
    total, n_pos = np.int64(0), pos.shape[0]
    for k in range(1, n_pos + 1):
        a, b = steps_of(k, n_pos, n_neg, places[k - 1], first, last)
        total += max(b - a + 1, 0)
    return total


@part
def look_through(pos, neg, ref, sums, places, scale, unit, first, last, cost, best, num, den):
    """The best t among all steps in (first, last]/GRID, or num/den, if its g, best, is no less. cost: K after first.

    Steps are counted in cells of t; only those of cells in which g may exceed the best are sorted.
    """
    n_pos, n_neg = pos.shape[0], neg.shape[0]
    n_cells = steps_between(pos, n_neg, places, first, last) // A_CELL + 1
    start, rate = float(first) / GRID, float(n_cells) * GRID / float(last - first)
    before, top, members = fill_cells(pos, neg, places, first, last, start, rate, n_cells)
    size = np.int64(0)
    for cell in range(n_cells):  # from K's rise in a cell to K before it
        cost, before[cell] = cost + before[cell], cost
        if scale * ((top[cell] - 1.0) / (top[cell] + 1.0)) - unit * before[cell] <= best + _ROUNDING * scale:
            members[cell] = 0
        size += members[cell]
    key, steps = sorted_steps(pos, n_neg, places, first, last, start, rate, members, size)
    at = np.int64(-1)
    for n in range(size):
        c, k, cell = steps[n, 0], steps[n, 1], cell_of(key[n], start, rate, n_cells)
        if cell > at:
            at, cost = cell, before[cell]
        value = scale * (float(c - k) / float(c + k)) - unit * cost
        if value > best:
            best, num, den = value, c, k
        cost += pos[k - 1] - neg[c - n_pos] if c - n_pos < n_neg else 0.0
    return best, num, den


@part
def cell_of(t, start, rate, n_cells):
    """The cell of t, which never falls as t rises."""
    return min(max(np.int64((t - start) * rate), np.int64(0)), n_cells - 1)


@part
def fill_cells(pos, neg, places, first, last, start, rate, n_cells):
    """By cell: how much K rises in it, its highest t, and how many steps it has."""
    n_pos, n_neg = pos.shape[0], neg.shape[0]
    rise, top, members = np.zeros(n_cells), np.zeros(n_cells), np.zeros(n_cells, np.int64)
    for k in range(1, n_pos + 1):
        a, b = steps_of(k, n_pos, n_neg, places[k - 1], first, last)
        for c in range(a, b + 1):
            t = float(c) / float(k)
            cell = cell_of(t, start, rate, n_cells)
            top[cell] = max(top[cell], t)
            members[cell] += 1
            if c - n_pos < n_neg:
                rise[cell] += pos[k - 1] - neg[c - n_pos]
    return rise, top, members


@part
def sorted_steps(pos, n_neg, places, first, last, start, rate, members, size):
    """The steps of cells that still have members, size in all, by ascending t: t, and c + P and k."""
    n_pos, n = pos.shape[0], 0
    key, index, steps = np.empty(size), np.empty(size, np.int64), np.empty((size, 2), np.int64)
    if size > 0:
        for k in range(1, n_pos + 1):
            a, b = steps_of(k, n_pos, n_neg, places[k - 1], first, last)
            for c in range(a, b + 1):
                t = float(c) / float(k)
                if members[cell_of(t, start, rate, members.shape[0])] > 0:
                    key[n], index[n] = -t, n
                    steps[n, 0], steps[n, 1] = c, k
                    n += 1
    sorted_key, order = np.empty(size), np.empty(size, np.int64)
    sort_descending(key, index, size, sorted_key, order, slots(size))
    return -sorted_key, steps[order]
