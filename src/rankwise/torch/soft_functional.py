"""The smooth and the error-driven loss as functions of tensors."""

from __future__ import annotations

from torch import Tensor

from rankwise.losses import LossLike
from rankwise.smooth import error_driven_way
from rankwise.torch.batches import Batch, Gather, loss_of_batch
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.options import Options, key_of, soft_goal


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
    scores : Tensor of shape (n,) or (...)
        Raw outputs of a model, in floating point. Shape (n,) is one query, or several queries of any lengths with qid.
        Scores with more dimensions are ranked along dim.
    target : Tensor of the same shape as scores
        Relevance of each sample: booleans, or 0 and 1. Other numbers are grades, finite and at least 0. A query with
        grade 0 and one other grade is binary; one with more grades takes soft ranks of all samples.
    loss : str or DiscountedLoss, default "ap"
        Rank loss: "ap", "ndcg", "ndcg@10", "mrr", "auc", "f1", or a `rankwise.DiscountedLoss`. It need not satisfy
        condition (C2) of the hinge.
    width : float, default 1.0
        Half the width of the ramp, in units of the scores. 1 suits logits, 0.05 to 0.1 cosines.
    mask : Tensor of the same shape as scores, optional
        True where a sample counts. Masked entries may hold anything, also NaN, and get no gradient.
    qid : Tensor of shape (n,), optional
        Integer query id of each sample, in any order, for queries of different lengths in flat scores.
    dim : int, optional
        Dimension to rank along. Required for scores with two or more dimensions. For scores (n, C), dim=0 ranks the n
        samples of each column, one query per class, and dim=1 (or -1) ranks the C entries of each row, one list per
        row.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of empty queries, which have no positives or no negatives (or a single grade) and so nothing to rank.
        "zero" counts them as 0 in the mean, "skip" leaves them out of the mean, and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined. "none" returns one value per query, sorted by qid if given.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together, joined along their first dimension.
        True gives each score the gradient that a single process would compute. "ddp" multiplies it by the number of
        processes, because DistributedDataParallel averages gradients. With reduction="none", all processes must weigh
        the values alike.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code, to which scores on other devices are copied. "tensor" runs on the
        device of the scores. "auto" takes "tensor" for devices other than the CPU, where a loss has it, else "core".
    index : Tensor of shape (b,), optional
        Position of each sample of the batch in the data set. Required with memory.
    memory : ScoreMemory, optional
        Last scores of all samples of the data set. The batch is ranked among them and then written to the memory.
        Cannot be combined with qid.

    Returns
    -------
    Tensor
        The loss as a scalar tensor, or one value per query with reduction="none". The type is float32, or float64 for
        float64 scores.

    Raises
    ------
    ValueError
        If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not
        finite, or a target is not allowed, or width is not
        positive, or the loss has no discount.
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
    scores : Tensor of shape (n,) or (...)
        Raw outputs of a model, in floating point. Shape (n,) is one query, or several queries of any lengths with qid.
        Scores with more dimensions are ranked along dim.
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
    mask : Tensor of the same shape as scores, optional
        True where a sample counts. Masked entries may hold anything, also NaN, and get no gradient.
    qid : Tensor of shape (n,), optional
        Integer query id of each sample, in any order, for queries of different lengths in flat scores.
    dim : int, optional
        Dimension to rank along. Required for scores with two or more dimensions. For scores (n, C), dim=0 ranks the n
        samples of each column, one query per class, and dim=1 (or -1) ranks the C entries of each row, one list per
        row.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of empty queries, which have no positives or no negatives (or a single grade) and so nothing to rank.
        "zero" counts them as 0 in the mean, "skip" leaves them out of the mean, and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined. "none" returns one value per query, sorted by qid if given.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together, joined along their first dimension.
        True gives each score the gradient that a single process would compute. "ddp" multiplies it by the number of
        processes, because DistributedDataParallel averages gradients. With reduction="none", all processes must weigh
        the values alike.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code, to which scores on other devices are copied. "tensor" runs on the
        device of the scores. "auto" takes "tensor" for devices other than the CPU, where a loss has it, else "core".
    index : Tensor of shape (b,), optional
        Position of each sample of the batch in the data set. Required with memory.
    memory : ScoreMemory, optional
        Last scores of all samples of the data set. The batch is ranked among them and then written to the memory.
        Cannot be combined with qid.

    Returns
    -------
    Tensor
        The loss as a scalar tensor, or one value per query with reduction="none". The type is float32, or float64 for
        float64 scores.

    Raises
    ------
    ValueError
        If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not
        finite, or a target is not allowed, or width is not
        positive, or the loss has no discount.
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
