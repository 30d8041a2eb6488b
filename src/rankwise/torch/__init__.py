"""Exact rank losses for PyTorch: average precision, NDCG and your own as the last line of a network, on any device.

Scores come in, a loss goes out: one query (n,), one a row (B, n), one a class (n, C) with dim=0, or ragged with qid.
The forward pass finds the most violating ranking, the backward pass returns its semi-gradient.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "rankwise.torch needs PyTorch, which is not installed: pip install 'rankwise[torch]'", name="torch"
    ) from None

from rankwise.torch import functional
from rankwise.torch.modules import APHingeLoss, DirectLoss, NDCGHingeLoss, RankHingeLoss, RetrievalLoss

__all__ = ["APHingeLoss", "DirectLoss", "NDCGHingeLoss", "RankHingeLoss", "RetrievalLoss", "functional"]
