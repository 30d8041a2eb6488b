"""Rank losses as functions of tensors. The same losses as modules are in `rankwise.torch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankwise.arguments import check_known, is_number
from rankwise.metrics.registry import LossLike
from rankwise.surrogates import Direct, ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.torch.arguments import Gather, Given, takes_also
from rankwise.torch.batches import Batch, loss_of_batch
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.objective import RankSort, posed
from rankwise.torch.retrieval import retrieval_loss

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

HINGE = Hinge()


@takes_also(loss_of_batch)
def rank_loss(
    scores: Tensor,
    target: Tensor,
    metric: LossLike = "ap",
    surrogate: str | Surrogate = HINGE,
    *,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    index: Tensor | None = None,
    memory: ScoreMemory | None = None,
    dim: int | None = None,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
) -> Tensor:
    """
    Compute a surrogate of a ranking loss.

    Parameters
    ----------
    {torch_scores}
    {torch_target}
    metric : str or Loss, default "ap"
        What rankings are judged by: a name such as "ap", "ndcg", "ndcg@10", "mrr", "auc" or "f1", or a `rankwise.Loss`.
    surrogate : str or Surrogate, default Hinge()
        How it becomes trainable: `rankwise.Hinge`, `rankwise.Smooth`, `rankwise.ErrorDriven`, `rankwise.Direct`, or a
        `rankwise.Surrogate` of your own, which runs in the core on every device.
    {torch_tensors}
    {torch_options}

    Returns
    -------
    {torch_value}

    Raises
    ------
    {torch_raises}

    Warns
    -----
    UserWarning
        If dim=0 ranks a batch of a single sample, such as the last batch of a DataLoader. All its queries are empty.

    See Also
    --------
    rankwise.torch.RankLoss : The same loss as a module.
    rankwise.evaluate : The same for NumPy arrays.

    Notes
    -----
    The backward pass returns the gradient of the surrogate: a derivative, a semi-gradient or an update.

    Examples
    --------
    >>> import torch, rankwise as rw
    >>> from rankwise.torch.functional import rank_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = rank_loss(scores, torch.tensor([0, 1, 0, 1]), "ndcg", rw.Smooth(width=0.5))
    >>> value.backward()
    >>> round(value.item(), 4)
    0.3491
    """
    batch = Batch(scores, target, mask, qid, index)
    return loss_of_batch(
        batch, posed(metric, surrogate), memory, dim=dim, ignore_index=ignore_index, empty=empty, reduction=reduction,
        gather=gather, backend=backend,
    )  # fmt: skip


def _solved(
    scores: Tensor,
    target: Tensor,
    loss: LossLike,
    surrogate: type[Surrogate],
    *parameters: float,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    index: Tensor | None = None,
    memory: ScoreMemory | None = None,
    **options: Unpack[Given],
) -> Tensor:
    """`rank_loss` of a surrogate with these parameters, which PyTorch's compiler does not see being made."""
    return loss_of_batch(
        Batch(scores, target, mask, qid, index), posed(loss, surrogate, *parameters), memory, **options
    )


@takes_also(rank_loss)
def structured_hinge(
    scores: Tensor, target: Tensor, loss: LossLike = "ap", *, scale: float = 1.0, **given: Unpack[Given]
) -> Tensor:
    """
    Compute the structured hinge of a rank loss.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*)

    Δ(R*, R) is the loss of a ranking R against a perfect ranking R*, and F(R) says how well R agrees with the scores.
    The maximum is attained by the most violating ranking, which is found exactly. J is convex in the scores and an
    upper bound on scale·Δ of the ranking by scores. With grades, J = Σ_l α_l J_l over thresholds, as in
    `rankwise.structured_hinge`.

    Parameters
    ----------
    {torch_scores}
    {torch_target}
    {torch_loss}
    {torch_scale}
    {torch_tensors}
    {torch_options}

    Returns
    -------
    {torch_value}

    Raises
    ------
    {torch_raises}

    See Also
    --------
    rankwise.torch.RankHingeLoss : The same loss as a module.
    error_driven_loss : Bounded updates, for fine-tuning and for noisy labels.
    rankwise.structured_hinge : The same for NumPy arrays.

    Notes
    -----
    The backward pass returns the semi-gradient: the gradient of J with the most violating ranking held fixed.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import structured_hinge
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = structured_hinge(scores, torch.tensor([0, 1, 0, 1]))
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.tolist()
    (2.25, [1.0, -0.5, 0.5, -1.0])
    """
    return _solved(scores, target, loss, Hinge, scale, **given)


