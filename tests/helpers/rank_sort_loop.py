"""RankSort as published: one positive after the other, each against all samples, O(P·n)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from soft_losses import ramp

Array = NDArray[Any]
# What the published loop takes for no error at all.
EPS = 1e-10


def rank_sort_by_loop(scores: Array, target: Array, width: float) -> tuple[Array, Array]:
    """Ranking and sorting error (2,), and the update of each by sample (2, n)."""
    positive = target > 0
    level, negatives, t = scores[positive], scores[~positive], target[positive]
    values, updates = np.zeros(2), np.zeros((2, scores.size))
    of_negatives, of_positives = np.zeros(negatives.size), np.zeros((2, level.size))
    for i in range(level.size):
        h, above = ramp(level - level[i], width), ramp(negatives - level[i], width)
        place, false = h.sum(), above.sum()
        better = t >= t[i]
        ranking = false / (place + false)
        sorting = (h * (1 - t)).sum() / place - (h * better * (1 - t)).sum() / (h * better).sum()
        values += [ranking, sorting]
        if false > EPS:
            of_positives[0, i] -= ranking
            of_negatives += ranking * above / false
        missorted = h * ~better
        if missorted.sum() > EPS:
            of_positives[1, i] -= sorting
            of_positives[1] += sorting * missorted / missorted.sum()
    updates[:, positive], updates[0, ~positive] = of_positives, of_negatives
    n_pos = max(level.size, 1)
    return values / n_pos, updates / n_pos
