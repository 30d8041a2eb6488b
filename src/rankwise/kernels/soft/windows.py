"""Sums over windows: what lies within a width of each of some numbers, all of them in ascending order.

A window that moves up loses elements below and gains elements above. Sums are never corrected by subtraction: what a
window shares with an earlier one is kept as sums from each element up to that window's end, what came since is added
up by itself. Offsets are taken from a number within the window. So rounding is that of the window's own elements,
wherever they lie and however many there are elsewhere.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, part
from rankwise.kernels.sorting import number_of, order_of

_ONE = np.int64(1)
# Up to so many comparisons are made one by one.
_FEW = 256


@inline
def upper_edge(level, width):
    """The least number x for which x − level ≥ width as it is computed.

    Rounding may leave it off by more only where that is nothing against the width.
    """
    x = level + width
    for _ in range(2):
        below = number_of(order_of(x) - _ONE)
        x = below if below - level >= width else x
    for _ in range(2):
        x = number_of(order_of(x) + _ONE) if x - level < width else x
    return x


@inline
def lower_edge(level, width):
    """The least number x for which x − level > −width as it is computed, as `upper_edge`."""
    x = level - width
    for _ in range(2):
        below = number_of(order_of(x) - _ONE)
        x = below if below - level > -width else x
    for _ in range(2):
        x = number_of(order_of(x) + _ONE) if x - level <= -width else x
    return x


@part
def lay_edges(level, width, edge, under, enter, leave):
    """The edges of P windows around ascending levels, merged: edge (2P,) ascending, of which 2P + 1 gaps are left.

    A number with g edges at or below it lies in gap g: within width of levels under[g] ≤ i < g − under[g], beyond the
    windows of those below, not yet in those above. Gaps enter[i] ≤ g < leave[i] are in the window of level i.
    """
    n = level.shape[0]
    a = b = np.int64(0)
    low, high = lower_edge(level[0], width), upper_edge(level[0], width)
    under[0] = 0
    for e in range(2 * n):
        if a < n and low <= high:
            edge[e], enter[a] = low, e + 1
            a += 1
            low = max(low, lower_edge(level[a], width)) if a < n else low  # they ascend, whatever rounding does
        else:
            edge[e], leave[b] = high, e + 1
            b += 1
            high = max(high, upper_edge(level[b], width)) if b < n else high
        under[e + 1] = b


@inline
def gap_between(edge, first, stop, score):
    """The gap of a score of which edges before `first` lie at or below, and none from `stop` on."""
    base, size = np.uint64(first), np.uint64(stop - first)
    while size > np.uint64(0):  # no branch depends on the score
        half = (size + np.uint64(1)) >> np.uint64(1)
        base = base + half if edge[base + half - np.uint64(1)] <= score else base
        size -= half
    return np.int32(base)


@part
def sum_windows(weight, offset, place, first, stop, level, inside, moment, front):
    """inside[i] = Σ weight, moment[i] = Σ offset + weight·(place − level[i]) over elements first[i] ≤ e < stop[i].

    first and stop do not fall. front (2, elements) is room to work in.
    """
    # Elements before `begun` are summed up in front, those from there to `added` at the back.
    begun = added = np.int64(0)
    anchor = back_weight = back_moment = 0.0
    for i in range(level.shape[0]):
        low, high = first[i], stop[i]
        if low >= high:
            inside[i] = moment[i] = 0.0
            continue
        if low >= begun:
            anchor, total, sum_of = level[i], 0.0, 0.0
            for e in range(high - 1, low - 1, -1):
                total += weight[e]
                sum_of += offset[e] + weight[e] * (place[e] - anchor)
                front[0, e], front[1, e] = total, sum_of
            begun, added, back_weight, back_moment = high, high, 0.0, 0.0
        while added < high:
            back_weight += weight[added]
            back_moment += offset[added] + weight[added] * (place[added] - anchor)
            added += 1
        inside[i] = front[0, low] + back_weight
        moment[i] = front[1, low] + back_moment + inside[i] * (anchor - level[i])


@part
def find_windows(place, level, width, first, stop):
    """Places first[i] ≤ e < stop[i] are within width of level i; places and levels ascend."""
    n, low, high = place.shape[0], np.int64(0), np.int64(0)
    for i in range(level.shape[0]):
        while low < n and place[low] - level[i] <= -width:
            low += 1
        while high < n and place[high] - level[i] < width:
            high += 1
        first[i], stop[i] = low, high


@part
def add_above(place, weight, level, width, out):
    """out[i] += Σ_e weight[e]·H(place[e] − level[i]), H(x) = clip(x/(2·width) + ½, 0, 1); places and levels ascend."""
    n, rate = place.shape[0], 0.5 / width
    if n * level.shape[0] <= _FEW:
        for i in range(level.shape[0]):
            for e in range(n):
                out[i] += weight[e] * min(max((place[e] - level[i]) * rate + 0.5, 0.0), 1.0)
        return
    slide(place, weight, level, width, out, np.empty(level.shape[0]))


@part
def slide(place, weight, level, width, above, inside):
    """above[i] += Σ_e weight[e]·H(place[e] − level[i]), inside[i] = Σ weight[e] within width of level i.

    `find_windows` and `sum_windows` in one, from the top down: what a window loses above is beyond it from then on.
    """
    rate, front = 0.5 / width, np.empty((2, place.shape[0]))
    low = high = begun = np.int64(place.shape[0])
    anchor = beyond = back_weight = back_moment = 0.0
    for i in range(level.shape[0] - 1, -1, -1):
        at = level[i]
        while high > 0 and place[high - 1] - at >= width:
            high -= 1
            beyond += weight[high]
        added = min(low, high)
        while low > 0 and place[low - 1] - at > -width:
            low -= 1
        if low >= high:
            above[i] += beyond
            inside[i] = 0.0
            continue
        if high <= begun:
            begun = added = low
            anchor, back_weight, back_moment = at, 0.0, 0.0
            for e in range(low, high):
                back_weight += weight[e]
                back_moment += weight[e] * (place[e] - anchor)
                front[0, e], front[1, e] = back_weight, back_moment
            back_weight = back_moment = 0.0
        for e in range(added - 1, low - 1, -1):
            back_weight += weight[e]
            back_moment += weight[e] * (place[e] - anchor)
        inside[i] = front[0, high - 1] + back_weight
        moment = front[1, high - 1] + back_moment + inside[i] * (anchor - at)
        above[i] += beyond + 0.5 * inside[i] + moment * rate
