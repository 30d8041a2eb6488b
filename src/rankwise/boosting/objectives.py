"""Objectives for boosted trees: gradient and second derivative of a ranking loss, summed over queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import NotFiniteError, as_threads, check_known, not_finite
from rankwise.boosting.data_sets import DataSet, DataSets, QidLike, read
from rankwise.documenting import documented
from rankwise.metrics.ndcg import NDCG
from rankwise.metrics.registry import LossLike
from rankwise.queries import Queries, as_queries, part_of
from rankwise.surrogates import SURROGATES as KNOWN
from rankwise.surrogates import Surrogate, as_surrogate
from rankwise.surrogates.softened import as_width

SURROGATES = tuple(name for name, surrogate in KNOWN.items() if surrogate.takes_grades)

_Floats = NDArray[np.floating]


@documented
class RankObjective:
    """Ranking objective for LightGBM and XGBoost.

    Pass it to `lightgbm.train({"objective": …})`, `LGBMRanker(objective=…)`, `LGBMRegressor(objective=…)` or
    `xgboost.train(obj=…)`, with grades or binary labels. For the surrogates Δ_q and weights w_q of Q queries of n rows:

        g = (n/Q)·∂/∂s Σ_q w_q Δ_q,    h = |g|

    Parameters
    ----------
    loss : str or Loss, default "ndcg@30"
        Ranking loss to minimise: "ndcg@30", "ndcg", "ap", "mrr@10" and so on, or a `Loss` of your own. If you are
        judged by NDCG@10, train with a somewhat larger cut-off than 10.
    surrogate : {"smooth", "error-driven", "hinge"} or Surrogate, default "smooth"
        Function of the scores that replaces the ranking loss, which is not differentiable.
    width : float, default 2.0
        Half the width of the ramp by which scores are compared. A larger width gives smoother gradients. "hinge" does
        not use it.
    qid : array-like of shape (n_rows,), optional
        Query of each row of the training data, in any order. By default the queries are the groups of the data set.
    {n_threads}

    See Also
    --------
    metric : Creates a metric for early stopping.
    rankwise.smooth_loss : The smooth surrogate.
    rankwise.error_driven_loss : The error-driven surrogate.
    rankwise.structured_hinge : The structured hinge.

    Notes
    -----
    Because h = |g|, a leaf moves by at most the learning rate, and by all of it if its rows agree. The factor n/Q gives
    rows gradients of the size for which settings such as min_child_weight are made. A query whose gradient is 0 because
    of the cut-off, although it has something to rank, gets the gradient of NDCG without cut-off.

    Examples
    --------
    >>> f = objective("ap", "error-driven", qid=[7, 3, 7, 3])
    >>> gradient, second = f([1, 0, 0, 1], [0.0, 0.5, 0.0, 0.5])
    >>> gradient.round(4).tolist(), second.round(4).tolist()
    ([-0.6667, 0.6667, 0.6667, -0.6667], [0.6667, 0.6667, 0.6667, 0.6667])
    """

    def __init__(
        self,
        loss: LossLike = "ndcg@30",
        surrogate: str | Surrogate = "smooth",
        *,
        width: float = 2.0,
        qid: QidLike | None = None,
        n_threads: int = 1,
    ) -> None:
        if not isinstance(surrogate, Surrogate):
            check_known("surrogate", surrogate, SURROGATES)
            surrogate = as_surrogate(surrogate, width=as_width(width))
        self.surrogate, self.n_threads = surrogate, as_threads(n_threads)
        self.loss = self.surrogate.accepts(loss)
        # If a cut-off hides all relevant documents of a query from the loss, this loss replaces it.
        self._beyond = None if self.loss.k is None else NDCG(gain=self.loss.gain)
        self._data_sets = DataSets(qid)

    def __repr__(self) -> str:
        width = "" if self.surrogate.width is None else f", width={self.surrogate.width:g}"
        return f"rankwise.boosting.objective({self.loss.name!r}, {self.surrogate.name!r}{width})"

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[_Floats, _Floats]:
        """Return gradient and second derivative by row, for (predictions, data set) or (labels, predictions, …)."""
        rows = read(first, second, weight, group)
        data = self._data_sets.find(rows)
        scores = np.ascontiguousarray(data.grouping.gather(rows.scores))
        try:
            gradient = self._gradient(scores, data)
        except NotFiniteError as error:
            raise not_finite(rows.scores) or error from None  # names the row as it was passed
        gradient *= gradient.dtype.type(gradient.size / data.queries.sizes.size)
        if data.query_weight is not None:
            gradient *= data.query_weight[data.query]
        gradient = data.grouping.scatter(gradient)
        return gradient, np.abs(gradient)

    def _gradient(self, scores: _Floats, data: DataSet) -> _Floats:
        """Return the gradient of the sum over queries, by row, query after query."""
        gradient = self._solve(scores, data.queries, self.loss)
        if self._beyond is None:
            return gradient
        # The gradient of a query adds up to 0, so it is above 0 somewhere unless it is 0 everywhere.
        unseen = data.queries.can_rank & ~(np.maximum.reduceat(gradient, data.queries.starts[:-1]) > 0.0)
        if unseen.all():
            return self._solve(scores, data.queries, self._beyond)
        if unseen.any():
            rows, starts = part_of(data.queries, unseen)
            own = as_queries(data.queries.truth[rows], starts)
            gradient[rows] = self._solve(scores[rows], own, self._beyond)
        return gradient

    def _solve(self, scores: _Floats, queries: Queries, loss: Any) -> _Floats:
        return self.surrogate.solve(scores, queries, loss, self.n_threads).gradient


objective = RankObjective
