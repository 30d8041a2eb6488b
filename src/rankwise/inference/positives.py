"""The positives' side: order them by score, and turn the ranks of negatives into Δ and their gradients."""

from __future__ import annotations

import numpy as np

from rankwise.inference.compiled import inline, kernel, part
from rankwise.inference.quicksort import SHORT, insertion_sort
from rankwise.inference.steps import discount_at

# From here on a counting sort goes over two digits of an interval's number: more streams would miss the caches.
MANY = 1 << 15
_DIGIT = np.int64(10)
# At least so many values are looked at for outliers, by a few of them.
_WITH_OUTLIERS, _FEW = 256, np.int64(32)


@part
def sort_descending(val, idx, n, val_spare, idx_spare, slot, work):
    """Sort val[:n] in descending order, idx along with it.

    A counting sort into as many equal intervals as values, then insertion; a merge sort where those are uneven.
    slot has room for 2·n + 1 numbers. Of very many values, see `sort_many`.
    """
    if n <= SHORT:
        insertion_sort(val, idx, np.int64(0), n - 1, work)
        return
    low, high = range_of(val, n, val_spare, work)
    rate = (n - 1) / (high - low) if high > low else 0.0
    last = float(n - 1)
    begin, interval, most = slot[: n + 1], slot[n + 1 :], np.int64(0)
    begin[:] = 0
    for k in range(np.uint64(n)):
        b = interval_of(val[k], high, rate, last)
        interval[k] = np.int64(b)
        size = begin[b + np.uint64(1)] + 1
        begin[b + np.uint64(1)] = size
        most = max(most, size)
    if most > SHORT:
        merge_sort(val, idx, n, val_spare, idx_spare, work)
        return
    for b in range(np.uint64(1), np.uint64(n)):
        begin[b] += begin[b - np.uint64(1)]
    for k in range(np.uint64(n)):
        b = np.uint64(interval[k])
        at = np.uint64(begin[b])
        begin[b] = np.int64(at) + 1
        val_spare[at], idx_spare[at] = val[k], idx[k]
    insert_all(val_spare, idx_spare, n, val, idx)


@part
def insert_all(val, idx, n, to_val, to_idx):
    """Copy pairs that are nearly in descending order, each to its place."""
    one = np.uint64(1)
    for a in range(np.uint64(n)):
        v, i, b = val[a], idx[a], a
        while b > np.uint64(0) and to_val[b - one] < v:
            to_val[b], to_idx[b] = to_val[b - one], to_idx[b - one]
            b -= one
        to_val[b], to_idx[b] = v, i


@part
def copy_pairs(val, idx, n, to_val, to_idx):
    """The first n values and their positions: a loop, since slices of unknown lengths take seconds to compile."""
    for k in range(n):
        to_val[k], to_idx[k] = val[k], idx[k]


@inline
def interval_of(value, high, rate, last):
    """The interval of a value, counted from the highest, 0 … last whatever the value is."""
    t = (high - value) * rate
    t = t if t > 0.0 else 0.0
    return np.uint64(np.int64(t if t < last else last))


