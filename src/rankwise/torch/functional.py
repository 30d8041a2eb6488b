"""Rank losses as functions of tensors. The same losses as modules are in `rankwise.torch`, with their formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from rankwise.metrics.registry import LossLike
from rankwise.surrogates import Direct, ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.surrogates.rank_sort import RankSort
from rankwise.torch import modules
from rankwise.torch.arguments import Asked, Given, Options, checked, takes_also
from rankwise.torch.batches import Batch, loss_of_batch
from rankwise.torch.objective import posed
from rankwise.torch.rank_sort import rank_sort_of_batch
from rankwise.torch.retrieval import Retrieval, retrieve

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

_of_all = takes_also(modules.RankLoss.forward, Asked)


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


@_of_all
def rank_loss(
    scores: Tensor,
    target: Tensor,
    metric: LossLike = "ap",
    surrogate: str | Surrogate = modules.HINGE,
    **given: Unpack[Given],
) -> Tensor:
    """Compute a ranking loss that any surrogate makes trainable.

    {torch_function}

    See Also
    --------
    rankwise.torch.RankLoss : The same loss as a module.

    {torch_examples}
    >>> round(rwt.functional.rank_loss(scores, target, "mrr", "smooth").item(), 4)
    0.5556
    """
    return _of_scores(scores, target, metric, surrogate, **given)


@_of_all
def structured_hinge(
    scores: Tensor, target: Tensor, loss: LossLike = "ap", *, scale: float = 1.0, **given: Unpack[Given]
) -> Tensor:
    """Compute the structured hinge of a rank loss.

    {torch_function}

    See Also
    --------
    rankwise.torch.RankHingeLoss : The same loss as a module.

    {torch_examples}
    >>> rwt.functional.structured_hinge(scores, target).item()
    2.25
    """
    return _of_scores(scores, target, loss, Hinge, scale, **given)


@_of_all
def smooth_loss(
    scores: Tensor, target: Tensor, loss: LossLike = "ap", *, width: float = 1.0, **given: Unpack[Given]
) -> Tensor:
    """Compute a rank loss with softened comparisons, and its true gradient.

    {torch_function}

    See Also
    --------
    rankwise.torch.SmoothRankLoss : The same loss as a module.

    {torch_examples}
    >>> round(rwt.functional.smooth_loss(scores, target, "ndcg", width=0.5).item(), 4)
    0.3491
    """
    return _of_scores(scores, target, loss, Smooth, width, **given)


@_of_all
def error_driven_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    interpolate: bool = True,
    **given: Unpack[Given],
) -> Tensor:
    """Compute the error-driven loss: AP-loss of Chen et al. (2019) for loss="ap".

    {torch_function}

    See Also
    --------
    rankwise.torch.ErrorDrivenLoss : The same loss as a module.

    {torch_examples}
    >>> rwt.functional.error_driven_loss(scores, target, width=0.5).item()
    0.5
    """
    return _of_scores(scores, target, loss, ErrorDriven, width, interpolate, **given)


@_of_all
def direct_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    epsilon: float = 1.0,
    update: str = "positive",
    **given: Unpack[Given],
) -> Tensor:
    """Compute a rank loss, with the gradient of direct loss minimisation (Song et al., 2016).

    {torch_function}

    See Also
    --------
    rankwise.torch.DirectLoss : The same loss as a module.

    {torch_examples}
    >>> rwt.functional.direct_loss(scores, target, epsilon=4.0).item()
    0.5
    """
    return _of_scores(scores, target, loss, Direct, modules.signed(epsilon, update), **given)


@takes_also(Asked, without="dim")
def rank_sort_loss(
    scores: Tensor,
    target: Tensor,
    *,
    width: float = 0.5,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    **options: Unpack[Options],
) -> tuple[Tensor, Tensor]:
    """Compute the RankSort loss of a detector (Oksuz et al., ICCV 2021).

    {rank_sort_function}

    See Also
    --------
    rankwise.torch.RankSortLoss : The same loss as a module.

    {rank_sort_examples}
    >>> ranking, sorting = rwt.functional.rank_sort_loss(scores, quality)
    >>> round(ranking.item(), 4), round(sorting.item(), 4)
    (0.2, 0.1667)
    """
    return rank_sort_of_batch(Batch(scores, target, mask, qid), posed("ap", RankSort, width), checked(**options))


@takes_also(Retrieval)
def retrieval_loss(
    embeddings: Tensor,
    labels: Tensor,
    loss: LossLike = "ap",
    *,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """Compute a rank loss with every embedding as a query, for retrieval and metric learning.

    {retrieval_function}

    See Also
    --------
    rankwise.torch.RetrievalLoss : The same loss as a module.

    {retrieval_examples}
    >>> round(rwt.functional.retrieval_loss(embeddings, labels).item(), 4)
    0.1667
    """
    return retrieve(embeddings, labels, reference, reference_labels, loss, Retrieval(**options))
