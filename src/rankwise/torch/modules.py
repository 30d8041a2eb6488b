"""Rank losses as modules without parameters or state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankwise.arguments import check_known, is_number
from rankwise.metrics.gains import Gain
from rankwise.metrics.ndcg import NDCG
from rankwise.metrics.registry import LossLike
from rankwise.surrogates import Direct, ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.torch.arguments import Asked, Options, checked, documented, takes_also
from rankwise.torch.batches import Batch, loss_of_batch, rank_sort_of_batch
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.objective import RankSort, posed
from rankwise.torch.retrieval import Retrieval, retrieve

if TYPE_CHECKING:
    from typing_extensions import Unpack

HINGE = Hinge()


@documented
class RankLoss(torch.nn.Module):
    """Any ranking loss made trainable by any surrogate.

    The losses with names of their own are this one with their metric and surrogate: `APHingeLoss()` is
    `RankLoss("ap", Hinge())`, and `SmoothRankLoss("ndcg", width=0.5)` is `RankLoss("ndcg", Smooth(width=0.5))`. The
    backward pass returns the gradient of the surrogate: a derivative, a semi-gradient or an update.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    metric : str or Loss, default "ap"
        What rankings are judged by: a name such as "ap", "ndcg", "ndcg@10", "mrr" or "auc", or a `rankwise.Loss`.
    surrogate : str or Surrogate, default Hinge()
        How it becomes trainable: `rankwise.Hinge`, `rankwise.Smooth`, `rankwise.ErrorDriven`, `rankwise.Direct`, or a
        `rankwise.Surrogate` of your own, which runs in the core on every device.
    {torch_options}

    See Also
    --------
    functional.rank_loss : The same loss as a function; the losses with names of their own have functions, too.
    rankwise.evaluate : The same for NumPy arrays.
    ScoreMemory : Ranks small batches among all samples of the data set.

    {torch_examples}
    >>> loss = rwt.RankLoss("mrr", "smooth")(scores, target)
    >>> loss.backward()
    >>> round(loss.item(), 4)
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
        """
        Compute the loss of a batch.

        Parameters
        ----------
        {torch_scores}
        {torch_target}
        {torch_tensors}

        Returns
        -------
        Tensor
            The loss as a scalar tensor, or one value per query with reduction="none". The type is float32, or float64
            for float64 scores.

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
            If dim=0 ranks a batch of a single sample, such as the last batch of a DataLoader. All its queries are
            empty.
        """
        batch = Batch(scores, target, mask, qid, index)
        return loss_of_batch(batch, posed(self.loss, self.surrogate), self.options, memory)


