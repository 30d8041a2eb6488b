"""From bucket counts to ranks: in which bucket each positive's place among the negatives lies, and what that settles.

Bucket b holds the negatives j = above[b+1]+1 … above[b]. c_k, the number of negatives above the k-th positive, lies
between above[home_k + 1] and above[home_k]: all buckets above home_k are above that positive, all below it below. A
bucket that is nobody's home is done, all its members have one rank. The others are *regions*: their members are
gathered and solved in regions.py, unless they are equal by construction. `value` holds P + 1 − r for the rank r of a
bucket's members, or −1−region.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.buckets.maps import edge, place, stands_alone
from rankwise.kernels.buckets.regions import BUCKET, HIGH, LOW, REGION_COLUMNS, START, STOP, J
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.positives import middle_by_weight
from rankwise.kernels.steps import drop
from rankwise.kernels.walk import solve_tie, straighten

# A bucket of so many members may hold a tie alone, which is looked for.
_CROWD = 48


@part
def cumulate(hist, n_buckets, above):
    """above[b] = the number of negatives in buckets ≥ b."""
    total = np.int64(0)
    above[n_buckets] = 0
    for b in range(n_buckets - 1, -1, -1):
        total += np.int64(hist[b])
        above[b] = total


@kernel
def find_homes(weight, discount, tail, pos, ahead, buckets, pivot, hist, above, home):
    """home_k of each positive as if it were alone, `above` from the buckets' counts; whether homes fall as k grows.

    If the problem is a part of a larger one, `ahead` samples are above all of it, so that D is moved by as much.

    Alone, negative j belongs above positive k if s_j − s⁺_k + w_k·(D(k+j−1) − D(k+j)) > 0, which falls as j grows, by
    (C2). So all of bucket b and above belong there if τ_b = s⁺_k − w_k·drop(k + above[b] + 1) is below bucket b, and
    nothing below b does if it is not: b ≤ place(τ_b). The home is the last such b. As place(τ_b) falls while b grows,
    each b that is looked at leaves only what lies between it and place(τ_b).
    """
    n_pos, n_buckets = pos.shape[0], above.shape[0] - 1
    cumulate(hist, n_buckets, above)
    shift = 0.0  # s⁺_k − τ of the positive before: where to look first
    for k in range(n_pos):
        look, bottom, top, looks = place(pos[k] - shift, buckets, pivot), np.int64(0), n_buckets - 1, 0
        while bottom < top:
            looks += 1
            shift = weight[k] * drop(discount, tail, k + 2 + above[np.uint64(look)] + ahead)
            found = place(pos[k] - shift, buckets, pivot)
            top = min(top, found if look <= found else look - 1)
            bottom = max(bottom, min(look, found))
            look = min(max(found, bottom + 1), top) if looks < 4 else (bottom + top + 1) >> 1
        home[k] = bottom
    falling = True
    for k in range(1, n_pos):
        falling &= home[k] <= home[k - 1]
    return falling


@kernel
def straighten_homes(weight, discount, tail, pos, ahead, buckets, pivot, above, home):
    """Solve together each stretch of positives whose homes rise somewhere, by Algorithm 1 over the buckets' edges."""
    n_pos, top = pos.shape[0], above.shape[0] - 2
    places, of_buckets = np.empty(n_pos, np.int64), (buckets, pivot)
    for k in range(n_pos):
        places[k] = top - home[k]
    straighten(weight, discount, tail, pos, pos, above, of_buckets, places, ahead + 1, np.int64(1), n_pos + 1)
    for k in range(n_pos):
        home[k] = top - places[k]


@kernel
def reference(pos, above, home):
    """A score amid those that matter: the middle positive, each counted as often as negatives are surely above it.

    The gradient sums to zero, so J may be summed up from any reference; near the scores whose gradient is large, an
    offset or a far-off score costs no digits.
    """
    weight = np.empty(pos.shape[0], np.int64)
    for k in range(pos.shape[0]):
        weight[k] = above[home[k] + 1]
    return middle_by_weight(pos, weight)


@kernel
def settle(weight, discount, tail, pos, low, high, j, buckets, pivot, above, home, unit, ref, value, at_rank):
    """Settle in value and at_rank (negatives per rank) all that needs no look at members, list the regions.

    Negatives are j, j + 1, … and have ranks low … high. Returns the regions, and what Σ gradient·(score − ref) lacks
    where the mean gradient of a tie is rounded to the type of value.
    """
    n_buckets = above.shape[0] - 1
    regions = np.empty((min(home.shape[0], n_buckets), REGION_COLUMNS), np.int64)
    n_regions, gathered, rank, worst = 0, 0, low, pos.shape[0] + 1
    done = n_buckets  # buckets from here on are settled
    lack = 0.0
    value[n_buckets:] = 0  # of positives
    while rank < high:
        b, first = home[rank - low], rank
        value[b + 1 : done] = value.dtype.type(worst - rank)
        at_rank[rank] += above[b + 1] - above[done]
        while rank < high and home[rank - low] == b:
            rank += 1
        size, begin = above[b] - above[b + 1], above[b + 1] + j
        done = b
        if size == 0:
            value[b] = 0
            continue
        is_tie, score = pivot.shape[0] > 0 and b % 3 == 1, 0.0
        if is_tie:
            score = np.float64(pivot[b // 3])
        elif pivot.shape[0] == 0 and size >= _CROWD and b > 0:
            score = edge(buckets, pivot, b)
            is_tie = stands_alone(score, buckets, pivot)
        if is_tie:
            mean = solve_tie(weight, discount, tail, pos, score, begin, size, first, rank, at_rank)
            value[b] = mean
            lack += unit * (mean - np.float64(value[b])) * size * (score - ref)
        else:
            value[b] = -1 - n_regions
            regions[n_regions, START], regions[n_regions, STOP] = gathered, gathered + size
            regions[n_regions, J], regions[n_regions, BUCKET] = begin, b
            regions[n_regions, LOW], regions[n_regions, HIGH] = first, rank
            gathered += size
            n_regions += 1
    value[:done] = value.dtype.type(worst - high)
    at_rank[high] += above[0] - above[done]
    return regions[:n_regions], lack
