"""How good a ranking is: average precision, NDCG, reciprocal rank, AUC, precision at k; by query, with intervals.

Samples of equal score are never ordered by chance: "ap", "ndcg" and "auc" agree with scikit-learn, "mrr" and
"precision" are expectations over the orders of the tied.
"""

from rankwise.metrics.bootstrap import Interval, bootstrap_interval, resampled
from rankwise.metrics.ranking import (
    METRICS,
    Metric,
    MetricLike,
    as_metric,
    auc,
    average_precision,
    ndcg,
    per_query,
    precision_at,
    reciprocal_rank,
)
from rankwise.metrics.scorer import RankingScorer, make_ranking_scorer

__all__ = [
    "METRICS",
    "Interval",
    "Metric",
    "MetricLike",
    "RankingScorer",
    "as_metric",
    "auc",
    "average_precision",
    "bootstrap_interval",
    "make_ranking_scorer",
    "ndcg",
    "per_query",
    "precision_at",
    "reciprocal_rank",
    "resampled",
]
