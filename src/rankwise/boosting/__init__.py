"""Rank losses as objectives, and ranking metrics for early stopping, of LightGBM and XGBoost.

One object each serves LightGBM's native and scikit-learn forms and `xgboost.train`. Neither library is imported here.
"""

from rankwise.boosting.metrics import RankMetric, metric
from rankwise.boosting.objectives import SURROGATES, RankObjective, objective

__all__ = ["SURROGATES", "RankMetric", "RankObjective", "metric", "objective"]
