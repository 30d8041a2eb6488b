"""Sorts of values along with their positions, from the highest down, by counting rather than by comparing.

    few values            each goes where the number of greater ones tells
    up to some thousands  counted in equal intervals, then inserted
    very many, or uneven  by the digits of their places in the order of all numbers, then inserted

Few branches depend on the values, so that the processor seldom guesses wrong.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.buckets import order_of
from rankwise.kernels.compiled import inline, kernel, part
from rankwise.kernels.quicksort import SHORT

# From here on numbers are sorted by the digits of a key, so many bits each: more streams would miss the caches.
_MANY = 1 << 15
_DIGIT, _KEY, _HALF = np.int64(11), np.int64(32), np.int64(1)
_DIGITS, _KEYS = np.uint64((1 << 11) - 1), np.uint64((1 << 32) - 1)
# From here on digits are worth their counters where values are uneven.
_BY_DIGITS = 1 << 9
# Intervals a value: with one, most of the time would go to what shares an interval.
_FINE = 3
# Up to so many values, all are compared with all.
_BY_COMPARING = 32
# At least so many values are looked at for outliers, by a few of them.
_WITH_OUTLIERS, _FEW = 256, np.int64(32)


@part
def sort_descending(val, idx, n, val_spare, idx_spare, slot):
    """Sort val[:n] in descending order, idx along with it.

    By counting in a few times as many equal intervals as values, then insertion, unless there are very few values, or
    very many, or intervals are uneven. slot is from `slots`.
    """
    if n <= _BY_COMPARING:
        sort_few(val, idx, np.int64(0), n, val_spare, idx_spare)
        copy_pairs(val_spare, idx_spare, n, val, idx)
        return
    if n >= _MANY:
        sort_many(val, idx, n, val_spare, idx_spare, slot)
        return
    low, high = extremes(val, n)
    low, high = without_outliers(val, n, low, high)
    n_intervals = n * _FINE
    last = float(n_intervals - 1)
    rate = last / (high - low) if high > low else 0.0
    begin, interval = slot[: n_intervals + 1], slot[n_intervals + 1 :]
    for k in range(np.uint64(n)):
        interval[k] = interval_of(val[k], high, rate, last)
    if beginnings(interval, n, begin, n_intervals + 1) > SHORT:
        sort_uneven(val, idx, n, val_spare, idx_spare, slot)
        return
    for k in range(np.uint64(n)):
        b = np.uint64(interval[k])
        place = np.uint64(begin[b])
        begin[b] = np.int32(place + np.uint64(1))
        val_spare[place], idx_spare[place] = val[k], idx[k]
    insert(val_spare, idx_spare, n)
    copy_pairs(val_spare, idx_spare, n, val, idx)


@inline
def slots(n):
    """Room for `sort_descending` of n values to count in."""
    return np.empty(max((_FINE + 1) * min(n, _MANY) + 1, 3 << _DIGIT), np.int32)


@part
def sort_few(val, idx, first, stop, to_val, to_idx):
    """Copy val[first:stop] and idx in descending order: each goes where the number of greater ones tells.

    No branch depends on a value.
    """
    begin, end = np.uint64(first), np.uint64(stop)
    for a in range(begin, end):
        v, at = val[a], begin
        for b in range(begin, end):
            at += np.uint64((val[b] > v) | ((val[b] == v) & (b < a)))
        to_val[at], to_idx[at] = v, idx[a]


@part
def negatives_first(scores, flags, n_neg, val, idx, val_spare, idx_spare, slot):
    """All scores and their positions: the negatives in descending order, then the positives, as they come.

    As `sort_descending`, the positives having an interval of their own after all others.
    """
    n = scores.shape[0]
    if n >= _MANY:
        move_apart(scores, flags, val, idx)
        sort_descending(val, idx, n_neg, val_spare, idx_spare, slot)
        return
    low, high = range_of_negatives(scores, flags)
    low, high = without_outliers(scores, n, low, high)
    own = n_neg * _FINE
    last = float(own - 1)
    rate = last / (high - low) if high > low else 0.0
    begin, interval = slot[: own + 2], slot[own + 2 :]
    for k in range(np.uint64(n)):
        interval[k] = np.int32(own) if flags[k] else interval_of(np.float64(scores[k]), high, rate, last)
    most = beginnings(interval, n, begin, own + 1)
    for k in range(np.uint64(n)):
        b = np.uint64(interval[k])
        place = np.uint64(begin[b])
        begin[b] = np.int32(place + np.uint64(1))
        val[place], idx[place] = scores[k], k
    if most > SHORT:
        sort_uneven(val, idx, n_neg, val_spare, idx_spare, slot)
    else:
        insert(val, idx, n_neg)


@inline
def beginnings(interval, n, begin, n_counts):
    """begin[b] = where interval b begins among n values, which lie in intervals; the most values in one of them.

    begin is shifted by one while it counts. Only its first n_counts counts are added up and looked at.
    """
    begin[:] = 0
    for k in range(np.uint64(n)):
        begin[np.uint64(interval[k] + 1)] += np.int32(1)
    at, most = np.int32(0), np.int32(0)
    for b in range(np.uint64(n_counts)):
        most = max(most, begin[b])
        at += begin[b]
        begin[b] = at
    return most


@part
def move_apart(scores, flags, val, idx):
    """All scores and their positions: the negatives, then the positives, both as they come.

    Each place is written once, whatever the flags are: from the front, or from the back, which is turned round then.
    """
    n, front = np.uint64(scores.shape[0]), np.uint64(0)
    for k in range(n):  # no branch depends on a flag
        place = n - np.uint64(1) - (k - front) if flags[k] else front
        val[place], idx[place] = scores[k], k
        front += np.uint64(1) - np.uint64(flags[k])
    low, high = np.int64(front), np.int64(n) - 1
    while low < high:
        val[low], val[high] = val[high], val[low]
        idx[low], idx[high] = idx[high], idx[low]
        low += 1
        high -= 1


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def range_of_negatives(scores, flags):
    """The least and the greatest negative."""
    low, high = np.inf, -np.inf
    for k in range(scores.shape[0]):
        v = np.float64(scores[k])
        low = v if (v < low) & (not flags[k]) else low
        high = v if (v > high) & (not flags[k]) else high
    return low, high


@part
def insert(val, idx, n):
    """Sort pairs that are nearly in descending order."""
    one = np.uint64(1)
    for a in range(one, np.uint64(n)):
        if val[a - one] < val[a]:
            v, i, b = val[a], idx[a], a
            while b > np.uint64(0) and val[b - one] < v:
                val[b], idx[b] = val[b - one], idx[b - one]
                b -= one
            val[b], idx[b] = v, i


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
    return np.int32(t if t < last else last)


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def extremes(val, n):
    """The least and the greatest of val[:n], none of them NaN: several at a time."""
    low = high = val[0]
    for k in range(n):
        low = val[k] if val[k] < low else low
        high = val[k] if val[k] > high else high
    return low, high


@part
def without_outliers(val, n, low, high):
    """A range of values, but not far beyond where most of val[:n] are, by a few of them."""
    if n >= _WITH_OUTLIERS:
        stride, top, bottom = n // _FEW, low, high
        for a in range(_FEW):
            v, above = np.float64(val[a * stride]), np.int64(0)
            for b in range(_FEW):
                w = np.float64(val[b * stride])
                above += np.int64((w > v) | ((w == v) & (b < a)))
            top = v if above == _FEW // 8 else top
            bottom = v if above == _FEW - 1 - _FEW // 8 else bottom
        if top > bottom:
            low, high = max(low, bottom - 8.0 * (top - bottom)), min(high, top + 8.0 * (top - bottom))
    return low, high


@part
def sort_uneven(val, idx, n, val_spare, idx_spare, slot):
    """`sort_descending` of values that crowd somewhere."""
    if n < _BY_DIGITS:
        merge_sort(val, idx, n, val_spare, idx_spare)
    else:
        sort_many(val, idx, n, val_spare, idx_spare, slot)


@part
def sort_many(val, idx, n, val_spare, idx_spare, slot):
    """`sort_descending` of very many values, fewer than 2³²: by 32 bits of their places in the order of all numbers.

    What is moved about is one word, a value's key and its number. Many different values of one key are merged, few are
    left to insertion.
    """
    low, high = extremes(val, n)
    top, shift, one = order_of(high) >> _HALF, np.int64(0), np.uint64(1)
    while (top - (order_of(low) >> _HALF)) >> (shift + _KEY) > 0:
        shift += 1
    begin = slot[: 3 << _DIGIT]
    begin[:] = 0
    words, other = val_spare.view(np.uint64), idx_spare.view(np.uint64)
    for k in range(np.uint64(n)):
        key = np.uint64((top - (order_of(val[k]) >> _HALF)) >> shift) & _KEYS
        words[k] = (key << np.uint64(_KEY)) | k
        for digit in range(3):
            first = np.uint64(digit) << np.uint64(_DIGIT)
            begin[first + ((key >> np.uint64(digit * _DIGIT)) & _DIGITS)] += np.int32(1)
    for digit in range(3):
        first = np.uint64(digit) << np.uint64(_DIGIT)
        at = np.int32(0)
        for b in range(first, first + _DIGITS + one):
            size = begin[b]
            begin[b] = at
            at += size
        by = np.uint64(_KEY + digit * _DIGIT)
        for k in range(np.uint64(n)):
            b = first + ((words[k] >> by) & _DIGITS)
            place = np.uint64(np.uint32(begin[b]))
            begin[b] = np.int32(place + one)
            other[place] = words[k]
        words, other = other, words
    begun, before, uneven = np.uint64(0), words[0] >> np.uint64(_KEY), False
    for k in range(np.uint64(n)):  # the words are in idx_spare: each is read before it is written over
        key, number = words[k] >> np.uint64(_KEY), words[k] & _KEYS
        if key != before:
            if uneven and k - begun > np.uint64(SHORT):
                merge_run(val_spare, idx_spare, np.int64(begun), np.int64(k))
            begun, before, uneven = k, key, False
        val_spare[k], idx_spare[k] = val[number], idx[number]
        uneven |= val_spare[k] != val_spare[begun]
    if uneven:
        merge_run(val_spare, idx_spare, np.int64(begun), np.int64(n))
    insert(val_spare, idx_spare, n)
    copy_pairs(val_spare, idx_spare, n, val, idx)


@part
def merge_run(val, idx, first, stop):
    """Sort val[first:stop] in descending order, idx along with it."""
    n = stop - first
    merge_sort(val[first:stop], idx[first:stop], n, np.empty(n), np.empty(n, np.int64))


@part
def merge_sort(val, idx, n, val_spare, idx_spare):
    """Sort val[:n] in descending order, idx along with it, merging sorted runs."""
    for left in range(np.int64(0), n, SHORT):
        sort_few(val, idx, left, min(left + SHORT, n), val_spare, idx_spare)
    copy_pairs(val_spare, idx_spare, n, val, idx)
    width = SHORT
    while width < n:
        for left in range(0, n, 2 * width):
            middle, right = min(left + width, n), min(left + 2 * width, n)
            a, b = left, middle
            for k in range(np.uint64(left), np.uint64(right)):  # no branch depends on a value
                p, q = np.uint64(min(a, middle - 1)), np.uint64(min(b, right - 1))
                first = (b >= right) | ((a < middle) & (val[p] >= val[q]))
                val_spare[k], idx_spare[k] = (val[p], idx[p]) if first else (val[q], idx[q])
                a += np.int64(first)
                b += np.int64(1) - np.int64(first)
        copy_pairs(val_spare, idx_spare, n, val, idx)
        width *= 2


@kernel
def order_descending(values):
    """Values in descending order, and the positions they came from."""
    n = values.shape[0]
    sorted_values, order = values.copy(), np.arange(n)
    sort_descending(sorted_values, order, n, np.empty(n), np.empty(n, np.int64), slots(n))
    return sorted_values, order
