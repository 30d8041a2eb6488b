"""The 0-1 loss of labels, and its structured hinge: a hinge per sample, in plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import NotFiniteError, limit_of
from rankwise.documenting import documented
from rankwise.metrics.loss import Loss, NotQSSuitableError
from rankwise.metrics.thresholds import sums_of
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


def solve_labels(scores: NDArray[np.floating], queries: Queries, scale: float) -> Solved:
    """Solve the structured hinge of every query: the mean hinge of its samples."""
    if not (np.abs(scores) <= limit_of(scores)).all():
        raise NotFiniteError
    sizes = queries.sizes
    y, n = np.where(queries.relevant, 1.0, -1.0), np.repeat(np.where(queries.can_rank, sizes, np.inf), sizes)
    margin = scale - y * scores
    wrong = margin > 0.0
    value, loss = (sums_of(part / n, sizes) for part in (np.maximum(margin, 0.0), wrong))
    gradient = np.where(wrong & (n < np.inf), -y / n, 0.0)
    return Solved(value, loss, gradient.astype(scores.dtype, copy=False))
