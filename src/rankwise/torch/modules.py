"""Rank losses of scores as modules without state: `RankLoss`, and names for some of its losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankwise.arguments import check_known, is_number
from rankwise.documenting import documented
from rankwise.metrics.gains import Gain
from rankwise.metrics.ndcg import NDCG
from rankwise.metrics.registry import LossLike
from rankwise.surrogates import Direct, ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.torch.arguments import Asked, Options, checked, takes_also
from rankwise.torch.batches import Batch, loss_of_batch
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.objective import posed

if TYPE_CHECKING:
    from typing_extensions import Unpack

HINGE = Hinge()


@documented
class RankLoss(torch.nn.Module):
    """Any ranking loss made trainable by any surrogate.

    The losses with names of their own are this one: `APHingeLoss()` is `RankLoss("ap", Hinge())`. The backward pass
    returns the gradient of the surrogate: a derivative, a semi-gradient or an update. See `forward` for mask, qid,
    index and memory.

    {torch_arguments}

    See Also
    --------
    rankwise.evaluate : The same for NumPy arrays.

    {torch_examples}
    >>> round(rwt.RankLoss("mrr", "smooth")(scores, target).item(), 4)
    0.5556
    """

    @takes_also(Asked)
    def __init__(self, metric: LossLike = "ap", surrogate: str | Surrogate = HINGE, **options: Unpack[Options]) -> None:
        super().__init__()
        posed(metric, surrogate)
        self.loss, self.surrogate = metric, surrogate
        self.options: Any = checked(**options)

    def __repr__(self) -> str:
        options = (f"{name}={value!r}" for name, value in self.options._asdict().items())
        return f"{type(self).__name__}({', '.join([repr(self.loss), repr(self.surrogate), *options])})"

    def forward(
        self,
        scores: Tensor,
        target: Tensor,
        *,
        mask: Tensor | None = None,
        qid: Tensor | None = None,
        index: Tensor | None = None,
        memory: ScoreMemory | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        {torch_function}
        """
        batch = Batch(scores, target, mask, qid, index)
        return loss_of_batch(batch, posed(self.loss, self.surrogate), self.options, memory)


