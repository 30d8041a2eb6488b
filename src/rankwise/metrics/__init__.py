"""Metrics of rankings by query, with intervals: AP, NDCG, ERR, reciprocal rank, AUC, F₁, precision and recall at k.

Samples with equal scores are never ordered at random: "ap", "ndcg", "auc" and "f1" agree with scikit-learn, and "err",
"mrr", "precision" and "recall" are expectations over the orders of tied samples. `compare` tests whether two rankings
differ.
"""

from rankwise.metrics.bootstrap import Interval, bootstrap_interval, resampled
from rankwise.metrics.comparison import Comparison, compare
from rankwise.metrics.functions import auc, average_precision, f_measure, precision_at, recall_at, reciprocal_rank
from rankwise.metrics.graded_functions import expected_reciprocal_rank, ndcg
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
