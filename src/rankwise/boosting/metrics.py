"""Metrics for boosted trees: rankwise.metrics on validation data, for early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arguments import check_known
from rankwise.boosting.data_sets import DataSets, QidLike, read
from rankwise.documenting import documented
from rankwise.metrics import MetricLike, as_metric, per_query
from rankwise.metrics.base import EMPTY


@documented
class RankMetric:
    """Ranking metric for LightGBM and XGBoost, for early stopping and evaluation.

    Pass it to `lightgbm.train(feval=…)`, `LGBMRanker().fit(eval_metric=…)` or `xgboost.train(custom_metric=…)`. The
    metric is the mean over queries, weighted if the queries have weights. LightGBM is told that higher is better. To
    XGBoost, pass maximize=True unless the metric is "ndcg", "auc" or "precision", whose names it knows.

    Parameters
    ----------
    metric : str or Metric, default "ndcg@10"
        Metric to compute: a name, see `rankwise.metrics.METRICS`, or a `rankwise.metrics.Metric`.
    qid : array-like of shape (n_rows,) or list of them, optional
        Query of each row of the validation data, in any order; for several data sets, a list of arrays of different
        lengths, by which they are recognised. By default the queries are the groups of the data sets.
    {empty_metric}

    See Also
    --------
    objective : Creates an objective for training.

    Examples
    --------
    >>> metric("ap", qid=["b", "a", "b", "a"])([1, 0, 0, 1], [0.9, 0.2, 0.1, 0.1])
    ('ap', 0.75, True)
    """

    def __init__(self, metric: MetricLike = "ndcg@10", *, qid: QidLike | None = None, empty: str = "skip") -> None:
        check_known("empty", empty, EMPTY)
        self.metric, self.empty = as_metric(metric), empty
        self._data_sets = DataSets(qid)

    def __repr__(self) -> str:
        return f"rankwise.boosting.metric({self.metric.name!r}, empty={self.empty!r})"

    def __call__(
        self, first: Any, second: Any, weight: Any = None, group: Any = None
    ) -> tuple[str, float, bool] | tuple[str, float]:
        """Return (name, value, True) for LightGBM, where True means higher is better; (name, value) for XGBoost."""
        rows = read(first, second, weight, group)
        data = self._data_sets.find(rows)
        values = per_query(self.metric, data.grouping.gather(rows.scores), data.grades, data.query, empty=self.empty)[1]
        judged = ~np.isnan(values)
        if not judged.any():
            raise ValueError(
                f"{self.metric.name} cannot judge any query of this data set; pass queries with labels above 0"
            )
        weights = None if data.query_weight is None else data.query_weight[judged]
        value = float(np.average(values[judged], weights=weights))
        return (self.metric.name, value) if rows.in_pairs else (self.metric.name, value, True)


metric = RankMetric