@documented
class RankHingeLoss(RankLoss):
    """Structured hinge of any rank loss.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*)

    Δ(R*, R) is the loss of a ranking R against a perfect one, and F(R) says how well R agrees with the scores. J is
    convex and an upper bound on scale·Δ of the ranking by scores. The backward pass returns the gradient of J with the
    maximiser held fixed. With grades, J is a weighted sum over thresholds.

    {torch_arguments}

    See Also
    --------
    APHingeLoss : The hinge of average precision, and when to use it.

    {torch_examples}
    >>> rwt.RankHingeLoss("mrr", dim=1)(scores[None], target[None]).item()
    2.25
    """

    @takes_also(Asked)
    def __init__(self, loss: LossLike = "ap", *, scale: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(loss, Hinge(scale), **options)


@documented
class APHingeLoss(RankHingeLoss):
    """Structured hinge of average precision (AP), an upper bound on scale·(1 − AP).

    The further a positive lies below the negatives, the more it counts, without limit, so that a wrong label can
    dominate the loss. The AP of a small batch is easier than that of all data: use large batches or a `ScoreMemory`.

    {torch_arguments}

    See Also
    --------
    RankHingeLoss : The formula, and other losses.
    ErrorDrivenLoss : Bounded updates, for fine-tuning after cross-entropy and for noisy labels.

    {torch_examples}
    >>> rwt.APHingeLoss()(scores, target).item()
    2.25
    """

    @takes_also(Asked)
    def __init__(self, *, scale: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__("ap", scale=scale, **options)


@documented
class NDCGHingeLoss(RankHingeLoss):
    """Structured hinge of normalised discounted cumulative gain (NDCG), for lists of documents.

    {torch_arguments}

    See Also
    --------
    rankwise.NDCG : The loss itself, with the definition of gains and discounts.

    {torch_examples}
    >>> round(rwt.NDCGHingeLoss(k=3)(scores, torch.tensor([0, 2, 1, 0])).item(), 4)
    1.2951
    """

    @takes_also(Asked)
    def __init__(
        self, *, k: int | None = None, gain: Gain = "exp2", scale: float = 1.0, **options: Unpack[Options]
    ) -> None:
        plain = k is None and gain == "exp2"
        super().__init__("ndcg" if plain else NDCG(k=k, gain=gain), scale=scale, **options)


@documented
class SmoothRankLoss(RankLoss):
    """Rank loss with softened comparisons and its true gradient.

        Δ = (1/C) Σ_k w_k (D(k) − D(k + c_k)),  c_k = Σ_j clip((s_j − s_k)/(2·width) + ½, 0, 1)

    c_k is a soft count of the negatives j above the k-th positive; see `rankwise.smooth_loss` for w, D and C, and for
    grades. The value approximates Δ itself: it is bounded, but not convex. Positives farther than width from every
    negative get no gradient, even if they are ranked wrong: use this loss to refine a model that already ranks well.

    {torch_arguments}

    See Also
    --------
    ErrorDrivenLoss : Its updates do not vanish for positives far below the negatives.

    {torch_examples}
    >>> round(rwt.SmoothRankLoss("ndcg", width=0.5)(scores, target).item(), 4)
    0.3491
    """

    @takes_also(Asked)
    def __init__(self, loss: LossLike = "ap", *, width: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(loss, Smooth(width), **options)


@documented
class ErrorDrivenLoss(RankLoss):
    """Error-driven loss: AP-loss of Chen et al. (2019) for "ap", and its like for other losses.

    Each positive hands its ranking error to the negatives above it, in proportion to how far above they are. The
    backward pass returns this update, which is not the derivative of the value. The update of a positive is at most its
    share of the loss, and does not vanish while it is ranked wrong. This suits fine-tuning after cross-entropy, noisy
    labels and, with a `ScoreMemory`, small batches.

    {torch_arguments}

    See Also
    --------
    SmoothRankLoss : A value whose true gradient is returned.
    RankSortLoss : For detectors whose positives have a quality, such as the IoU of a box.

    {torch_examples}
    >>> rwt.ErrorDrivenLoss(width=0.5)(scores, target).item()
    0.5
    """

    @takes_also(Asked)
    def __init__(
        self, loss: LossLike = "ap", *, width: float = 1.0, interpolate: bool = True, **options: Unpack[Options]
    ) -> None:
        super().__init__(loss, ErrorDriven(width, interpolate), **options)


@documented
class DirectLoss(RankLoss):
    """Rank loss itself, with the gradient of direct loss minimisation (Song et al., 2016).

    The value is Δ of the ranking R_w by scores, with ties counted as errors. The target must be binary. The backward
    pass returns

        positive: (∇F(R_ε) − ∇F(R_w))/ε,   R_ε = argmax_R F(R) + ε·Δ(R*, R)
        negative: (∇F(R_w) − ∇F(R_−ε))/ε,  R_−ε = argmax_R F(R) − ε·Δ(R*, R)

    {torch_arguments}

    See Also
    --------
    SmoothRankLoss : A continuous version of the loss with its true gradient.

    {torch_examples}
    >>> rwt.DirectLoss("ap", epsilon=4.0)(scores, target).item()
    0.5
    """

    @takes_also(Asked)
    def __init__(
        self, loss: LossLike = "ap", *, epsilon: float = 1.0, update: str = "positive", **options: Unpack[Options]
    ) -> None:
        super().__init__(loss, Direct(signed(epsilon, update)), **options)


def signed(epsilon: float, update: str) -> float:
    """The ε of `Direct`, which is below 0 for the negative update."""
    check_known("update", update, ("positive", "negative"))
    if not is_number(epsilon) or not 0.0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}; the update is divided by it")
    return float(epsilon if update == "positive" else -epsilon)
