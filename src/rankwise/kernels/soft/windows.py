"""Sums over windows: what lies within a width of each of some numbers, all of them in ascending order.

    H(x) = clip(x/(2·width) + ½, 0, 1),   Σ_e w_e·H(s_e − t_i),   Σ {w_e : |s_e − t_i| < width}

A window that moves up loses elements below and gains elements above. Sums are never corrected by subtraction: what a
window shares with an earlier one is kept as sums from each element up to that window's end, what came since is added
up by itself. Offsets are taken from a number within the window. So rounding is that of the window's own elements,
wherever they lie and however many there are elsewhere.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import part

# Up to so many comparisons are made one by one.
_FEW = 256


@part
def sum_windows(weight, offset, place, first, stop, level, inside, moment):
    """inside[i] = Σ weight, moment[i] = Σ offset + weight·(place − level[i]) over elements first[i] ≤ e < stop[i].

    first and stop do not fall.
    """
    # Elements before `begun` are summed up in front, those from there to `added` at the back.
    front = np.empty((2, weight.shape[0]))
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
def sum_around(place, weight, level, width, above, inside):
    """above[i] += Σ_e weight[e]·H(place[e] − level[i]), inside[i] = Σ weight within width; places and levels ascend.

    As `sum_windows`, but from the top down: what a window loses above is beyond it from then on.
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


@part
def add_above(place, weight, level, width, out):
    """out[i] += Σ_e weight[e]·H(place[e] − level[i]); places and levels ascend."""
    n, rate = place.shape[0], 0.5 / width
    if n * level.shape[0] > _FEW:
        sum_around(place, weight, level, width, out, np.empty(level.shape[0]))
        return
    for i in range(level.shape[0]):
        for e in range(n):
            out[i] += weight[e] * min(max((place[e] - level[i]) * rate + 0.5, 0.0), 1.0)
