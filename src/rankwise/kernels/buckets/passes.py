"""The two passes over the scores of a large query: counts by bucket, then gradients; see the package's docstring."""

from __future__ import annotations

import numpy as np

from rankwise.kernels.buckets.maps import CHUNK, cells_of, third
from rankwise.kernels.compiled import kernel, part
from rankwise.kernels.flags import all_within, positions

# Samples whose part of J is added up by itself.
BLOCK = 1 << 16
# Equal scores hit one counter again and again; so many counters in turn keep it from waiting for itself.
COPIES = 2
# Buckets beyond the others, where positives are put: as many as a cell may have.
OWN = 3


@part
def first_from(where, first):
    """How many of the ascending positions are before `first`."""
    low, high = np.int64(0), np.int64(where.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if where[middle] < first:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def count(scores, first, stop, where, limit, buckets, pivot, hist):
    """Count scores[first:stop] by bucket in hist, positives apart; False if one of them is not within ±limit."""
    bound, last = scores.dtype.type(limit), scores.dtype.type(buckets.last)
    cells = np.empty(min(CHUNK, stop - first), np.int32)
    p = first_from(where, first)
    fine = True
    for start in range(first, stop, CHUNK):
        end = min(start + CHUNK, stop)
        part, cell = scores[start:end], cells[: end - start]
        fine &= all_within(part, bound)
        cells_of(part, buckets, last, cell)
        p = set_apart(where, p, start, end, buckets.last, cell)
        if pivot.shape[0] == 0:
            for k in range(cell.shape[0]):
                hist[0, np.uint32(cell[k])] += np.uint32(1)
        else:
            for k in range(cell.shape[0]):
                at = np.uint32(cell[k])
                hist[k % COPIES, third(at, part[k], pivot[at])] += np.uint32(1)
    for row in range(1, hist.shape[0]):
        for b in range(hist.shape[1]):
            hist[0, b] += hist[row, b]
    return fine


@part
def set_apart(where, p, start, end, last, cell):
    """Put the positives where[p], … of a chunk into a cell of their own; p for the next chunk."""
    while p < where.shape[0] and where[p] < end:
        cell[where[p] - start] = last + 1
        p += 1
    return p


@kernel(fastmath={"reassoc", "nsz"})
def write(values, unit, ref, scores, gradient):
    """gradient = unit·values; Σ gradient·(score − ref), added up in any order: one after the other takes too long."""
    total = 0.0
    for k in range(scores.shape[0]):
        g = unit * np.float64(values[k])
        gradient[k] = g
        total += g * (np.float64(scores[k]) - ref)
    return total


@kernel
def assign(scores, first, stop, where, buckets, pivot, value, unit, ref, cursor, ends, mixed, index, gradient, partial):
    """Write the gradient of scores[first:stop] in settled buckets, gather the others from cursor on, by region.

    partial[block] gets Σ gradient·(score − ref) of the former; `first` is the beginning of a block. Positives have a
    bucket of their own, where the gradient is 0. Returns whether each region got the members counted, up to ends: not
    so if somebody wrote to the scores meanwhile.
    """
    last = scores.dtype.type(buckets.last)
    zero = last - last
    size = min(CHUNK, stop - first)
    cells, values = np.empty(size, np.int32), np.empty(size, scores.dtype)
    flags, members = np.empty(size, np.bool_), np.empty(size + 1, np.int64)
    p = first_from(where, first)
    for start in range(first, stop, CHUNK):
        end = min(start + CHUNK, stop)
        part, cell, found = scores[start:end], cells[: end - start], values[: end - start]
        cells_of(part, buckets, last, cell)
        p = set_apart(where, p, start, end, buckets.last, cell)
        if pivot.shape[0] == 0:
            for k in range(part.shape[0]):
                found[k] = value[np.uint32(cell[k])]
        else:
            for k in range(part.shape[0]):
                at = np.uint32(cell[k])
                found[k] = value[third(at, part[k], pivot[at])]
        for k in range(part.shape[0]):
            flags[k] = found[k] < zero
        for q in range(np.uint64(positions(flags[: end - start], members))):
            k = np.uint64(members[q])
            region = np.uint64(-found[k]) - np.uint64(1)
            at = np.uint64(cursor[region])
            cursor[region] = at + np.uint64(1)
            if at < np.uint64(ends[region]):
                mixed[at], index[at] = part[k], np.uint64(start) + k
            found[k] = zero
        partial[start // BLOCK] += write(found, unit, ref, part, gradient[start:end])
    fine = True
    for r in range(ends.shape[0]):
        fine &= cursor[r] == ends[r]
    return fine