@part
def range_of(val, n, spare, work):
    """From the least value to the greatest, but not far beyond where most of them are."""
    low = high = val[0]
    for k in range(n):
        low, high = min(low, val[k]), max(high, val[k])
    if n >= _WITH_OUTLIERS:
        for k in range(_FEW):
            spare[k] = val[k * (n // _FEW)]
        insertion_sort(spare, np.empty(_FEW, np.int64), np.int64(0), _FEW - 1, work)
        top, bottom = spare[_FEW // 8], spare[_FEW - 1 - _FEW // 8]
        if top > bottom:
            low, high = max(low, bottom - 8.0 * (top - bottom)), min(high, top + 8.0 * (top - bottom))
    return low, high


@part
def sort_many(val, idx, n, val_spare, idx_spare, work):
    """`sort_descending` of very many values: two digits of an interval's number, one after the other."""
    low, high = range_of(val, n, val_spare, work)
    last = float((1 << (2 * _DIGIT)) - 1)
    rate = last / (high - low) if high > low else 0.0
    radix_pass(val, idx, n, high, rate, last, np.int64(0), val_spare, idx_spare)
    radix_pass(val_spare, idx_spare, n, high, rate, last, _DIGIT, val, idx)
    if longest_run(val, n, high, rate, last) > SHORT:
        merge_sort(val, idx, n, val_spare, idx_spare, work)
    else:
        copy_pairs(val, idx, n, val_spare, idx_spare)
        insert_all(val_spare, idx_spare, n, val, idx)


@part
def radix_pass(val, idx, n, high, rate, last, shift, to_val, to_idx):
    """Copy val[:n] and idx[:n] in the order of one digit of their intervals, stably."""
    mask, by = np.uint64((1 << 10) - 1), np.uint64(shift)
    begin = np.zeros(1 << 10, np.int64)
    for k in range(n):
        begin[(interval_of(val[k], high, rate, last) >> by) & mask] += 1
    total = 0
    for b in range(begin.shape[0]):
        size = begin[b]
        begin[b] = total
        total += size
    for k in range(n):
        b = (interval_of(val[k], high, rate, last) >> by) & mask
        at = np.uint64(begin[b])
        begin[b] = at + np.uint64(1)
        to_val[at], to_idx[at] = val[k], idx[k]


@part
def longest_run(val, n, high, rate, last):
    """The most values in one interval, val being sorted by interval."""
    longest, begin, before = 0, 0, interval_of(val[0], high, rate, last)
    for k in range(1, n):
        b = interval_of(val[k], high, rate, last)
        if b != before:
            begin, before = k, b
        longest = max(longest, k - begin + 1)
    return longest


@part
def merge_sort(val, idx, n, val_spare, idx_spare, work):
    """Sort val[:n] in descending order, idx along with it, merging sorted runs."""
    for left in range(np.int64(0), n, SHORT):
        insertion_sort(val, idx, left, min(left + SHORT, n) - 1, work)
    width = SHORT
    while width < n:
        for left in range(0, n, 2 * width):
            middle, right = min(left + width, n), min(left + 2 * width, n)
            a, b = left, middle
            for k in range(left, right):
                if b >= right or (a < middle and val[a] >= val[b]):
                    val_spare[k], idx_spare[k] = val[a], idx[a]
                    a += 1
                else:
                    val_spare[k], idx_spare[k] = val[b], idx[b]
                    b += 1
        copy_pairs(val_spare, idx_spare, n, val, idx)
        width *= 2


@kernel
def scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, out):
    """out[i−1] = scale·w_i·PN/(2C), the weights in the units of `Steps`; C."""
    norm = float(n_pos) * float(n_neg)
    if not per_pair:
        norm = 0.0
        for k in range(1, n_pos + 1):
            norm += weight[k - 1] * discount_at(discount, tail, k)
    factor = scale * float(n_pos) * float(n_neg) / (2.0 * norm)
    for k in range(n_pos):
        out[k] = factor * weight[k]
    return norm


@part
def middle_by_weight(pos, weight):
    """The middle one of the positives if the k-th counts weight[k − 1] times; the last one if none counts."""
    total = so_far = 0.0
    for k in range(pos.shape[0]):
        total += float(weight[k])
    for k in range(pos.shape[0]):
        so_far += float(weight[k])
        if 2.0 * so_far > total:
            return pos[k]
    return pos[pos.shape[0] - 1]


@kernel
def finish_positives(pos, idx, n_pos, at_rank, n_neg, ref, gradient):
    """Positives' gradient −2 c_k/(PN), shared among ties, from the negatives per rank; Σ gradient·(score − ref).

    c_k, the number of negatives above the k-th positive, replaces at_rank[k].
    """
    unit = 2.0 / (float(n_pos) * float(n_neg))
    for k in range(1, n_pos + 1):
        at_rank[k] += at_rank[k - 1]
    total = 0.0
    k = 0
    while k < n_pos:
        end = k
        above = 0.0
        while end < n_pos and pos[end] == pos[k]:
            end += 1
            above += at_rank[end]
        g = -unit * above / (end - k)
        for q in range(k, end):
            gradient[idx[q]] = g
        total += g * (pos[k] - ref) * (end - k)
        k = end
    return total


@kernel
def discounted_loss(weight, discount, tail, norm, above, n_pos):
    """Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)), above[k] = c_k for 1 ≤ k ≤ P."""
    total = 0.0
    for k in range(1, n_pos + 1):
        if above[k] > 0:
            total += weight[k - 1] * (discount_at(discount, tail, k) - discount_at(discount, tail, k + above[k]))
    return total / norm


@kernel
def order_descending(values):
    """Values in descending order, and the positions they came from."""
    n = values.shape[0]
    sorted_values, order = values.copy(), np.arange(n)
    slot = np.empty(2 * n + 1, np.int64)
    sort_descending(sorted_values, order, n, np.empty(n), np.empty(n, np.int64), slot, np.zeros(3, np.int64))
    return sorted_values, order
