"""Soft counts of a large query of many positives: both classes are sorted, and windows slide along the other one.

Beside the sorts all is O(P + N), from one end to the other; the gaps between 2P edges, of which counts.py keeps
counts and sums, would miss the caches.
"""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel
from rankwise.kernels.soft.windows import slide


@kernel
def soften_sorted(level, negatives, width, above, near):
    """c by positive, and the negatives within width, from the scores of both classes, ascending."""
    above[:] = 0.0
    slide(negatives, np.ones(negatives.shape[0]), level, width, above, near)
    for i in range(above.shape[0]):
        above[i] = max(above[i], 0.0)


@kernel
def draw_sorted(scores, order, level, width, ramp, weight, gradient):
    """The negatives' gradient from weights by positive; order: the negatives' positions, by ascending score.

    With ramp, both classes are turned over: H(s_j − s_k) = H((−s_k) − (−s_j)).
    """
    n, n_pos, half = order.shape[0], level.shape[0], 0.5 / width
    negatives, above, inside = np.empty(n), np.zeros(n), np.empty(n)
    for j in range(n):
        score = np.float64(scores[np.uint32(order[j])])
        if ramp:
            negatives[n - 1 - j] = -score
        else:
            negatives[j] = score
    if ramp:
        places, weights = np.empty(n_pos), np.empty(n_pos)
        for i in range(n_pos):
            places[n_pos - 1 - i], weights[n_pos - 1 - i] = -level[i], weight[i]
        slide(places, weights, negatives, width, above, inside)
        for j in range(n):
            gradient[np.uint32(order[j])] = above[n - 1 - j]
    else:
        slide(level, weight, negatives, width, above, inside)
        for j in range(n):
            gradient[np.uint32(order[j])] = half * inside[j]
