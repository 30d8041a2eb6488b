"""Exact rank losses for PyTorch, on any device: average precision, NDCG, and your own.

A loss takes scores: one query (n,), one query per row of (B, n) with dim=1, one query per class of (n, C) with dim=0,
or queries of different lengths in flat scores with qid. For networks that were trained with cross-entropy, start with
`ErrorDrivenLoss` and a `ScoreMemory`; docs/torch.md compares the losses.
"""

from rankwise.extras import install_hint as _install_hint

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        f"rankwise.torch needs PyTorch, which is not installed: {_install_hint('torch')}", name="torch"
    ) from None

from rankwise.torch import functional
from rankwise.torch.memory import IndexedDataset, ScoreMemory
from rankwise.torch.modules import (
    APHingeLoss,
    DirectLoss,
    ErrorDrivenLoss,
    NDCGHingeLoss,
    RankHingeLoss,
    RankLoss,
    SmoothRankLoss,
)
from rankwise.torch.rank_sort import RankSortLoss
from rankwise.torch.retrieval import RetrievalLoss

__all__ = [
    "APHingeLoss",
    "DirectLoss",
    "ErrorDrivenLoss",
    "IndexedDataset",
    "NDCGHingeLoss",
    "RankHingeLoss",
    "RankLoss",
    "RankSortLoss",
    "RetrievalLoss",
    "ScoreMemory",
    "SmoothRankLoss",
    "functional",
]
