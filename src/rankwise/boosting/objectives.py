"""Objectives for boosted trees: gradient and second derivative of a rank loss, summed over queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.boosting.data_sets import DataSet, DataSets, QidLike
from rankwise.boosting.rows import read
from rankwise.inputs import NotFiniteError, as_threads, check_known, not_finite
from rankwise.losses import NDCG, LossLike, as_loss
from rankwise.method import as_method
from rankwise.queries import Queries
from rankwise.smooth import as_smooth, as_width, error_driven_way, solve_smooth
from rankwise.solving import solve

__all__ = ["SURROGATES", "RankObjective", "objective"]

SURROGATES = ("smooth", "error-driven", "hinge")

_Floats = NDArray[np.floating]


class RankObjective:
    """What `objective` makes: a callable in the forms of LightGBM, its scikit-learn interface, and XGBoost."""

    def __init__(self, loss: LossLike, surrogate: str, width: float, qid: QidLike | None, n_threads: int) -> None:
        check_known("surrogate", surrogate, SURROGATES)
        self.surrogate, self.width, self.n_threads = surrogate, as_width(width), as_threads(n_threads)
        self._way = "smooth" if surrogate == "smooth" else error_driven_way(True)
        self.loss = as_loss(loss) if surrogate == "hinge" else as_smooth(loss, self._way)
        # Where a cut-off hides every document from the loss, this one is in its place.
        self._beyond = None if self.loss.k is None else NDCG(gain=self.loss.gain)
        self._data_sets = DataSets(qid)

    def __repr__(self) -> str:
        width = "" if self.surrogate == "hinge" else f", width={self.width:g}"
        return f"rankwise.boosting.objective({self.loss.name!r}, {self.surrogate!r}{width})"

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[_Floats, _Floats]:
        """Gradient and second derivative by row, of (predictions, data set) or (labels, predictions, weight, group)."""
        rows = read(first, second, weight, group)
        data = self._data_sets.find(rows)
        scores = np.ascontiguousarray(data.grouping.gather(rows.scores))
        try:
            gradient = self._gradient(scores, data)
        except NotFiniteError as error:
            raise not_finite(rows.scores) or error from None  # by its place as it was given
        gradient *= gradient.dtype.type(gradient.size / data.queries.sizes.size)
        if data.query_weight is not None:
            gradient *= data.query_weight[data.query]
        gradient = data.grouping.scatter(gradient)
        return gradient, np.abs(gradient)

    def _gradient(self, scores: _Floats, data: DataSet) -> _Floats:
        """Of the sum over queries, by row, each query's together."""
        gradient = self._solve(scores, data.queries, self.loss)
        if self._beyond is None:
            return gradient
        # A query's gradient adds up to 0, so that what is not 0 somewhere is above 0 somewhere.
        unseen = data.queries.can_rank & ~(np.maximum.reduceat(gradient, data.queries.starts[:-1]) > 0.0)
        if unseen.all():
            return self._solve(scores, data.queries, self._beyond)
        if unseen.any():
            rows = unseen[data.query]
            gradient[rows] = self._solve(scores[rows], data.part(unseen), self._beyond)
        return gradient

    def _solve(self, scores: _Floats, queries: Queries, loss: Any) -> _Floats:
        if self.surrogate == "hinge":
            return solve(scores, queries, loss, 1.0, as_method("auto", loss), self.n_threads).gradient
        return solve_smooth(scores, queries, loss, self.width, self.n_threads, self._way).gradient


def objective(
    loss: LossLike = "ndcg@30",
    surrogate: str = "smooth",
    *,
    width: float = 2.0,
    qid: QidLike | None = None,
    n_threads: int = 1,
) -> RankObjective:
    """An objective for LightGBM and XGBoost: a rank loss of queries of any size, by grades or binary labels.

    With Δ_q the surrogate of the loss of query q, w_q its weight, n rows and Q queries,

        g = (n/Q)·∂/∂s Σ_q w_q Δ_q,    h = |g|.

    So a leaf moves by at most the learning rate, and all the way if its rows agree; n/Q gives rows a gradient of the
    size that settings such as min_child_weight are made for, whatever the size of queries. Under a cut-off, a query
    whose gradient is 0 though it has something to rank, as at the start, where all scores tie, is given that of NDCG
    without cut-off.

    Parameters
    ----------
    loss : str or Loss
        "ndcg@30", "ndcg", "ap", "mrr@10", … or a loss of your own. To be judged by NDCG@10, train with a few more
        places than 10.
    surrogate : {"smooth", "error-driven", "hinge"}
        Which loss of scores stands for it: see `rankwise.smooth_loss`, `error_driven_loss`, `structured_hinge`.
    width : float
        Half the width of the ramp by which scores are compared; not used by the hinge.
    qid : array-like of shape (n,), optional
        The query of each row of the training data, in any order; where it is not given, data sets need groups.
    n_threads : int
        Threads for many queries, or for one large query; −1 for all processors.

    Returns
    -------
    RankObjective
        For `lightgbm.train({"objective": …})`, `LGBMRanker(objective=…)`, `LGBMRegressor(objective=…)`, and
        `xgboost.train(obj=…)`.

    Raises
    ------
    ValueError
        If an argument is unknown; and when it is called, if labels are not grades, or queries are missing.

    Examples
    --------
    >>> f = objective("ap", "error-driven", qid=[7, 3, 7, 3])
    >>> gradient, second = f([1, 0, 0, 1], [0.0, 0.5, 0.0, 0.5])
    >>> gradient.round(4).tolist(), second.round(4).tolist()
    ([-0.6667, 0.6667, 0.6667, -0.6667], [0.6667, 0.6667, 0.6667, 0.6667])
    """
    return RankObjective(loss, surrogate, width, qid, n_threads)