@documented
class RankHingeLoss(RankLoss):
    """Structured hinge of any rank loss.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*)

    Δ(R*, R) is the loss of a ranking R against a perfect ranking R*, and F(R) says how well R agrees with the scores.
    The maximum is attained by the most violating ranking, which is found exactly. J is convex in the scores and an
    upper bound on scale·Δ of the ranking by scores. The backward pass returns the semi-gradient: the gradient of J with
    the most violating ranking held fixed. With grades, J is a weighted sum over thresholds.

    Parameters
    ----------
    {torch_loss}
    {torch_scale}
    {torch_options}

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
    """Structured hinge of average precision (AP).

    It takes the place of `torch.nn.BCEWithLogitsLoss` where positives are to be ranked above negatives. The value is an
    upper bound on scale·(1 − AP), convex in the scores. Scores are raw outputs: no sigmoid is needed. For networks that
    were trained with cross-entropy, start with `ErrorDrivenLoss`: see Notes.

    Parameters
    ----------
    {torch_scale}
    {torch_options}

    See Also
    --------
    RankHingeLoss : The formula, and other losses.
    ErrorDrivenLoss : Bounded updates, for fine-tuning after cross-entropy and for noisy labels.

    Notes
    -----
    The further a positive lies below the negatives, the more it counts, without limit. A wrong label can therefore
    dominate the loss; `ErrorDrivenLoss` limits each positive to its share. The AP of a small batch is easier than that
    of the data set, so use large batches or a `ScoreMemory`.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import APHingeLoss
    >>> model = torch.nn.Linear(3, 1)
    >>> optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> criterion = APHingeLoss()
    >>> inputs, target = torch.eye(4, 3), torch.tensor([0, 1, 0, 1])
    >>> optimiser.zero_grad()
    >>> criterion(model(inputs).squeeze(1), target).backward()
    >>> optimiser.step()
    """

    @takes_also(Asked)
    def __init__(self, *, scale: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__("ap", scale=scale, **options)


@documented
class NDCGHingeLoss(RankHingeLoss):
    """Structured hinge of normalised discounted cumulative gain (NDCG).

    The usual choice for learning to rank lists of documents, with binary or graded relevance. The value is an upper
    bound on scale·(1 − NDCG) for binary relevance, and the weighted sum of such bounds over the grades otherwise.

    Parameters
    ----------
    k : int, optional
        Cut-off: only the first k places count. None counts all places.
    gain : {"exp2", "linear"} or callable, default "exp2"
        What a grade is worth, as in `rankwise.NDCG`. "exp2" is 2^grade − 1.
    {torch_scale}
    {torch_options}

    See Also
    --------
    RankHingeLoss : The formula, and other losses.
    rankwise.NDCG : The loss itself, with the definition of gains and discounts.

    Examples
    --------
    >>> import torch
    >>> from rankwise.torch import NDCGHingeLoss
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 1.0, 0.0])  # of a network, for two queries
    >>> grades, query = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([7, 7, 7, 9, 9])
    >>> round(NDCGHingeLoss()(scores, grades, qid=query).item(), 4)
    1.3189
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

    c_k is a soft count of the negatives j above the k-th positive. The value approximates the loss itself (1 − AP for
    "ap"): it is continuous and bounded, but not convex. See `rankwise.smooth_loss` for w, D and C, and for grades.

    Parameters
    ----------
    {torch_loss}
    {torch_width}
    {torch_options}

    See Also
    --------
    ErrorDrivenLoss : Its updates do not vanish for positives far below the negatives.

    Notes
    -----
    Positives farther than width from every negative get no gradient, even if they are ranked wrong. Use this loss
    to refine a model that already ranks well.

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
    backward pass returns this update, which is not the derivative of the value. Do not compare it with finite
    differences or use it in a line search.

    Parameters
    ----------
    {torch_loss}
    {torch_width}
    interpolate : bool, default True
        Whether the precision of a positive counts as the highest precision among positives that score no higher. A loss
        whose discount is not positive, such as "auc", has no precision and is not interpolated.
    {torch_options}

    See Also
    --------
    SmoothRankLoss : A value whose true gradient is returned.
    RankSortLoss : For detectors whose positives have a quality, such as the IoU of a box.
    ScoreMemory : Ranks small batches among all samples of the data set.

    Notes
    -----
    The update of a positive is at most its share of the loss, however far it lies below the negatives, and does not
    vanish while it is ranked wrong. This suits fine-tuning after cross-entropy, noisy labels and, with a
    `ScoreMemory`, small batches.

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

    The value is Δ of the ranking R_w that scores induce (1 − AP for "ap"), with ties counted as errors. The target must
    be binary. The backward pass returns

        positive: (∇F(R_ε) − ∇F(R_w))/ε,   R_ε = argmax_R F(R) + ε·Δ(R*, R)
        negative: (∇F(R_w) − ∇F(R_−ε))/ε,  R_−ε = argmax_R F(R) − ε·Δ(R*, R)

    As ε falls, this tends to the gradient of the expected Δ. It is zero where the two rankings agree.

    Parameters
    ----------
    {torch_loss}
    epsilon : float, default 1.0
        Weight ε of Δ in the second ranking, positive. Larger values move more samples per step.
    update : {"positive", "negative"}, default "positive"
        "positive" moves away from a worse ranking, and "negative" towards a better one. The negative update is found by
        an exact dynamic programme, whose time grows with the number of misordered pairs.
    {torch_options}

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
    if not is_number(epsilon):
        raise TypeError(f"epsilon must be a number, got {type(epsilon).__name__}")
    if not 0.0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}; the update is divided by it")
    return float(epsilon if update == "positive" else -epsilon)


