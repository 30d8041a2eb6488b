"""Rank losses as functions of tensors. The same losses as modules are in `rankwise.torch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from rankwise.metrics.registry import LossLike
from rankwise.surrogates import Direct, ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.torch import modules
from rankwise.torch.arguments import Given, Options, checked, function_of
from rankwise.torch.batches import Batch, loss_of_batch
from rankwise.torch.objective import RankSort, posed
from rankwise.torch.rank_sort import RankSortLoss, rank_sort_of_batch
from rankwise.torch.retrieval import Retrieval, RetrievalLoss, retrieve

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "direct_loss",
    "error_driven_loss",
    "rank_loss",
    "rank_sort_loss",
    "retrieval_loss",
    "smooth_loss",
    "structured_hinge",
]


def _of_scores(
    scores: Tensor,
    target: Tensor,
    *described: Any,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    index: Tensor | None = None,
    memory: Any = None,
    **options: Any,
) -> Tensor:
    """The loss described as for `posed`; a surrogate by its class, so that PyTorch's compiler does not see it made."""
    return loss_of_batch(Batch(scores, target, mask, qid, index), posed(*described), checked(**options), memory)


@function_of(modules.RankLoss)
def rank_loss(
    scores: Tensor,
    target: Tensor,
    metric: LossLike = "ap",
    surrogate: str | Surrogate = modules.HINGE,
    **given: Unpack[Given],
) -> Tensor:
    """Compute a ranking loss that any surrogate makes trainable."""
    return _of_scores(scores, target, metric, surrogate, **given)


@function_of(modules.RankHingeLoss)
def structured_hinge(
    scores: Tensor, target: Tensor, loss: LossLike = "ap", *, scale: float = 1.0, **given: Unpack[Given]
) -> Tensor:
    """Compute the structured hinge of a rank loss."""
    return _of_scores(scores, target, loss, Hinge, scale, **given)


@function_of(modules.SmoothRankLoss)
def smooth_loss(
    scores: Tensor, target: Tensor, loss: LossLike = "ap", *, width: float = 1.0, **given: Unpack[Given]
) -> Tensor:
    """Compute a rank loss with softened comparisons, and its true gradient."""
    return _of_scores(scores, target, loss, Smooth, width, **given)


@function_of(modules.ErrorDrivenLoss)
def error_driven_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    interpolate: bool = True,
    **given: Unpack[Given],
) -> Tensor:
    """Compute the error-driven loss: AP-loss of Chen et al. (2019) for loss="ap"."""
    return _of_scores(scores, target, loss, ErrorDriven, width, interpolate, **given)


@function_of(modules.DirectLoss)
def direct_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    epsilon: float = 1.0,
    update: str = "positive",
    **given: Unpack[Given],
) -> Tensor:
    """Compute a rank loss, with the gradient of direct loss minimisation (Song et al., 2016)."""
    return _of_scores(scores, target, loss, Direct, modules.signed(epsilon, update), **given)


@function_of(RankSortLoss)
def rank_sort_loss(
    scores: Tensor,
    target: Tensor,
    *,
    width: float = 0.5,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    **options: Unpack[Options],
) -> tuple[Tensor, Tensor]:
    """Compute the RankSort loss of a detector (Oksuz et al., ICCV 2021)."""
    return rank_sort_of_batch(Batch(scores, target, mask, qid), posed("ap", RankSort, width), checked(**options))


@function_of(RetrievalLoss)
def retrieval_loss(
    embeddings: Tensor,
    labels: Tensor,
    loss: LossLike = "ap",
    *,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """Compute a rank loss with every embedding as a query, for retrieval and metric learning."""
    return retrieve(embeddings, labels, reference, reference_labels, loss, Retrieval(**options))
