"""The structured hinge and the direct loss as functions of tensors."""

from __future__ import annotations

from torch import Tensor

from rankwise.arguments import as_scale
from rankwise.metrics.registry import LossLike
from rankwise.torch.batches import Batch, Gather, loss_of_batch
from rankwise.torch.documented import documented_like
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.options import Options, direct_goal, key_of


def structured_hinge(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
    dim: int | None = None,
    scale: float = 1.0,
    ignore_index: int | None = None,
    empty: str = "zero",
    reduction: str = "mean",
    gather: Gather = False,
    backend: str = "auto",
    index: Tensor | None = None,
    memory: ScoreMemory | None = None,
) -> Tensor:
    """
    Compute the structured hinge of a rank loss.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*)

    Δ(R*, R) is the loss of a ranking R against a perfect ranking R*, and F(R) says how well R agrees with the scores.
    The maximum is attained by the most violating ranking, which is found exactly. J is convex in the scores and an
    upper bound on scale·Δ of the ranking by scores.

    Parameters
    ----------
    scores : Tensor of shape (n,) or (...)
        Raw outputs of a model, in floating point. Shape (n,) is one query, or several queries of any lengths with qid.
        Scores with more dimensions are ranked along dim.
    target : Tensor of the same shape as scores
        Relevance of each sample: booleans, or 0 and 1. Other numbers are grades, finite and at least 0, for which
        J = Σ_l α_l J_l over thresholds, as in `rankwise.structured_hinge`.
    loss : str or Loss, default "ap"
        Rank loss Δ: a name such as "ap", "ndcg", "ndcg@10", "mrr", "auc" or "f1", or a `rankwise.Loss`.
    mask : Tensor of the same shape as scores, optional
        True where a sample counts. Masked entries may hold anything, also NaN, and get no gradient.
    qid : Tensor of shape (n,), optional
        Integer query id of each sample, in any order, for queries of different lengths in flat scores.
    dim : int, optional
        Dimension to rank along. Required for scores with two or more dimensions. For scores (n, C), dim=0 ranks the n
        samples of each column, one query per class, and dim=1 (or -1) ranks the C entries of each row, one list per
        row.
    scale : float, default 1.0
        Weight of Δ against the scores: how large a margin an error is worth. About a third of the difference between
        the mean scores of positives and negatives works well: 1 suits logits, 0.3 to 1 cosines.
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
        finite, or a target is not allowed.
    TypeError
        If an argument has the wrong type.

    Warns
    -----
    UserWarning
        If dim=0 ranks a batch of a single sample, such as the last batch of a DataLoader. All its queries are empty.

    See Also
    --------
    rankwise.torch.RankHingeLoss : The same loss as a module.
    direct_loss : The rank loss itself, with an estimate of its gradient.
    smooth_loss : The rank loss made continuous, with its true gradient.
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
    options = Options(ignore_index, key_of(loss), as_scale(scale), "", empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)


@documented_like(structured_hinge)
def direct_loss(
    scores: Tensor,
    target: Tensor,
    loss: LossLike = "ap",
    *,
    epsilon: float = 1.0,
    update: str = "positive",
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
    Compute a rank loss, with the gradient of direct loss minimisation (Song et al., 2016).

    The value is Δ of the ranking R_w that scores induce, with ties counted as errors. The gradient is

        positive: (∇F(R_ε) − ∇F(R_w))/ε,   R_ε = argmax_R F(R) + ε·Δ(R*, R)
        negative: (∇F(R_w) − ∇F(R_−ε))/ε,  R_−ε = argmax_R F(R) − ε·Δ(R*, R)

    As ε falls, it tends to the gradient of the expected Δ.

    Parameters
    ----------
    As in `structured_hinge`: scores.
    target : Tensor of the same shape as scores
        Relevance of each sample: booleans, or 0 and 1. Grades are not supported.
    loss : str or Loss, default "ap"
        Rank loss Δ: a name such as "ap", "ndcg", "ndcg@10", "mrr" or "auc", or a `rankwise.Loss`.
    epsilon : float, default 1.0
        Weight ε of Δ in the second ranking, positive. Larger values move more samples per step.
    update : {"positive", "negative"}, default "positive"
        Which of the two gradients is returned. The negative one is found by an exact dynamic programme, whose time
        grows with the number of misordered pairs.
    As in `structured_hinge`: mask, qid, dim, ignore_index, empty, reduction, gather, backend, index, memory.

    Returns
    -------
    As in `structured_hinge`: Tensor.

    Raises
    ------
    ValueError
        If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not
        finite, a target is not allowed, epsilon is not positive, or the loss is not one of rankings.
    TypeError
        If an argument has the wrong type.

    See Also
    --------
    rankwise.torch.DirectLoss : The same loss as a module.
    structured_hinge : A convex upper bound on the loss.
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
    goal = direct_goal(loss, epsilon, update)
    options = Options(ignore_index, key_of(loss), *goal, empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)