@documented
class RankSortLoss(RankLoss):
    """RankSort loss of a detector (Oksuz et al., ICCV 2021).

    It ranks positives above negatives, and positives among themselves by quality, such as the IoU of their boxes. It
    replaces the classification loss of a detector. It has two parts: minimise their sum.

        ranking_i = FP_i/(a_i + FP_i),  a_i = Σ_k H(s_k − s_i) over positives,  FP_i = Σ_j H(s_j − s_i) over negatives
        sorting_i = mean of 1 − t_k weighted by H(s_k − s_i), less the same over those of t_k ≥ t_i

    with H(x) = clip(x/(2·width) + ½, 0, 1). Each part is the mean over positives.

    Parameters
    ----------
    width : float, default 0.5
        Half the width of the ramp H by which scores are compared, in units of the scores.
    {torch_ignore_index}
    empty : {"zero", "skip", "error"}, default "zero"
        Treatment of queries without positives. "zero" counts them as 0 in the mean, "skip" leaves them out of the mean,
        and "error" raises ValueError. A query without negatives still has a sorting part.
    {torch_reduction}
    {torch_gather}
    {torch_backend}

    See Also
    --------
    ErrorDrivenLoss : For positives without a quality (AP-loss).

    Notes
    -----
    The gradient is an update, not the derivative of the value. A positive hands its ranking error to the negatives
    above it, and its sorting error to positives of lower quality above it, in proportion to H. It does not vanish while
    a positive is ranked wrong.

    Examples
    --------
    >>> import torch, rankwise.torch as rwt
    >>> scores, quality = torch.tensor([[2.0, 1.0, 0.0], [0.5, 0.0, 1.0]])  # IoU of positives, 0 of negatives
    >>> ranking, sorting = rwt.RankSortLoss()(scores, quality)
    >>> round(ranking.item(), 4), round(sorting.item(), 4)
    (0.2, 0.1667)
    """

    @takes_also(Asked, without="dim")
    def __init__(self, width: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__("ap", RankSort(width), **options)

    def forward(  # type: ignore[override]
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """
        Compute both parts of the loss of a batch.

        Parameters
        ----------
        scores : Tensor of shape (n,)
            Raw outputs of a model, in floating point, flat.
        target : Tensor of shape (n,)
            Quality of each positive, in (0, 1], such as the IoU of its box. Negatives have 0.
        {torch_mask}
        qid : Tensor of shape (n,), optional
            Integer image id of each sample, in any order. Each image is then a query of its own, and the parts are
            means over images.

        Returns
        -------
        ranking : Tensor
            Ranking part: a scalar tensor, or one value per query with reduction="none". The type is float32, or float64
            for float64 scores.
        sorting : Tensor
            Sorting part, of the same shape.
        """
        return rank_sort_of_batch(Batch(scores, target, mask, qid), posed("ap", self.surrogate), self.options)


@documented
class RetrievalLoss(RankLoss):
    """Rank loss for retrieval and metric learning: every embedding is a query.

    Each embedding of the batch ranks the others by similarity, or ranks reference embeddings. Those with the label of
    the query are relevant. The value is the mean rank loss over the queries.

    Call it as `loss(embeddings, labels)`, with a reference set as needed. See `forward`.

    Parameters
    ----------
    {torch_loss}
    surrogate : {"smooth", "error-driven", "hinge"} or Surrogate, optional
        How the rank loss is minimised: as in `SmoothRankLoss` (the default), in `ErrorDrivenLoss`, whose gradient is an
        update and not a derivative, or in `RankHingeLoss`; or a `rankwise.Surrogate`.
    scale : float, optional
        Weight of the rank loss in the hinge, 1 by default. 0.3 to 1 suits cosines. Other surrogates do not use it, and
        without a surrogate it is refused.
    width : float, default 0.05
        Half the width of the ramp of the other two surrogates, in units of similarity. 0.05 to 0.1 suits cosines. The
        hinge does not use it.
    similarity : {"cosine", "dot"}, default "cosine"
        How embeddings are compared. "cosine" normalises them first, and "dot" takes them as they are.
    empty : {"zero", "skip", "error"}, default "skip"
        Treatment of queries without positives (alone in their label) or without negatives. "zero" counts them as 0 in
        the mean, "skip" leaves them out of the mean, and "error" raises ValueError.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the values of the queries are combined. "none" returns one value per query.
    chunk_size : int, optional
        Number of queries whose similarities are held at a time. Memory is O(chunk_size·R), and backward computes the
        similarities again. None takes as many as fit in 256 MiB.
    gather : bool or "ddp", default False
        Whether to use the queries and references of all processes of torch.distributed. "ddp" multiplies gradients by
        the number of processes, because DistributedDataParallel averages them. With reduction="none", the values are
        those of this process's queries.
    {torch_backend}

    See Also
    --------
    SmoothRankLoss : For scores that a model gives directly.

    Notes
    -----
    On unseen alphabets of Omniglot, MAP@R was 0.361 with the smooth surrogate, 0.347 with the error-driven one and
    0.346 with the hinge, all with a width of 0.05 and a scale of 1. The smooth one was third of nine losses, within
    chance of the first.

    Examples
    --------
    >>> import torch, rankwise.torch as rwt
    >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.28, 0.96]])  # of a network
    >>> labels = torch.tensor([7, 7, 3])
    >>> round(rwt.RetrievalLoss("ap")(embeddings, labels).item(), 4)
    0.1667
    """

    @takes_also(Retrieval)
    def __init__(self, loss: LossLike = "ap", **options: Any) -> None:
        asked = Retrieval(**options)
        asked.check()
        surrogate, *parameters = asked.made()
        super().__init__(loss, surrogate(*parameters) if parameters else surrogate)
        self.options = asked

    def forward(  # type: ignore[override]
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
    ) -> Tensor:
        """
        Compute the loss of a batch of embeddings.

        Parameters
        ----------
        embeddings : Tensor of shape (B, d)
            One query per row, in floating point.
        labels : Tensor of shape (B,)
            Integer label of each embedding. Items with the label of a query are relevant to it.
        reference : Tensor of shape (R, d), optional
            Embeddings to rank, all of them for every query. Without them, each query ranks the other embeddings of the
            batch, and not itself.
        reference_labels : Tensor of shape (R,), optional
            Integer label of each reference. Required with reference.

        Returns
        -------
        Tensor
            The loss as a scalar tensor, or one value per query with reduction="none". The type is float32, or float64
            for float64 embeddings.
        """
        return retrieve(embeddings, labels, reference, reference_labels, self.loss, self.options)
