"""The 0-1 loss of labels, and its structured hinge: a hinge per sample, in plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.documenting import documented
from rankwise.metrics.loss import Loss, NotQSSuitableError
from rankwise.queries import Queries, Solved


@documented
class ZeroOne(Loss):
    """Loss 0-1, the fraction of samples with the wrong label. Its name is "zero-one".

    Its output is a labelling, not a ranking, and its structured hinge is the mean hinge of the samples, with y = ±1:

        J = (1/n) Σ max(0, scale − y·s)

    The paper compares ranking losses with it.

    See Also
    --------
    structured_hinge : The structured hinge of this or another loss.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranking_loss([0.5, -0.2, 0.3, -1.0], [True, True, False, False], rw.ZeroOne())
    0.5
    """

    name = "zero-one"
    judges_labels = True
    of_ties = None  # type: ignore[assignment]  # it has no value for a ranking without scores

    def __init__(self) -> None:
        super().__init__()

    def check(self, n_pos: ArrayLike, n_neg: ArrayLike) -> None:
        raise NotQSSuitableError(
            f"{self.name} breaks (C1): it depends on each sample's label, not on how positives and negatives "
            "interleave; it is a sum over samples and needs no ranking method, use method='auto'"
        )


def solve_labels(scores: NDArray[np.floating], queries: Queries, scale: float, exhaustive: bool) -> Solved:
    """Solve the structured hinge of every query, the mean hinge of its samples; exhaustive: try all labellings."""
    if not (np.abs(scores) <= limit_of(scores)).all():
        raise NotFiniteError
    value, loss = np.zeros((2, queries.sizes.size))
    gradient = np.zeros_like(scores)
    for q in np.flatnonzero(queries.can_rank):
        own = slice(queries.starts[q], queries.starts[q + 1])
        s, y = scores[own], np.where(queries.relevant[own], 1.0, -1.0)
        if exhaustive:
            from rankwise.kernels.published.exhaustive import best_labelling

            value[q], wrong = best_labelling(s.astype(np.float64), queries.relevant[own], scale)
        else:
            margin = scale - y * s
            wrong = margin > 0.0
            value[q] = margin[wrong].sum() / s.size
        loss[q] = np.count_nonzero(wrong) / s.size
        gradient[own] = np.where(wrong, -y / s.size, 0.0)
    return Solved(value, loss, gradient)
