"""rankwise: train models for the metric that they are judged by.

Exact loss-augmented inference, structured hinge and semi-gradient for average precision, NDCG and every QS-suitable
ranking loss (Mohapatra et al., CVPR 2018), faster than a sort.
"""

from typing import TYPE_CHECKING, Any

from rankwise.arguments import NotFiniteError
from rankwise.interleaving import Interleaving
from rankwise.metrics.ap import AveragePrecision
from rankwise.metrics.auc import AUC
from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss, NotQSSuitableError
from rankwise.metrics.mrr import ReciprocalRank
from rankwise.metrics.ndcg import NDCG
from rankwise.metrics.precision import PrecisionAt
from rankwise.metrics.registry import check_qs_suitable
from rankwise.metrics.zero_one import ZeroOne
from rankwise.queries import Queries, Solved
from rankwise.surrogates import (
    Direct,
    ErrorDriven,
    Hinge,
    PerQuery,
    Result,
    Smooth,
    Surrogate,
    error_driven_loss,
    evaluate,
    most_violating_ranking,
    ranking_loss,
    smooth_loss,
    structured_hinge,
)

if TYPE_CHECKING:
    from rankwise.latent.bags import Bags
    from rankwise.latent.latent_svm import LatentRankSVM, LatentRankSVMCV
    from rankwise.linear.linear_ranker import LinearRanker
    from rankwise.linear.rank_svm import RankSVM
    from rankwise.linear.rank_svm_cv import RankSVMCV
    from rankwise.models import load

__version__ = "0.2.0"

# Names of 0.2.0.
HingeResult = SmoothResult = Result
SmoothPerQuery = PerQuery

__all__ = [
    "AUC", "NDCG", "AveragePrecision", "Bags", "Direct", "DiscountedLoss", "ErrorDriven", "Hinge", "Interleaving",
    "LatentRankSVM", "LatentRankSVMCV", "LinearRanker", "Loss", "NotFiniteError", "NotQSSuitableError", "PerQuery",
    "PrecisionAt", "Queries", "RankSVM", "RankSVMCV", "ReciprocalRank", "Result", "Smooth", "Solved", "Surrogate",
    "ZeroOne", "check_qs_suitable", "error_driven_loss", "evaluate", "load", "most_violating_ranking", "ranking_loss",
    "smooth_loss", "structured_hinge",
]  # fmt: skip


# Imported at the first use, because these import Numba, scikit-learn or SciPy.
_LAZY = {
    "Bags": "rankwise.latent.bags",
    "LatentRankSVM": "rankwise.latent.latent_svm",
    "LatentRankSVMCV": "rankwise.latent.latent_svm",
    "LinearRanker": "rankwise.linear.linear_ranker",
    "RankSVM": "rankwise.linear.rank_svm",
    "RankSVMCV": "rankwise.linear.rank_svm_cv",
    "boosting": "rankwise.boosting",
    "dask": "rankwise.dask",
    "inference": "rankwise.inference",
    "io": "rankwise.io",
    "latent": "rankwise.latent",
    "load": "rankwise.models",
    "metrics": "rankwise.metrics",
    "torch": "rankwise.torch",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_LAZY[name])
    return module if _LAZY[name] == f"rankwise.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "__doc__", "__version__"})
