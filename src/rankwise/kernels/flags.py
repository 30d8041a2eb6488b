"""Scores and relevance as they come: whether scores are within bounds, and where positives are."""

from __future__ import annotations

import numpy as np

from rankwise.kernels.compiled import kernel, part

# The bit that makes a flag true, of eight of them.
LOW_BITS = np.uint64(0x0101_0101_0101_0101)


@part
def all_within(scores, limit):
    """Whether all scores are within ±limit, and so finite."""
    fine = True
    for k in range(scores.shape[0]):
        fine &= abs(scores[k]) <= limit
    return fine


@kernel
def positions(flags, where):
    """Fill `where` with the positions of true flags, ascending; how many. It needs room for one more."""
    n_words, at, room = flags.shape[0] >> 3, np.uint64(0), np.uint64(where.shape[0] - 1)
    words = flags[: 8 * n_words].view(np.uint64)
    for k in range(n_words):
        if words[k] & LOW_BITS:
            for q in range(8 * k, 8 * k + 8):  # no branch depends on a flag
                where[at] = q
                at = min(at + np.uint64(flags[q]), room)
    for q in range(8 * n_words, flags.shape[0]):
        where[at] = q
        at = min(at + np.uint64(flags[q]), room)
    return np.int64(at)