@takes_also(rank_loss)
def smooth_loss(
    scores: Tensor, target: Tensor, loss: LossLike = "ap", *, width: float = 1.0, **given: Unpack[Given]
) -> Tensor:
    """
    Compute a rank loss with softened comparisons, and its true gradient.

        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)),  c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1)

    c_k is a soft count of the negatives j above the k-th positive. The loss is continuous and bounded, but not convex.
    See `rankwise.smooth_loss` for w, D and C, and for grades.

    Parameters
    ----------
    {torch_scores}
    {torch_target}
    {torch_loss}
    {torch_width}
    {torch_tensors}
    {torch_options}

    Returns
    -------
    {torch_value}

    Raises
    ------
    {torch_raises}

    See Also
    --------
    rankwise.torch.SmoothRankLoss : The same loss as a module.
    error_driven_loss : Updates that do not vanish for positives far below the negatives.
    rankwise.smooth_loss : The same for NumPy arrays.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import smooth_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = smooth_loss(scores, torch.tensor([0, 1, 0, 1]), width=0.75)
    >>> value.backward()
    >>> round(value.item(), 4), [round(one, 4) for one in scores.grad.tolist()]
    (0.5084, [0.0, -0.071, 0.1164, -0.0454])
    """
    return _solved(scores, target, loss, Smooth, width, **given)


@takes_also(rank_loss)
def error_driven_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    interpolate: bool = True,
    **given: Unpack[Given],
) -> Tensor:
    """
    Compute the error-driven loss: AP-loss of Chen et al. (2019) for loss="ap".

    Each positive hands its ranking error to the negatives above it, in proportion to how far above they are. The
    backward pass returns this update, which is not the derivative of the value. The update of a positive is at most its
    share of the loss and does not vanish while it is ranked wrong, however far below the negatives it lies.

    Parameters
    ----------
    {torch_scores}
    {torch_target}
    {torch_loss}
    {torch_width}
    {torch_interpolate}
    {torch_tensors}
    {torch_options}

    Returns
    -------
    {torch_value}

    Raises
    ------
    {torch_raises}

    See Also
    --------
    rankwise.torch.ErrorDrivenLoss : The same loss as a module.
    smooth_loss : A value whose true gradient is returned.
    rankwise.error_driven_loss : The same for NumPy arrays.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import error_driven_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = error_driven_loss(scores, torch.tensor([0, 1, 0, 1]), width=0.5)
    >>> value.backward()
    >>> value.item(), scores.grad.tolist()
    (0.5, [0.375, -0.25, 0.125, -0.25])
    """
    return _solved(scores, target, loss, ErrorDriven, width, interpolate, **given)


