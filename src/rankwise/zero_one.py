"""The decomposable 0-1 loss: a hinge per sample, J = (1/n) Σ max(0, scale − y·s) with y = ±1, in plain NumPy.

Its most violating output is a labelling. Read as a ranking it is, from the top: negatives called positive, positives
called positive, negatives called negative, positives called negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.inputs import NotFiniteError, limit_of
from rankwise.method import Method
from rankwise.queries import FoundRanking, Queries, Solved


def solve(scores: NDArray[np.floating], queries: Queries, scale: float, method: Method) -> Solved:
    """Return J and Δ of each query, and the gradient of the sum of J."""
    if not (np.abs(scores) <= limit_of(scores)).all():
        raise NotFiniteError
    n_queries = queries.starts.shape[0] - 1
    n_pos, n_neg = queries.counts
    solved = Solved(np.zeros(n_queries), np.zeros(n_queries), n_pos, n_neg, np.zeros_like(scores))
    ranking = None
    for q in np.flatnonzero(np.minimum(n_pos, n_neg) > 0):
        part = slice(queries.starts[q], queries.starts[q + 1])
        own, relevant = scores[part], queries.relevant[part]
        y = np.where(relevant, 1.0, -1.0)
        solved.value[q], wrong = _violating(own, relevant, y, scale, method)
        solved.loss[q] = np.count_nonzero(wrong) / own.size
        solved.gradient[part] = np.where(wrong, -y / own.size, 0.0)
        if n_queries == 1:
            ranking = _as_ranking(own, relevant, wrong, solved.gradient)
    return solved._replace(ranking=ranking)


def weighted(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], weights: NDArray[np.float64], scale: float
) -> tuple[float, float, NDArray[np.float64]]:
    """Return Σ u·max(0, scale − y·s) with sample weights u, the sum of u over wrong samples, and the gradient."""
    y = np.where(relevant, 1.0, -1.0)
    margin = scale - y * scores
    wrong = margin > 0.0
    return float(margin[wrong] @ weights[wrong]), float(weights[wrong].sum()), np.where(wrong, -y * weights, 0.0)


def _violating(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], y: NDArray[np.float64], scale: float, method: Method
) -> tuple[float, NDArray[np.bool_]]:
    """Return J of one query, and which samples the most violating labelling gets wrong."""
    if method.name == "exhaustive":
        from rankwise.inference.exhaustive import best_labelling

        return best_labelling(scores.astype(np.float64), relevant, scale)
    margin = scale - y * scores
    wrong = margin > 0.0
    return float(margin[wrong].sum()) / scores.size, wrong


def _as_ranking(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], wrong: NDArray[np.bool_], gradient: NDArray[np.floating]
) -> FoundRanking:
    positives = np.flatnonzero(relevant)
    positives = positives[np.argsort(-scores[positives], kind="stable")]
    above = np.full(positives.size + 1, scores.size - positives.size)
    above[0] = 0
    called = positives.size - int(np.count_nonzero(wrong & relevant))  # positives that are called positive
    above[1 : called + 1] = np.count_nonzero(wrong & ~relevant)
    return FoundRanking(gradient, above, positives)
