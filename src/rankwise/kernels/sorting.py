"""Sorts of values along with their positions, from the highest down, by counting rather than by comparing.

    few values            each goes where the number of greater ones tells
    up to some thousands  counted in equal intervals, then inserted
    very many, or uneven  by the digits of their places in the order of all numbers, then inserted

Few branches depend on the values, so that the processor seldom guesses wrong.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import inline, kernel, part

# Segments this short are sorted by insertion.
SHORT = 16
# From here on numbers are sorted by the digits of a key, so many bits each: more streams would miss the caches.
_MANY = 1 << 15
_DIGIT, _KEY = 11, np.int64(32)
_DIGITS, _KEYS = np.int64((1 << 11) - 1), np.int64((1 << 32) - 1)
# From here on digits are worth their counters where values are uneven.
_BY_DIGITS = 1 << 9
# Intervals a value: with one, most of the time would go to what shares an interval.
_FINE = 3
# Up to so many values, all are compared with all.
_BY_COMPARING = 32
# At least so many values are looked at for outliers, by a few of them.
_WITH_OUTLIERS, _FEW = 256, np.int64(32)
_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN, HALF = np.int64(63), np.int64(1)


@inline
def order_of(score):
    """The place of a number in the order of all float64 numbers; −0.0 counts as 0.0."""
    bits = np.float64(np.float64(score) + 0.0).view(np.int64)
    return bits ^ ((bits >> _SIGN) & _ALL_BUT_SIGN)


@inline
def number_of(order):
    """The inverse of `order_of`."""
    return np.int64(order ^ ((order >> _SIGN) & _ALL_BUT_SIGN)).view(np.float64)


@kernel
def order_descending(values):
    """Values in descending order, and the positions they came from."""
    n = values.shape[0]
    idx, sorted_values, order = np.arange(n), np.empty(n), np.empty(n, np.int64)
    sort_descending(values.copy() if n < _MANY else values, idx, n, sorted_values, order, slots(n))
    return sorted_values, order


@part
def sort_descending(val, idx, n, to_val, to_idx, slot):
    """Put val[:n] into to_val in descending order, idx along with it; val and idx are overwritten.

    By counting in a few times as many equal intervals as values, then insertion, unless there are very few values, or
    very many, or intervals are uneven. slot is from `slots`.
    """
    if n <= _BY_COMPARING:
        sort_few(val, idx, np.int64(0), n, to_val, to_idx)
        return
    if n >= _MANY:
        sort_by_digits(val, idx, n, to_val, to_idx, slot)
        return
    low, high = extremes(val, n)
    low, high = without_outliers(val, n, low, high)
    n_intervals = n * _FINE
    last = float(n_intervals - 1)
    rate = last / (high - low) if high > low else 0.0
    begin, interval = slot, slot[n_intervals + 1 :]
    for k in range(np.uint64(n)):
        interval[k] = interval_of(val[k], high, rate, last)
    if beginnings(interval, n, begin, n_intervals + 1) > SHORT:
        if n < _BY_DIGITS:
            merge_sort(val, idx, n, to_val, to_idx)
        else:
            sort_by_digits(val, idx, n, to_val, to_idx, slot)
        return
    for k in range(np.uint64(n)):
        b = np.uint64(interval[k])
        place = np.uint64(begin[b])
        begin[b] = np.int32(place + np.uint64(1))
        to_val[place], to_idx[place] = val[k], idx[k]
    insert(to_val, to_idx, n)


@inline
def n_slots(n):
    """How many counters `sort_descending` of n values takes."""
    return (_FINE + 1) * (n if n < _MANY else _MANY) + (3 << _DIGIT)


@inline
def slots(n):
    """Room for `sort_descending` of n values to count in."""
    return np.empty(n_slots(n), np.int32)


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


@inline
def beginnings(interval, n, begin, n_counts):
    """begin[b] = where interval b begins among n values, which lie in intervals; the most values in one of them.

    begin is shifted by one while it counts.
    """
    for b in range(np.uint64(n_counts)):
        begin[b] = 0
    for k in range(np.uint64(n)):
        begin[np.uint64(interval[k] + 1)] += np.int32(1)
    at, most = np.int32(0), np.int32(0)
    for b in range(np.uint64(n_counts)):
        most = begin[b] if begin[b] > most else most
        at += begin[b]
        begin[b] = at
    return most


@part
def move_apart(scores, flags, val, idx):
    """All scores and their positions: the negatives, then the positives, both as they come; how many negatives.

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
    return np.int64(front)


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


@inline
def interval_of(value, high, rate, last):
    """The interval of a value, counted from the highest, 0 … last whatever the value is."""
    t = (high - value) * rate
    t = t if t > 0.0 else 0.0
    return np.int32(t if t < last else last)


