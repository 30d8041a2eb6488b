"""The smooth and the error-driven loss as functions of tensors."""

from __future__ import annotations

from torch import Tensor

from rankwise.metrics.registry import LossLike
from rankwise.torch.batches import Batch, Gather, loss_of_batch
from rankwise.torch.documented import documented_like
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.options import Options, error_driven_way, key_of, soft_goal
from rankwise.torch.score_functions import structured_hinge


@documented_like(structured_hinge)
def smooth_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int | None = None,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
    index: Tensor | None = None,
    memory: ScoreMemory | None = None,
) -> Tensor:
    """
    Compute a rank loss with softened comparisons, and its true gradient.

        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)),  c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1)

    c_k is a soft count of the negatives j above the k-th positive. The loss is continuous and bounded, but not convex.
    See `rankwise.smooth_loss` for w, D and C.

    Parameters
    ----------
    As in `structured_hinge`: scores.
    target : Tensor of the same shape as scores
        Relevance of each sample: booleans, or 0 and 1. Other numbers are grades, finite and at least 0. A query with
        grade 0 and one other grade is binary; one with more grades takes soft ranks of all samples.
    loss : str or DiscountedLoss, default "ap"
        Rank loss: "ap", "ndcg", "ndcg@10", "mrr", "auc", "f1", or a `rankwise.DiscountedLoss`. It need not satisfy
        condition (C2) of the hinge.
    width : float, default 1.0
        Half the width of the ramp, in units of the scores. 1 suits logits, 0.05 to 0.1 cosines.
    As in `structured_hinge`: mask, qid, dim, ignore_index, empty, reduction, gather, backend, index, memory.

    Returns
    -------
    As in `structured_hinge`: Tensor.

    Raises
    ------
    ValueError
        If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not
        finite, a target is not allowed, width is not positive, or the loss has no discount.
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    rankwise.torch.SmoothRankLoss : The same loss as a module.
    error_driven_loss : Updates that do not vanish for positives far below the negatives.
    structured_hinge : A convex upper bound on the loss.
    rankwise.smooth_loss : The same for NumPy arrays.

    Notes
    -----
    The loss of a query depends on that query alone, not on the grades of the others in the batch.

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
    options = Options(ignore_index, key_of(loss), *soft_goal(loss, width, "smooth"), empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)


@documented_like(structured_hinge)
def error_driven_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    width: float = 1.0,
    interpolate: bool = True,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int | None = None,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
    index: Tensor | None = None,
    memory: ScoreMemory | None = None,
) -> Tensor:
    """
    Compute the error-driven loss: AP-loss of Chen et al. (2019) for loss="ap".

    Each positive hands its ranking error to the negatives above it, in proportion to how far above they are. The
    backward pass returns this update, which is not the derivative of the value. The update of a positive is at most its
    share of the loss and does not vanish while it is ranked wrong, however far below the negatives it lies.

    Parameters
    ----------
    As in `structured_hinge`: scores.
    target : Tensor of the same shape as scores
        Relevance of each sample: booleans, or 0 and 1. Other numbers are grades, finite and at least 0.
    loss : str or DiscountedLoss, default "ap"
        Rank loss: "ap", "ndcg", "ndcg@10", "mrr", "auc", or a `rankwise.DiscountedLoss`. It need not satisfy condition
        (C2) of the hinge.
    width : float, default 1.0
        Half the width of the ramp by which scores are compared, also those of two positives, in units of the scores.
        1 suits logits, 0.05 to 0.1 cosines.
    interpolate : bool, default True
        Whether the precision of a positive counts as the highest precision among positives that score no higher. A
        loss whose discount is not positive, such as "auc", has no precision and is not interpolated.
    As in `structured_hinge`: mask, qid, dim, ignore_index, empty, reduction, gather, backend, index, memory.

    Returns
    -------
    As in `structured_hinge`: Tensor.

    Raises
    ------
    ValueError
        If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not
        finite, a target is not allowed, width is not positive, or the loss has no discount.
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    rankwise.torch.ErrorDrivenLoss : The same loss as a module.
    smooth_loss : A value whose true gradient is returned.
    structured_hinge : A convex upper bound on the loss.
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
    goal = soft_goal(loss, width, error_driven_way(interpolate))
    options = Options(ignore_index, key_of(loss), *goal, empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)
