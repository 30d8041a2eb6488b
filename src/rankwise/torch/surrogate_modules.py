"""Rank losses other than the hinge, as modules: smooth, error-driven and direct."""

from __future__ import annotations

from rankwise.metrics.registry import LossLike
from rankwise.torch.batches import Gather
from rankwise.torch.documented import documented_like
from rankwise.torch.modules import ScoresLoss
from rankwise.torch.options import Goal, direct_goal, error_driven_way, soft_goal
from rankwise.torch.score_functions import direct_loss, structured_hinge
from rankwise.torch.soft_functions import error_driven_loss, smooth_loss


@documented_like(structured_hinge, smooth_loss)
class SmoothRankLoss(ScoresLoss):
    """
    Rank loss with softened comparisons and its true gradient.

    Each comparison of a positive with a negative changes linearly from 0 to 1 while their scores are within width of
    each other, instead of jumping where they are equal. The value approximates Δ itself (1 − AP for "ap"): it is
    continuous and bounded, but not convex.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    As in `smooth_loss`: loss, width.
    As in `structured_hinge`: dim, ignore_index, empty, reduction, gather, backend.

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


@documented_like(structured_hinge, error_driven_loss)
class ErrorDrivenLoss(ScoresLoss):
    """
    Error-driven loss: AP-loss of Chen et al. (2019) for "ap", and its like for other losses.

    Each positive hands its ranking error to the negatives above it, in proportion to how far above they are. The
    backward pass returns this update, which is not the derivative of the value. Do not compare it with finite
    differences or use it in a line search.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    As in `error_driven_loss`: loss, width, interpolate.
    As in `structured_hinge`: dim, ignore_index, empty, reduction, gather, backend.

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


@documented_like(structured_hinge, direct_loss)
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
    As in `direct_loss`: loss, epsilon.
    update : {"positive", "negative"}, default "positive"
        "positive" moves away from a worse ranking, and "negative" towards a better one. The negative update is slower:
        its time grows with the number of misordered pairs.
    As in `structured_hinge`: dim, ignore_index, empty, reduction, gather, backend.

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
