"""Rank losses as functions of tensors. The same losses as modules are in `rankwise.torch`."""

from rankwise.torch.rank_sort import rank_sort_loss
from rankwise.torch.retrieval import retrieval_loss
from rankwise.torch.score_functions import direct_loss, structured_hinge
from rankwise.torch.soft_functions import error_driven_loss, smooth_loss

__all__ = [
    "direct_loss",
    "error_driven_loss",
    "rank_sort_loss",
    "retrieval_loss",
    "smooth_loss",
    "structured_hinge",
]
