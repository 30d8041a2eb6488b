"""Positives walk down sorted negatives: where each has its place, and what ranks and gradients follow. O(N + P).

Each positive's place is found as if it were alone, by (C2); where places fall as positives do, Algorithm 1 finds those
of the whole stretch, on scores in descending order.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.algorithm1 import STACK_ROWS
from rankwise.kernels.buckets.maps import edge
from rankwise.kernels.compiled import part
from rankwise.kernels.steps import best_rank, drop


@part
def walk(weight, discount, tail, pos, neg, places, j, low, high):
    """places[k − low] = how many of neg are above positive k, low ≤ k < high. neg: negatives j, j + 1, …, sorted."""
    size, c, most, in_order = neg.shape[0], np.int64(0), np.int64(0), True
    for k in range(low, high):
        w, level = weight[np.uint64(k - 1)], pos[np.uint64(k - 1)]
        while c < size and neg[np.uint64(c)] - level + w * drop(discount, tail, k + j + c) > 0.0:
            c += 1
        while c > 0 and not neg[np.uint64(c - 1)] - level + w * drop(discount, tail, k + j + c - 1) > 0.0:
            c -= 1
        places[np.uint64(k - low)] = c
        in_order &= c >= most
        most = c if c > most else most
    if not in_order:
        straighten(weight, discount, tail, pos, neg, np.empty(0, np.int64), (), places, j, low, high)


@part
def straighten(weight, discount, tail, pos, scores, number, of_buckets, places, j, low, high):
    """Solve together each stretch of positives whose places fall somewhere; arguments as of `find_places`."""
    n = high - low
    least = np.empty(n, np.int64)  # of the places from k on
    least[n - 1] = places[n - 1]
    for k in range(n - 2, -1, -1):
        least[k] = places[k] if places[k] < least[k + 1] else least[k + 1]
    begin = 0
    while begin < n:
        end, most = begin + 1, places[begin]
        while end < n and most > least[end]:
            most = places[end] if places[end] > most else most
            end += 1
        if end - begin > 1:
            left, first, stop = least[begin], low + begin, low + end
            find_places(
                weight, discount, tail, pos, scores, number, of_buckets, places, low, j, left, most, first, stop
            )  # fmt: skip
        begin = end


@part
def find_places(weight, discount, tail, pos, scores, number, of_buckets, places, base, j, left, right, low, high):
    """Algorithm 1 on scores left ≤ m < right, sorted: places[k − base], how many are above positive k, low ≤ k < high.

    Score m stands for negative number[m], or j + m if number is empty; one score alone for all of them. If of_buckets
    is given, scores are the lower edges of buckets from the highest on, and number the negatives at or above each.
    """
    stack, depth = np.empty((STACK_ROWS, 4), np.int64), 0
    while True:
        if left == right:
            for k in range(low, high):
                places[k - base] = left
        elif low < high:
            m = (left + right) >> 1
            if len(of_buckets) == 0:
                score = scores[m if scores.shape[0] > 1 else 0]
                at = number[m] if number.shape[0] > 0 else j + m
            else:
                buckets, pivot = of_buckets
                b = number.shape[0] - 2 - m
                score, at = edge(buckets, pivot, b), number[b] + j
            rank = best_rank(weight, discount, tail, pos, score, at, low, high)
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = m + 1, right, rank, high
            depth += 1
            right, high = m, rank
            continue
        if depth == 0:
            return
        depth -= 1
        left, right, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]


@part
def solve_tie(weight, discount, tail, pos, score, j, size, low, high, at_rank):
    """Ranks low … high of negatives j, j + 1, … of one score: adds to at_rank, returns the mean of P + 1 − rank."""
    places, one = np.empty(high - low, np.int64), np.empty(1)
    one[0] = score
    nobody, nought = np.empty(0, np.int64), np.int64(0)
    find_places(weight, discount, tail, pos, one, nobody, (), places, low, j, nought, size, low, high)
    below, at = 0.0, np.int64(0)
    for k in range(low, high + 1):
        end = places[k - low] if k < high else size
        at_rank[k] += end - at
        below += float(pos.shape[0] + 1 - k) * float(end - at)
        at = end
    return below / size


@part
def conclude_sorted(neg, index, places, low, high, n_pos, unit, ref, at_rank, gradient):
    """Gradients of sorted negatives by the positives' places, negatives per rank; Σ gradient·(score − ref)."""
    total, at, size, worst = 0.0, np.int64(0), neg.shape[0], n_pos + 1
    for k in range(low, high + 1):
        end = places[np.uint64(k - low)] if k < high else size
        g, in_all = unit * float(worst - k), 0.0
        for q in range(np.uint64(at), np.uint64(end)):
            gradient[np.uint64(index[q])] = g
            in_all += neg[q] - ref
        total += g * in_all
        at_rank[np.uint64(k)] += end - at
        at = end
    share_among_ties(neg, index, places, high - low, worst - high, unit, gradient)
    return total


@part
def share_among_ties(neg, index, places, n, beneath, unit, gradient):
    """Give equal scores their mean gradient: they differ only where a positive has its place amid a tie.

    n positives have these places; `beneath` more are below all negatives.
    """
    size, k = neg.shape[0], np.int64(0)
    while k < n:
        c = places[k]
        if not (0 < c < size and neg[c - 1] == neg[c]):
            k += 1
            continue
        first, last = c - 1, c + 1
        while first > 0 and neg[first - 1] == neg[c]:
            first -= 1
        while last < size and neg[last] == neg[c]:
            last += 1
        below = beneath * (last - first)  # positives below the members, in all
        while k < n and places[k] < last:
            below += places[k] - first
            k += 1
        below += (n - k) * (last - first)
        g = unit * (float(below) / float(last - first))
        for q in range(first, last):
            gradient[index[q]] = g
