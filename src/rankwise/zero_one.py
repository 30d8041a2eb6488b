"""The decomposable 0-1 loss: a hinge per sample, J = (1/n) Σ max(0, scale − y·s) with y = ±1, in plain NumPy.

Its most violating output is a labelling. Read as a ranking it is, from the top: negatives called positive, positives
called positive, negatives called negative, positives called negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Solved = tuple[float, float, NDArray[np.floating], NDArray[np.int64], NDArray[np.int64]]


def zero_one_hinge(scores: NDArray[np.floating], relevant: NDArray[np.bool_], scale: float, method: str) -> Solved:
    """J, Δ, the gradient, c_0..c_P of the labelling as a ranking, and the positives by descending score."""
    n = scores.shape[0]
    y = np.where(relevant, 1.0, -1.0)
    margin = scale - y * scores
    wrong = margin > 0.0
    value = float(margin[wrong].sum()) / n
    if method == "exhaustive":
        from rankwise.inference.exhaustive import best_labelling

        value, wrong = best_labelling(scores.astype(np.float64), relevant, scale)
    gradient = np.where(wrong, -y / n, 0.0).astype(scores.dtype)
    n_pos = int(np.count_nonzero(relevant))
    called = n_pos - int(np.count_nonzero(wrong & relevant))
    above = np.full(n_pos + 1, n - n_pos)
    above[0] = 0
    above[1 : called + 1] = np.count_nonzero(wrong & ~relevant)
    positives = np.flatnonzero(relevant)
    positives = positives[np.argsort(-scores[positives], kind="stable")]
    return value, float(np.count_nonzero(wrong)) / n, gradient, above, positives


def zero_one_many(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], starts: NDArray[np.int64], scale: float, method: str
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.floating]]:
    """J and Δ of each query, its positives and negatives, and the gradient of the sum of J."""
    n_queries = starts.size - 1
    out, counts = np.zeros((n_queries, 2)), np.zeros((n_queries, 2), np.int64)
    gradient = np.zeros_like(scores)
    for q in range(n_queries):
        part = slice(starts[q], starts[q + 1])
        n_pos = int(np.count_nonzero(relevant[part]))
        counts[q] = n_pos, part.stop - part.start - n_pos
        if counts[q].min() > 0:
            out[q, 0], out[q, 1], gradient[part], _, _ = zero_one_hinge(scores[part], relevant[part], scale, method)
    return out, counts, gradient


def zero_one_loss(scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
    """The fraction of samples on the wrong side of 0, those at 0 being wrong if worst."""
    y = np.where(relevant, 1.0, -1.0)
    return float(np.mean(y * scores <= 0.0 if worst else y * scores < 0.0))
