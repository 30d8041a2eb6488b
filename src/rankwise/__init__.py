"""rankwise: train models for the metric they are judged by.

Exact loss-augmented inference, structured hinge and semi-gradient for average precision, NDCG and every QS-suitable
ranking loss (Mohapatra et al., CVPR 2018), faster than a sort.
"""

from typing import Any

from rankwise.hinge import HingeResult, PerQuery, most_violating_ranking, ranking_loss, structured_hinge
from rankwise.interleaving import Interleaving
from rankwise.losses import (
    AUC,
    NDCG,
    AveragePrecision,
    DiscountedLoss,
    Loss,
    NotQSSuitableError,
    ReciprocalRank,
    StepLoss,
    ZeroOne,
    check_qs_suitable,
)

__version__ = "0.1.0"

__all__ = [
    "AUC",
    "NDCG",
    "AveragePrecision",
    "DiscountedLoss",
    "HingeResult",
    "Interleaving",
    "Loss",
    "NotQSSuitableError",
    "PerQuery",
    "ReciprocalRank",
    "StepLoss",
    "ZeroOne",
    "check_qs_suitable",
    "most_violating_ranking",
    "ranking_loss",
    "structured_hinge",
]


def __getattr__(name: str) -> Any:
    if name == "inference":  # compiled: imported when it is first used
        import importlib

        return importlib.import_module("rankwise.inference")
    raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
