"""The loss Δ of the ranking that scores induce: to `evaluate` a surrogate like others, only without a gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import NotFiniteError, check_known, limit_of
from rankwise.documenting import documented
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike
from rankwise.queries import Queries, Solved
from rankwise.surrogates.base import Scores, Surrogate, evaluate


@documented
def ranking_loss(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: LossLike = "ap",
    *,
    qid: ArrayLike | None = None,
    ties: str = "worst",
    empty: str = "zero",
) -> float:
    """Compute the loss Δ of the ranking that the scores induce.

    Δ is, for example, 1 − AP. The structured hinge is never less than Δ (with scale=1). With grades, Δ = Σ_l α_l Δ_l is
    a weighted mean over the grades l as thresholds: graded NDCG for "ndcg", Robertson's graded AP for "ap". For
    "zero-one", Δ is the fraction of samples on the wrong side of 0.

    {arguments}

    Returns
    -------
    float
        The loss, or its mean over queries.

    See Also
    --------
    structured_hinge : A convex upper bound of the loss, with a gradient.
    metrics.average_precision : The metric AP, with ties averaged.

    Examples
    --------
    >>> round(ranking_loss([0.9, 0.8, 0.7, 0.1], [True, False, True, False], "ap"), 4)
    0.1667
    """
    check_known("ties", ties, ("worst", "best"))
    return evaluate(_Itself(ties == "worst"), scores, relevant, loss, qid=qid, empty=empty).value


@dataclass(frozen=True)
class _Itself(Surrogate):
    """Δ of the ranking by scores. worst: whether ties count as misranked."""

    worst: bool

    def solve_binary(self, scores: Scores, queries: Queries, loss: Loss, n_threads: int = 1) -> Solved:
        if not (np.abs(scores) <= limit_of(scores)).all():
            raise NotFiniteError
        value, starts = np.zeros(queries.sizes.size), queries.starts.tolist()
        for q in np.flatnonzero(queries.can_rank).tolist():
            own = slice(starts[q], starts[q + 1])
            value[q] = self._of_one(scores[own], queries.relevant[own], loss)
        return Solved(value, value, np.zeros_like(scores))

    def _of_one(self, scores: Scores, relevant: NDArray[np.bool_], loss: Loss) -> float:
        if not isinstance(loss, DiscountedLoss):
            right = np.where(relevant, scores, -scores)
            return float(np.mean(right <= 0.0 if self.worst else right < 0.0))
        pos, neg = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
        above = neg.size - np.searchsorted(neg, pos, side="left" if self.worst else "right")
        return float(loss.of_counts(above, neg.size))
