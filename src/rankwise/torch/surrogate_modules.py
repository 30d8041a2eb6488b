"""Rank losses other than the hinge, as modules: smooth, error-driven and direct."""

from __future__ import annotations

from rankwise.losses import LossLike
from rankwise.smooth import error_driven_way
from rankwise.torch.batches import Gather
from rankwise.torch.modules import ScoresLoss
from rankwise.torch.options import Goal, direct_goal, soft_goal


class SmoothRankLoss(ScoresLoss):
    """
    Rank loss with softened comparisons and its true gradient.

    Each comparison of a positive with a negative changes linearly from 0 to 1 while their scores are within width of
    each other, instead of jumping where they are equal. The value approximates Δ itself (1 − AP for "ap"): it is
    continuous and bounded, but not convex.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    loss : str or DiscountedLoss, default "ap"
        Rank loss: "ap", "ndcg", "ndcg@10", "mrr", "auc", "f1", or a `rankwise.DiscountedLoss`.
    width : float, default 1.0
        Half the width of the ramp, in units of the scores. 1 suits logits, 0.05 to 0.1 cosines.
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
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code, to which scores on other devices are copied. "tensor" runs on the
        device of the scores. "auto" takes "tensor" for devices other than the CPU, where a loss has it, else "core".

    See Also
    --------
    functional.smooth_loss : The same loss as a function, with the formula.
    ErrorDrivenLoss : Its updates do not vanish for positives far below the negatives.
    APHingeLoss : A convex upper bound on the loss.

    Notes
    -----
    Positives farther than width from every negative get no gradient, even if they are ranked wrong. Use this loss
    to refine a model that already ranks well.

    A query with grade 0 and one other grade is binary, and one with more grades takes soft ranks of all samples: its
    loss depends on that query alone.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import SmoothRankLoss
    >>> criterion = SmoothRankLoss("ndcg", width=0.5)
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)  # the output of a network
    >>> loss = criterion(scores, torch.tensor([0, 1, 0, 1]))
    >>> loss.backward()
    >>> round(loss.item(), 4)
    0.3491
    """

    def __init__(
        self,
        loss: LossLike = "ap",
        *,
        width: float = 1.0,
        dim: int | None = None,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        options = {
            "width": width, "dim": dim, "ignore_index": ignore_index, "empty": empty, "reduction": reduction,
            "gather": gather, "backend": backend,
        }  # fmt: skip
        super().__init__(loss, options)
        self._goal()

    def _goal(self) -> Goal:
        return soft_goal(self.loss, self.options["width"], "smooth")


class ErrorDrivenLoss(ScoresLoss):
    """
    Error-driven loss: AP-loss of Chen et al. (2019) for "ap", and its like for other losses.

    Each positive hands its ranking error to the negatives above it, in proportion to how far above they are. The
    backward pass returns this update, which is not the derivative of the value. Do not compare it with finite
    differences or use it in a line search.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    loss : str or DiscountedLoss, default "ap"
        Rank loss: "ap", "ndcg", "ndcg@10", "mrr", "auc", or a `rankwise.DiscountedLoss`.
    width : float, default 1.0
        Half the width of the ramp by which scores are compared, in units of the scores. 1 suits logits, 0.05 to 0.1
        cosines.
    interpolate : bool, default True
        Whether the precision of a positive counts as the highest precision among positives that score no higher. A
        loss whose discount is not positive, such as "auc", has no precision and is not interpolated.
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
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code, to which scores on other devices are copied. "tensor" runs on the
        device of the scores. "auto" takes "tensor" for devices other than the CPU, where a loss has it, else "core".

    See Also
    --------
    functional.error_driven_loss : The same loss as a function.
    SmoothRankLoss : A value whose true gradient is returned.
    APHingeLoss : A convex upper bound on the loss.
    RankSortLoss : For detectors whose positives have a quality, such as the IoU of a box.
    ScoreMemory : Ranks small batches among all samples of the data set.

    Notes
    -----
    The update of a positive is at most its share of the loss, however far it lies below the negatives, and does not
    vanish while it is ranked wrong. This suits fine-tuning after cross-entropy, noisy labels and, with a
    `ScoreMemory`, small batches.

    In `rankwise bench finetune` (rare classes of CIFAR-10, after cross-entropy, ten seeds), it has 0.0065 more test AP
    with a `ScoreMemory` than as many further epochs of cross-entropy, and 0.0075 more with 2 % wrong negatives.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import ErrorDrivenLoss
    >>> criterion = ErrorDrivenLoss(width=0.5)
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)  # the output of a network
    >>> loss = criterion(scores, torch.tensor([0, 1, 0, 1]))
    >>> loss.backward()
    >>> loss.item(), scores.grad.tolist()
    (0.5, [0.375, -0.25, 0.125, -0.25])
    """

    def __init__(
        self,
        loss: LossLike = "ap",
        *,
        width: float = 1.0,
        interpolate: bool = True,
        dim: int | None = None,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        options = {
            "width": width, "interpolate": interpolate, "dim": dim, "ignore_index": ignore_index, "empty": empty,
            "reduction": reduction, "gather": gather, "backend": backend,
        }  # fmt: skip
        super().__init__(loss, options)
        self._goal()

    def _goal(self) -> Goal:
        return soft_goal(self.loss, self.options["width"], error_driven_way(self.options["interpolate"]))


class DirectLoss(ScoresLoss):
    """
    Rank loss itself, with the gradient of direct loss minimisation (Song et al., 2016).

    The value is Δ of the ranking by scores (1 − AP for "ap"), with ties counted as errors. It has no useful derivative,
    so the backward pass returns the difference of the scores' ranking and a slightly worse (or better) one, divided by
    epsilon. As epsilon falls, this tends to the gradient of the expected Δ.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`. The target must be
    binary.

    Parameters
    ----------
    loss : str or Loss, default "ap"
        Rank loss Δ: a name such as "ap", "ndcg", "ndcg@10", "mrr" or "auc", or a `rankwise.Loss`.
    epsilon : float, default 1.0
        Weight of Δ in the second ranking, positive. Larger values move more samples per step.
    update : {"positive", "negative"}, default "positive"
        "positive" moves away from a worse ranking, and "negative" towards a better one. The negative update is slower:
        its time grows with the number of misordered pairs.
    dim : int, optional
        Dimension to rank along. Required for scores with two or more dimensions. For scores (n, C), dim=0 ranks the n
        samples of each column, one query per class, and dim=1 (or -1) ranks the C entries of each row, one list per
        row.
    ignore_index : int, optional
        Value of target that means "no label". Such samples are left out, as if masked.
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of empty queries, which have no positives or no negatives and so nothing to rank. "zero" counts them
        as 0 in the mean, "skip" leaves them out of the mean, and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined. "none" returns one value per query, sorted by qid if given.
    gather : bool or "ddp", default False
        Whether to rank the batches of all processes of torch.distributed together. True gives each score the gradient
        that a single process would compute. "ddp" multiplies it by the number of processes, because
        DistributedDataParallel averages gradients.
    backend : {"auto", "core", "tensor"}, default "auto"
        Implementation. "core" is compiled code, to which scores on other devices are copied. "tensor" runs on the
        device of the scores. "auto" takes "tensor" for devices other than the CPU, where a loss has it, else "core".

    See Also
    --------
    functional.direct_loss : The same loss as a function, with the formulas of both updates.
    APHingeLoss : A convex upper bound on the loss.
    SmoothRankLoss : A continuous version of the loss with its true gradient.

    Notes
    -----
    The logged value is the metric itself, which makes this loss handy for refining a model that already ranks well.
    The gradient is zero where the two rankings agree.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import DirectLoss
    >>> criterion = DirectLoss("ap", epsilon=4.0)
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)  # the output of a network
    >>> loss = criterion(scores, torch.tensor([0, 1, 0, 1]))
    >>> loss.backward()
    >>> round(loss.item(), 4), scores.grad.tolist()
    (0.5, [0.0, -0.125, 0.125, 0.0])
    """

    def __init__(
        self,
        loss: LossLike = "ap",
        *,
        epsilon: float = 1.0,
        update: str = "positive",
        dim: int | None = None,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        options = {
            "epsilon": epsilon, "update": update, "dim": dim, "ignore_index": ignore_index, "empty": empty,
            "reduction": reduction, "gather": gather, "backend": backend,
        }  # fmt: skip
        super().__init__(loss, options)
        self._goal()

    def _goal(self) -> Goal:
        return direct_goal(self.loss, self.options["epsilon"], self.options["update"])