@part(fastmath={"nnan", "nsz", "reassoc"})
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
            v, above = val[a * stride], np.int64(0)
            for b in range(_FEW):
                w = val[b * stride]
                above += np.int64((w > v) | ((w == v) & (b < a)))
            top = v if above == _FEW // 8 else top
            bottom = v if above == _FEW - 1 - _FEW // 8 else bottom
        if top > bottom:
            far = 8.0 * (top - bottom)
            low = bottom - far if bottom - far > low else low
            high = top + far if top + far < high else high
    return low, high


@part
def sort_by_digits(val, idx, n, to_val, to_idx, begin):
    """`sort_descending` of very many values, fewer than 2³²: by 32 bits of their places in the order of all numbers.

    What is moved about is one word, a value's key and its number. Many different values of one key are merged, few are
    left to insertion.
    """
    low, high = extremes(val, n)
    top, shift = order_of(high) >> HALF, np.int64(0)
    while (top - (order_of(low) >> HALF)) >> (shift + _KEY) > 0:
        shift += 1
    words, other = to_idx, np.empty(n, np.int64)
    for b in range(3 << _DIGIT):
        begin[b] = 0
    for k in range(n):
        key = ((top - (order_of(val[k]) >> HALF)) >> shift) & _KEYS
        words[k] = (key << _KEY) | k
        for digit in range(3):
            begin[np.uint64((digit << _DIGIT) + ((key >> (digit * _DIGIT)) & _DIGITS))] += np.int32(1)
    for digit in range(3):
        at = np.int32(0)
        for b in range(digit << _DIGIT, (digit + 1) << _DIGIT):
            size = begin[b]
            begin[b] = at
            at += size
        for k in range(n):
            key = (words[k] >> _KEY) & _KEYS
            b = np.uint64((digit << _DIGIT) + ((key >> (digit * _DIGIT)) & _DIGITS))
            place = np.uint64(np.uint32(begin[b]))
            begin[b] = np.int32(place + np.uint64(1))
            other[place] = words[k]
        words, other = other, words
    begun, before, uneven = np.int64(0), words[0] >> _KEY, False
    for k in range(n):
        key, number = words[k] >> _KEY, np.uint64(words[k] & _KEYS)
        if key != before:
            if uneven and k - begun > SHORT:
                merge_run(to_val, to_idx, begun, k)
            begun, before, uneven = np.int64(k), key, False
        to_val[k], to_idx[k] = val[number], idx[number]
        uneven |= to_val[k] != to_val[begun]
    if uneven:
        merge_run(to_val, to_idx, begun, n)
    insert(to_val, to_idx, n)


@part
def merge_run(val, idx, first, stop):
    """Sort val[first:stop] in descending order, idx along with it."""
    n = stop - first
    own, at = np.empty(n), np.empty(n, np.int64)
    for k in range(n):
        own[k], at[k] = val[first + k], idx[first + k]
    merge_sort(own, at, n, val[first:stop], idx[first:stop])


@part
def merge_sort(val, idx, n, to_val, to_idx):
    """`sort_descending` by merging sorted runs."""
    for left in range(np.int64(0), n, SHORT):
        sort_few(val, idx, left, left + SHORT if left + SHORT < n else n, to_val, to_idx)
    width = np.int64(SHORT)
    while width < n:
        for k in range(n):  # a loop, since slices of unknown lengths take seconds to compile
            val[k], idx[k] = to_val[k], to_idx[k]
        for left in range(0, n, 2 * width):
            middle = left + width if left + width < n else n
            right = left + 2 * width if left + 2 * width < n else n
            a, b = left, middle
            for k in range(np.uint64(left), np.uint64(right)):  # no branch depends on a value
                p = np.uint64(a if a < middle else middle - 1)
                q = np.uint64(b if b < right else right - 1)
                first = (b >= right) | ((a < middle) & (val[p] >= val[q]))
                to_val[k], to_idx[k] = (val[p], idx[p]) if first else (val[q], idx[q])
                a += np.int64(first)
                b += np.int64(1) - np.int64(first)
        width *= 2


@kernel
def order_by_key(keys, n_keys):
    """Positions in ascending order of their keys (0 ≤ key < n_keys), stably, and where each key's positions end."""
    ends = np.zeros(n_keys, np.int64)
    for k in range(keys.shape[0]):
        ends[keys[k]] += 1
    total = 0
    for key in range(n_keys):
        size = ends[key]
        ends[key] = total
        total += size
    order = np.empty(keys.shape[0], np.int64)
    for k in range(keys.shape[0]):
        key = keys[k]
        order[ends[key]] = k
        ends[key] += 1
    return order, ends
