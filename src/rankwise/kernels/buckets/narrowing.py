"""Where positives have their places, narrowed down by edges and counts alone: nobody has all negatives at hand.

A *stretch* is positives low ≤ k < high, all of whose places are among the negatives of [edge[0], edge[c]); edges are
ascending, above[b] negatives of the query score at least edge[b]. Algorithm 1 over the edges tells between which two a
positive has its place. What lies between is a narrower stretch, or, where it holds one score only, a tie.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.buckets.maps import edge
from rankwise.kernels.compiled import kernel
from rankwise.kernels.sorting import number_of, order_of
from rankwise.kernels.walk import find_places, solve_tie

# Columns of a row of whole numbers of a stretch: positives LOW ≤ k < HIGH, negatives above it and in it.
LOW, HIGH, ABOVE, SIZE = range(4)


@kernel
def bounds_of(buckets, pivot, chosen, least, most, bounds):
    """bounds[q] = the least number in bucket chosen[q] or above, and the least above it, within least … most."""
    n_buckets = (buckets.last + 1) * (3 if pivot.shape[0] > 0 else 1)
    for q in range(chosen.shape[0]):
        b = chosen[q]
        bounds[q, 0] = max(edge(buckets, pivot, b), least) if b > 0 else least
        bounds[q, 1] = min(edge(buckets, pivot, b + 1), most) if b + 1 < n_buckets else most


@kernel
def narrow(weight, discount, tail, pos, stretches, starts, edges, above, exact, at_rank, upper, found, bounds, ties):
    """Narrow every stretch; (how many are found, how many ties).

    stretches: (S, 4). starts: (S + 1,) where the edges of each begin, the last of them its upper end. exact: (S,)
    whether edges are all scores there are. Adds to at_rank, the negatives per rank, what is settled; upper[k − 1] gets
    the least score above the k-th positive for sure. Writes found, bounds as stretches and their ends; ties: (score,
    mean of P + 1 − rank).
    """
    home, nought, one = np.empty(pos.shape[0], np.int64), np.int64(0), np.int64(1)
    n_found, n_ties = nought, nought
    for s in range(stretches.shape[0]):
        low, high, first, c = stretches[s, LOW], stretches[s, HIGH], starts[s], starts[s + 1] - starts[s] - 1
        own, over = edges[first : starts[s + 1]], above[first : starts[s + 1]]
        scores, number = own[c - 1 : 0 : -1].copy(), over[c - 1 : 0 : -1] + 1
        find_places(
            weight, discount, tail, pos, scores, number, (), home, one, nought, nought, c - 1, low, high
        )  # fmt: skip
        for k in range(low, high):
            home[k - 1] = c - 1 - home[k - 1]
        k, done = low, c
        while k < high:
            b, begin = home[k - 1], k
            at_rank[k] += over[b + 1] - over[done]
            while k < high and home[k - 1] == b:
                upper[k - 1] = own[b + 1]
                k += 1
            done, size = b, over[b] - over[b + 1]
            if size == 0:
                continue
            if exact[s] or order_of(own[b]) + 1 == order_of(own[b + 1]):
                mean = solve_tie(weight, discount, tail, pos, own[b], over[b + 1] + 1, size, begin, k, at_rank)
                ties[n_ties, 0], ties[n_ties, 1] = own[b], mean
                n_ties += 1
            else:
                found[n_found, LOW], found[n_found, HIGH] = begin, k
                found[n_found, ABOVE], found[n_found, SIZE] = over[b + 1], size
                bounds[n_found, 0], bounds[n_found, 1] = own[b], own[b + 1]
                n_found += 1
        at_rank[high] += over[0] - over[done]
    return n_found, n_ties


@kernel
def edges_between(bounds, cells, even, starts, edges):
    """Edges that divide [bounds[s, 0], bounds[s, 1]) into cells[s]: even in score, or in the order of all numbers."""
    at = np.int64(0)
    for s in range(bounds.shape[0]):
        starts[s] = at
        low, high = bounds[s, 0], bounds[s, 1]
        first = order_of(low)
        half = np.float64((order_of(high) >> np.int64(1)) - (first >> np.int64(1)))  # the whole may not fit
        edges[at] = low
        at += 1
        for q in range(1, cells[s]):
            part = q / cells[s]
            between = low * (1.0 - part) + high * part if even else number_of(first + 2 * np.int64(half * part))
            if edges[at - 1] < between < high:
                edges[at] = between
                at += 1
        edges[at] = high
        at += 1
    starts[bounds.shape[0]] = at
