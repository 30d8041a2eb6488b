"""Rank losses as functions of tensors; the modules of the same meaning are in modules.py."""

from __future__ import annotations

import torch  # noqa: F401  # the examples' own
from torch import Tensor

from rankwise.inputs import as_scale, check_known, is_number
from rankwise.losses import Form, LossLike, as_loss
from rankwise.smooth import error_driven_way
from rankwise.torch.batches import Batch, Gather, loss_of_batch
from rankwise.torch.detectors import alrp_loss, rank_sort_loss
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.outcome import Options, soft_goal
from rankwise.torch.registry import key_of
from rankwise.torch.retrieval import retrieval_loss

__all__ = [
    "alrp_loss",
    "check_update",
    "direct_loss",
    "error_driven_loss",
    "rank_sort_loss",
    "retrieval_loss",
    "smooth_loss",
    "structured_hinge",
]

UPDATES = ("positive", "negative")


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
    """J = max_R scale·Δ(R*, R) + F(R) − F(R*), an upper bound on scale·Δ of the ranking that scores induce.

    Parameters
    ----------
    scores : Tensor of shape (n,) or (…)
        Raw outputs of a model, floating point. One query (n,); several, ranked along dim; or ragged ones with qid.
    target : Tensor, shape as scores
        Boolean, or 0 and 1; other numbers are grades, finite and at least 0, for which J = Σ_l α_l J_l over thresholds,
        as in `rankwise.structured_hinge`.
    loss : str or Loss
        A name, such as "ap", "ndcg" or "ndcg@10", or a `rankwise.Loss`.
    mask : Tensor, shape as scores, optional
        True where a sample counts; the rest may hold anything.
    qid : Tensor of shape (n,), optional
        Integers: the query of each sample, in any order.
    dim : int, optional
        The dimension that is ranked. It must be given for scores of two dimensions or more. On (n, C), dim=0 ranks
        the samples of each column, one query a class; dim=1 (or −1) takes each row for one list.
    scale : float
        The weight of Δ against F.
    ignore_index : int, optional
        The value of target that means no label.
    empty : {"zero", "skip", "error"}
        A query without positives or without negatives, or of one grade only, is 0, also left out of the mean, or
        refused.
    reduction : {"mean", "sum", "none"}
        Over queries. "none": one value a query, sorted by qid where that is given.
    gather : bool or "ddp"
        Rank the batches of all processes of torch.distributed together, joined along their first dimension. True gives
        each score the gradient one process would, "ddp" that times the number of processes, since
        DistributedDataParallel averages. With reduction="none" all processes must weigh the values alike.
    backend : {"auto", "core", "tensor"}
        "core" runs on the CPU, "tensor" on any device.
    index : Tensor of shape (b,), optional
        Which samples of the data set these are, with memory.
    memory : ScoreMemory, optional
        The last scores of all samples, against which the batch is ranked; it is written to.

    Returns
    -------
    Tensor
        float32, or float64 for scores of float64: a number, or with reduction="none" one a query.

    Raises
    ------
    ValueError
        If shapes do not agree, dim is missing, every list has a single sample (dim > 0 of length 1), a score is not
        finite or a target neither binary nor a grade.
    TypeError
        If an argument is of the wrong type.

    Warns
    -----
    UserWarning
        If dim=0 ranks a batch of a single sample, as the last one of a DataLoader may be. Its queries are empty.

    Examples
    --------
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = structured_hinge(scores, torch.tensor([0, 1, 0, 1]))
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.tolist()
    (2.25, [1.0, -0.5, 0.5, -1.0])
    """
    options = Options(ignore_index, key_of(loss), as_scale(scale), "", empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)


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
    """Δ of the ranking R_w that scores induce, ties counted as wrong, with the gradient of direct loss minimisation.

        positive: (∇F(R_ε) − ∇F(R_w))/ε,   R_ε = argmax_R F(R) + ε·Δ(R*, R)
        negative: (∇F(R_w) − ∇F(R_−ε))/ε,  R_−ε = argmax_R F(R) − ε·Δ(R*, R)

    As ε falls, this tends to the gradient of the expected Δ. The negative update is found by an exact dynamic
    programme, in time of the number of misordered pairs.

    Parameters
    ----------
    scores, target, loss, mask, qid, dim, ignore_index, empty, reduction, gather, backend, index, memory
        As in `structured_hinge`, but for binary target only; scores of two dimensions or more need dim.
    epsilon : float
        ε, positive.
    update : {"positive", "negative"}
        Which of the two gradients.

    Returns
    -------
    Tensor
        As in `structured_hinge`.

    Raises
    ------
    ValueError, TypeError
        As in `structured_hinge`; and if epsilon is not positive or the loss is not one of rankings.

    Examples
    --------
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = direct_loss(scores, torch.tensor([0, 1, 0, 1]), epsilon=1.0)
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.tolist()
    (0.5, [0.0, 0.0, 0.0, 0.0])
    """
    step = check_update(loss, epsilon, update)
    options = Options(ignore_index, key_of(loss), step, update, empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)


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
    """The loss with every comparison of a positive and a negative softened over a width, and its true gradient.

    Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)) with c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1), as in
    `rankwise.smooth_loss`: continuous, bounded, not convex. With grades it is by soft ranks of all samples, as there; a
    batch whose target is 0 and 1 only counts as binary.

    Parameters
    ----------
    scores, target, mask, qid, dim, ignore_index, empty, reduction, gather, backend, index, memory
        As in `structured_hinge`; scores of two dimensions or more need dim.
    loss : str or DiscountedLoss
        "ap", "ndcg", "mrr", "auc", "f1", "ndcg@10", …, or a `rankwise.DiscountedLoss`. (C2) is not needed.
    width : float
        Half the width of the ramp, in units of the scores.

    Returns
    -------
    Tensor
        As in `structured_hinge`.

    Raises
    ------
    ValueError, TypeError
        As in `structured_hinge`; and if the width is not positive or the loss has no discount.

    Examples
    --------
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
    """The error-driven loss, AP-loss of Chen et al. (2019) for loss="ap", with its update in place of a gradient.

    Each positive's error is handed on to the negatives above it, in proportion to how far above they are, as in
    `rankwise.error_driven_loss`. What `backward` gives is this update, not the derivative of the value: bounded, a
    positive's by its share of the loss, it does not vanish while a positive is misranked, however far below it lies.

    Parameters
    ----------
    scores, target, loss, width, mask, qid, dim, ignore_index, empty, reduction, gather, backend, index, memory
        As in `smooth_loss`; positives are compared among themselves, too.
    interpolate : bool
        Whether a positive's precision counts as the highest among those that score no higher. A loss whose discount
        is not positive, such as "auc", has no precision, and is not interpolated.

    Returns
    -------
    Tensor
        As in `structured_hinge`.

    Raises
    ------
    ValueError, TypeError
        As in `smooth_loss`.

    Examples
    --------
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> value = error_driven_loss(scores, torch.tensor([0, 1, 0, 1]), width=0.5)
    >>> value.backward()
    >>> value.item(), scores.grad.tolist()
    (0.5, [0.375, -0.25, 0.125, -0.25])
    """
    goal = soft_goal(loss, width, error_driven_way(interpolate))
    options = Options(ignore_index, key_of(loss), *goal, empty, reduction, backend)
    return loss_of_batch(Batch(scores, target, mask, qid, index), options, dim, gather, memory)


def check_update(loss: LossLike, epsilon: float, update: str) -> float:
    """ε; refuses one that is not positive, an unknown update, and a loss that is not of rankings."""
    if as_loss(loss).form is Form.LABELS:
        raise ValueError("direct loss minimisation is for losses of rankings; zero-one is a loss of labels")
    check_known("update", update, UPDATES)
    if as_loss(loss).form is Form.THRESHOLD and update == "negative":
        raise ValueError(f"the negative update is not known for {as_loss(loss).name}; use update='positive'")
    if not is_number(epsilon):
        raise TypeError(f"epsilon must be a number, got {type(epsilon).__name__}")
    if not 0.0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}: it is what the update is divided by")
    return float(epsilon)
