"""The 0-1 loss of labels, and its structured hinge: a hinge per sample, in plain NumPy.

    J = (1/n) Σ max(0, scale − y·s),   y = ±1

Its most violating output is a labelling. Read as a ranking it is, from the top: negatives called positive, positives
called positive, negatives called negative, positives called negative.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.documenting import documented
from rankwise.metrics.base import FloatArray
from rankwise.metrics.loss import Loss, NotQSSuitableError
from rankwise.queries import FoundRanking, Queries, Solved

__all__ = ["ZeroOne", "solve_labels", "weighted_hinge"]


@documented
class ZeroOne(Loss):
    """Loss 0-1, the fraction of samples with the wrong label. Its name is "zero-one".

    It is decomposable: its output is a labelling, not a ranking, and its structured hinge is the mean hinge of the
    samples, with y = ±1:

        J = (1/n) Σ max(0, scale − y·s)

    The paper compares ranking losses with it.

    See Also
    --------
    structured_hinge : The structured hinge of this or another loss.

    Notes
    -----
    As an interleaving, the most violating labelling reads, from the top: negatives called positive, positives called
    positive, negatives called negative, positives called negative.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.5, -0.2, 0.3, -1.0], [True, True, False, False], rw.ZeroOne())
    0.5
    """

    name = "zero-one"
    judges = False
    learns_intercept = True
    of_ties = None  # type: ignore[assignment]  # it has no value for a ranking without scores

    def __init__(self) -> None:
        super().__init__()

    def of_scores(self, scores: NDArray[np.floating], relevant: NDArray[np.bool_], worst: bool) -> float:
        y = np.where(relevant, 1.0, -1.0)
        return float(np.mean(y * scores <= 0.0 if worst else y * scores < 0.0))

    @property
    def qs_suitable(self) -> bool | None:
        return False

    def check(self, n_pos: int, n_neg: int) -> None:
        raise NotQSSuitableError(
            f"{self.name} breaks (C1): it depends on each sample's label, not on how positives and negatives "
            "interleave; it is a sum over samples and needs no ranking method, use method='auto'"
        )


def solve_labels(scores: NDArray[np.floating], queries: Queries, scale: float, exhaustive: bool) -> Solved:
    """Solve the structured hinge of every query, the mean hinge of its samples; exhaustive: try all labellings."""
    if not (np.abs(scores) <= limit_of(scores)).all():
        raise NotFiniteError
    n_queries = queries.starts.shape[0] - 1
    n_pos, n_neg = queries.counts
    solved = Solved(np.zeros(n_queries), np.zeros(n_queries), n_pos, n_neg, np.zeros_like(scores))
    ranking = None
    for q in np.flatnonzero(np.minimum(n_pos, n_neg) > 0):
        own = slice(queries.starts[q], queries.starts[q + 1])
        s, relevant = scores[own], queries.relevant[own]
        y = np.where(relevant, 1.0, -1.0)
        solved.value[q], wrong = _violating(s, relevant, y, scale, exhaustive)
        solved.loss[q] = np.count_nonzero(wrong) / s.size
        solved.gradient[own] = np.where(wrong, -y / s.size, 0.0)
        if n_queries == 1:
            ranking = _as_ranking(s, relevant, wrong, solved.gradient)
    return solved._replace(ranking=ranking)


def weighted_hinge(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], weights: FloatArray, scale: float
) -> tuple[float, float, FloatArray]:
    """Return Σ u·max(0, scale − y·s) with sample weights u, the sum of u over wrong samples, and the gradient."""
    y = np.where(relevant, 1.0, -1.0)
    margin = scale - y * scores
    wrong = margin > 0.0
    return float(margin[wrong] @ weights[wrong]), float(weights[wrong].sum()), np.where(wrong, -y * weights, 0.0)


def _violating(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], y: FloatArray, scale: float, exhaustive: bool
) -> tuple[float, NDArray[np.bool_]]:
    """Return J of one query, and which samples the most violating labelling gets wrong."""
    if exhaustive:
        from rankwise.kernels.published.exhaustive import best_labelling

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
