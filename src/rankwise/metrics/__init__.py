"""How good a ranking is, by query, with intervals: AP, NDCG, ERR, reciprocal rank, AUC, F₁, precision and recall at k.

Samples of equal score are never ordered by chance: "ap", "ndcg", "auc" and "f1" agree with scikit-learn, "err", "mrr",
"precision" and "recall" are expectations over the orders of the tied. `compare` tells two rankings apart.
"""

from rankwise.metrics.bootstrap import Interval, bootstrap_interval, resampled
from rankwise.metrics.comparison import Comparison, compare
from rankwise.metrics.functions import (
    auc,
    average_precision,
    expected_reciprocal_rank,
    f_measure,
    ndcg,
    precision_at,
    recall_at,
    reciprocal_rank,
)
from rankwise.metrics.ranking import METRICS, Metric, MetricLike, as_metric, per_query
from rankwise.metrics.scorer import RankingScorer, make_ranking_scorer

__all__ = [
    "METRICS",
    "Comparison",
    "Interval",
    "Metric",
    "MetricLike",
    "RankingScorer",
    "as_metric",
    "auc",
    "average_precision",
    "bootstrap_interval",
    "compare",
    "expected_reciprocal_rank",
    "f_measure",
    "make_ranking_scorer",
    "ndcg",
    "per_query",
    "precision_at",
    "recall_at",
    "reciprocal_rank",
    "resampled",
]
