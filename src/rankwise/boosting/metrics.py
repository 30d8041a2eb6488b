"""Metrics for boosted trees: what rankwise.metrics says of validation data, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.boosting.data_sets import DataSets, QidLike
from rankwise.boosting.rows import read
from rankwise.inputs import check_known
from rankwise.metrics import MetricLike, as_metric, per_query
from rankwise.metrics.ranking import EMPTY

__all__ = ["RankMetric", "metric"]


class RankMetric:
    """What `metric` makes: a callable in the forms of LightGBM, its scikit-learn interface, and XGBoost."""

    def __init__(self, metric: MetricLike, qid: QidLike | None, empty: str) -> None:
        check_known("empty", empty, EMPTY)
        self.metric, self.empty = as_metric(metric), empty
        self._data_sets = DataSets(qid)

    def __repr__(self) -> str:
        return f"rankwise.boosting.metric({self.metric.name!r}, empty={self.empty!r})"

    def __call__(
        self, first: Any, second: Any, weight: Any = None, group: Any = None
    ) -> tuple[str, float, bool] | tuple[str, float]:
        """(name, value, True) for LightGBM, the last saying that higher is better; (name, value) for XGBoost."""
        rows = read(first, second, weight, group)
        data = self._data_sets.find(rows)
        values = per_query(self.metric, data.grouping.gather(rows.scores), data.grades, data.query, empty=self.empty)[1]
        judged = ~np.isnan(values)
        if not judged.any():
            raise ValueError(f"no query of this data set has a {self.metric.name}: none has a label above 0")
        weights = None if data.query_weight is None else data.query_weight[judged]
        value = float(np.average(values[judged], weights=weights))
        return (self.metric.name, value) if rows.in_pairs else (self.metric.name, value, True)


def metric(metric: MetricLike = "ndcg@10", *, qid: QidLike | None = None, empty: str = "skip") -> RankMetric:
    """A metric for LightGBM and XGBoost: the mean over queries, by their weights if there are any.

    "ndcg" and "ndcg@k" take gains 2^label − 1, as everywhere in rankwise, and "ap" takes labels above 0 as relevant.
    LightGBM is told that higher is better. XGBoost knows by name: of "ndcg", "auc", "precision"; for others pass
    maximize=True to `xgboost.train`.

    Parameters
    ----------
    metric : str or Metric
        "ndcg@10", "ap", "mrr", "auc", "precision@5", …
    qid : array-like of shape (n,), or a list of such, optional
        The query of each row, in any order; with several data sets a list of arrays of different lengths, by which they
        are told apart. Where it is not given, data sets need groups.
    empty : {"skip", "zero", "one", "error"}
        A query that the metric cannot judge is left out, counts as 0 or as 1, or is refused. LightGBM's own NDCG counts
        it as 1.

    Returns
    -------
    RankMetric
        For `lightgbm.train(feval=…)`, `LGBMRanker().fit(eval_metric=…)`, and `xgboost.train(custom_metric=…)`.

    Examples
    --------
    >>> metric("ap", qid=["b", "a", "b", "a"])([1, 0, 0, 1], [0.9, 0.2, 0.1, 0.1])
    ('ap', 0.75, True)
    """
    return RankMetric(metric, qid, empty)
