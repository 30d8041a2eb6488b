"""Metrics of rankings by query, with intervals: AP, NDCG, ERR, reciprocal rank, AUC, F₁, precision and recall at k.

Samples with equal scores are never ordered at random: "ap", "ndcg", "auc" and "f1" agree with scikit-learn, and "err",
"mrr", "precision" and "recall" are expectations over the orders of tied samples. `compare` tests whether two rankings
differ.
"""

from rankwise.metrics.ap import average_precision
from rankwise.metrics.auc import auc
from rankwise.metrics.base import Metric
from rankwise.metrics.bootstrap import Interval, bootstrap_interval, resampled
from rankwise.metrics.comparison import Comparison, compare
from rankwise.metrics.err import expected_reciprocal_rank
from rankwise.metrics.f1 import f_measure
from rankwise.metrics.mrr import reciprocal_rank
from rankwise.metrics.ndcg import ndcg
from rankwise.metrics.precision import precision_at, recall_at
from rankwise.metrics.registry import LOSSES, METRICS, LossLike, MetricLike, as_loss, as_metric, per_query, register
from rankwise.metrics.scorer import make_ranking_scorer

__all__ = [
    "LOSSES", "METRICS", "Comparison", "Interval", "LossLike", "Metric", "MetricLike", "as_loss", "as_metric", "auc",
    "average_precision", "bootstrap_interval", "compare", "expected_reciprocal_rank", "f_measure",
    "make_ranking_scorer", "ndcg", "per_query", "precision_at", "recall_at", "reciprocal_rank", "register", "resampled",
]  # fmt: skip
