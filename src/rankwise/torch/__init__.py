"""Exact rank losses for PyTorch: average precision, NDCG and your own as the last line of a network, on any device.

Scores come in, a loss goes out: one query (n,), one a row of (B, n) with dim=1, one a class of (n, C) with dim=0, or
ragged with qid.
The forward pass finds the most violating ranking, the backward pass returns its semi-gradient.
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
from rankwise.torch.detectors import ALRPLoss, RankSortLoss
from rankwise.torch.embedding_memory import EmbeddingMemory
from rankwise.torch.layerwise.last_layer import LastLayer, fit_last_layer
from rankwise.torch.layerwise.lwsvm import LWSVM
from rankwise.torch.layerwise.network import PLCNN
from rankwise.torch.memory import IndexedDataset, ScoreMemory
from rankwise.torch.modules import (
    APHingeLoss,
    DirectLoss,
    ErrorDrivenLoss,
    NDCGHingeLoss,
    RankHingeLoss,
    RetrievalLoss,
    SmoothRankLoss,
)

__all__ = [
    "LWSVM",
    "PLCNN",
    "ALRPLoss",
    "APHingeLoss",
    "DirectLoss",
    "EmbeddingMemory",
    "ErrorDrivenLoss",
    "IndexedDataset",
    "LastLayer",
    "NDCGHingeLoss",
    "RankHingeLoss",
    "RankSortLoss",
    "RetrievalLoss",
    "ScoreMemory",
    "SmoothRankLoss",
    "fit_last_layer",
    "functional",
]
