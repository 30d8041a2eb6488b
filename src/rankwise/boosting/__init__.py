"""Ranking losses as objectives for LightGBM and XGBoost, and ranking metrics for early stopping.

The same objects work with LightGBM's native interface, its scikit-learn interface and `xgboost.train`. Neither library
is imported here.
"""

from rankwise.boosting.metrics import RankMetric, metric
from rankwise.boosting.objectives import SURROGATES, RankObjective, objective

__all__ = ["SURROGATES", "RankMetric", "RankObjective", "metric", "objective"]