@takes_also(rank_loss)
def direct_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    epsilon: float = 1.0,
    update: str = "positive",
    **given: Unpack[Given],
) -> Tensor:
    """
    Compute a rank loss, with the gradient of direct loss minimisation (Song et al., 2016).

    The value is Δ of the ranking R_w that scores induce, with ties counted as errors. The gradient is

        positive: (∇F(R_ε) − ∇F(R_w))/ε,   R_ε = argmax_R F(R) + ε·Δ(R*, R)
        negative: (∇F(R_w) − ∇F(R_−ε))/ε,  R_−ε = argmax_R F(R) − ε·Δ(R*, R)

    As ε falls, it tends to the gradient of the expected Δ.

    Parameters
    ----------
    {torch_scores}
    {torch_target}
    {torch_loss}
    {torch_epsilon}
    {torch_update}
    {torch_tensors}
    {torch_options}

    Returns
    -------
    {torch_value}

    Raises
    ------
    {torch_raises}

    See Also
    --------
    rankwise.torch.DirectLoss : The same loss as a module.
    smooth_loss : The rank loss made continuous, with its true gradient.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import direct_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = direct_loss(scores, torch.tensor([0, 1, 0, 1]), epsilon=4.0)
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.tolist()
    (0.5, [0.0, -0.125, 0.125, 0.0])
    """
    return _solved(scores, target, loss, Direct, signed(epsilon, update), **given)


def signed(epsilon: float, update: str) -> float:
    """The ε of `Direct`, which is below 0 for the negative update."""
    check_known("update", update, ("positive", "negative"))
    if not is_number(epsilon):
        raise TypeError(f"epsilon must be a number, got {type(epsilon).__name__}")
    if not 0.0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}; the update is divided by it")
    return float(epsilon if update == "positive" else -epsilon)


@takes_also(rank_loss)
def rank_sort_loss(
    scores: Tensor,
    target: Tensor,
    *,
    width: float = 0.5,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """
    Compute the RankSort loss of a detector (Oksuz et al., ICCV 2021).

    It ranks positives above negatives, and positives among themselves by quality. Minimise the sum of both parts:

        ranking_i = FP_i/(a_i + FP_i),  a_i = Σ_k H(s_k − s_i) over positives,  FP_i = Σ_j H(s_j − s_i) over negatives
        sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), less the same over those of t_k ≥ t_i

    with H(x) = clip(x/(2·width) + ½, 0, 1). Each part is the mean over positives.

    Parameters
    ----------
    scores : Tensor of shape (n,)
        Raw outputs of a model, in floating point, flat.
    {torch_quality}
    {torch_half_width}
    {torch_mask}
    qid : Tensor of shape (n,), optional
        Integer image id of each sample, in any order. Each image is then a query of its own, and the parts are means
        over images.
    {torch_ignore_index}
    {torch_empty_image}
    {torch_reduction}
    {torch_gather}
    {torch_backend}

    Returns
    -------
    ranking : Tensor
        Ranking part: a scalar tensor, or one value per query with reduction="none". The type is float32, or float64 for
        float64 scores.
    sorting : Tensor
        Sorting part, of the same shape.

    Raises
    ------
    ValueError
        If shapes do not agree, a score is not finite, or a target is not in [0, 1].
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    rankwise.torch.RankSortLoss : The same loss as a module.
    error_driven_loss : For positives without a quality (AP-loss).

    Notes
    -----
    The gradient is an update, not the derivative of the value. A positive hands its ranking error to the negatives
    above it, and its sorting error to positives of lower quality above it, in proportion to H.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch.functional import rank_sort_loss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> ranking, sorting = rank_sort_loss(scores, torch.tensor([0.0, 0.6, 0.0, 0.9]))
    >>> (ranking + sorting).backward()
    >>> round(ranking.item(), 4), round(sorting.item(), 4), [round(g, 4) for g in scores.grad.tolist()]
    (0.619, 0.1, [0.4762, -0.2333, 0.1429, -0.3857])
    """
    if getattr(scores, "ndim", 1) > 1:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} but must be flat, (n,); pass scores.flatten(), target.flatten() "
            "and, for several images, qid= with the image of each sample"
        )
    quality = target.detach() if isinstance(target, torch.Tensor) else target
    parts = loss_of_batch(
        Batch(scores, quality, mask, qid), posed("ap", RankSort, width), ignore_index=ignore_index, empty=empty,
        reduction=reduction, gather=gather, backend=backend,
    )  # fmt: skip
    return parts[0], parts[1]
