"""Rank losses as modules without parameters or state: the base classes, and the structured hinge."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.arguments import as_scale
from rankwise.metrics.gains import Gain
from rankwise.metrics.ndcg import NDCG
from rankwise.metrics.registry import LossLike, as_loss
from rankwise.torch.batches import Batch, Gather, check_options, loss_of_batch
from rankwise.torch.documented import documented_like
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.options import Goal, Options, key_of
from rankwise.torch.score_functions import structured_hinge


class RankLoss(torch.nn.Module):
    """A loss and its options, which are the keyword arguments of the function with the same meaning."""

    def __init__(self, loss: LossLike, options: dict[str, Any]) -> None:
        super().__init__()
        as_loss(loss)
        check_options(options["empty"], options["reduction"], options["gather"], options["backend"])
        self.loss = loss
        self.options = options

    def extra_repr(self) -> str:
        """
        List the loss and the options, for the printed form of the module.

        Returns
        -------
        str
            The loss, then each option as name=value.
        """
        return ", ".join([repr(self.loss), *(f"{name}={value!r}" for name, value in self.options.items())])


class ScoresLoss(RankLoss):
    """A loss that is called with scores and target."""

    def _goal(self) -> Goal:
        raise NotImplementedError

    @documented_like(structured_hinge)
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
        As in `structured_hinge`: scores.
        target : Tensor of the same shape as scores
            Relevance of each sample: booleans, or 0 and 1. Other numbers are grades, where the loss takes grades.
        As in `structured_hinge`: mask, qid, index, memory.

        Returns
        -------
        As in `structured_hinge`: Tensor.
        """
        asked = self.options
        rest = (asked["empty"], asked["reduction"], asked["backend"])
        options = Options(asked["ignore_index"], key_of(self.loss), *self._goal(), *rest)
        batch = Batch(scores, target, mask, qid, index)
        return loss_of_batch(batch, options, asked["dim"], asked["gather"], memory)


@documented_like(structured_hinge)
class RankHingeLoss(ScoresLoss):
    """
    Structured hinge of any rank loss.

        J = max_R scale·Δ(R*, R) + F(R) − F(R*)

    Δ(R*, R) is the loss of a ranking R against a perfect ranking R*, and F(R) says how well R agrees with the scores.
    The maximum is attained by the most violating ranking, which is found exactly. J is convex in the scores and an
    upper bound on scale·Δ of the ranking by scores.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    As in `structured_hinge`: loss, dim, scale, ignore_index, empty, reduction, gather, backend.

    See Also
    --------
    functional.structured_hinge : The same loss as a function.
    APHingeLoss : The hinge of average precision.
    NDCGHingeLoss : The hinge of NDCG, with a cut-off and a choice of gains.
    ErrorDrivenLoss : Bounded updates, for fine-tuning and for noisy labels.

    Notes
    -----
    The backward pass returns the semi-gradient: the gradient of J with the most violating ranking held fixed. It
    sums to zero for each query, so a constant added to all scores changes nothing.

    For networks that were trained with cross-entropy, start with `ErrorDrivenLoss`: see the notes of `APHingeLoss`.

    Examples
    --------
    Only the first hit of each list counts, so reciprocal rank is the loss. Each row is one list:

    >>> import torch
    >>> from rankwise.torch import RankHingeLoss
    >>> criterion = RankHingeLoss("mrr", dim=1)
    >>> scores = torch.tensor([[2.0, 1.0, 0.5, 0.0]], requires_grad=True)  # the output of a network
    >>> loss = criterion(scores, torch.tensor([[0, 1, 0, 1]]))
    >>> loss.backward()
    >>> loss.item(), scores.grad.tolist()
    (2.25, [[1.0, -0.5, 0.5, -1.0]])
    """

    def __init__(
        self,
        loss: LossLike = "ap",
        *,
        dim: int | None = None,
        scale: float = 1.0,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        options = {
            "dim": dim, "scale": scale, "ignore_index": ignore_index, "empty": empty, "reduction": reduction,
            "gather": gather, "backend": backend,
        }  # fmt: skip
        super().__init__(loss, options)
        as_scale(scale)

    def _goal(self) -> Goal:
        return Goal(as_scale(self.options["scale"]), "")


@documented_like(structured_hinge)
class APHingeLoss(RankHingeLoss):
    """
    Structured hinge of average precision (AP).

    It takes the place of `torch.nn.BCEWithLogitsLoss` where positives are to be ranked above negatives. The value is an
    upper bound on scale·(1 − AP), convex in the scores. Scores are raw outputs: no sigmoid is needed. For networks that
    were trained with cross-entropy, start with `ErrorDrivenLoss`: see Notes.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    As in `structured_hinge`: dim, scale, ignore_index, empty, reduction, gather, backend.

    See Also
    --------
    functional.structured_hinge : The same loss as a function, with loss="ap".
    ErrorDrivenLoss : Bounded updates, for fine-tuning after cross-entropy and for noisy labels.
    SmoothRankLoss : A continuous version of 1 − AP with its true gradient, to refine a good model.
    DirectLoss : The value 1 − AP itself, with an estimate of its gradient.
    NDCGHingeLoss : For graded relevance and ranked lists.
    ScoreMemory : Ranks small batches among all samples of the data set.

    Notes
    -----
    The further a positive lies below the negatives, the more it counts, without limit. A wrong label can therefore
    dominate the loss; `ErrorDrivenLoss` limits each positive to its share. The AP of a small batch is easier than that
    of the data set, so use large batches or a `ScoreMemory`.

    In `rankwise bench finetune` (rare classes of CIFAR-10, after cross-entropy), this loss has 0.023 less test AP than
    as many further epochs of cross-entropy, and 0.051 less with wrong labels. `ErrorDrivenLoss` with a `ScoreMemory`
    has 0.0065 and 0.0075 more, on other seeds.

    Examples
    --------
    A training step for one binary task:

    >>> import torch
    >>> from rankwise.torch import APHingeLoss
    >>> model = torch.nn.Linear(3, 1)
    >>> optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> criterion = APHingeLoss()
    >>> inputs, target = torch.eye(4, 3), torch.tensor([0, 1, 0, 1])
    >>> optimiser.zero_grad()
    >>> criterion(model(inputs).squeeze(1), target).backward()
    >>> optimiser.step()

    Several labels per sample, one query per label:

    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 3.0], [0.5, 1.0], [0.0, 2.0]], requires_grad=True)
    >>> labels = torch.tensor([[0, 1], [1, 0], [0, 1], [1, 0]])
    >>> values = APHingeLoss(dim=0, reduction="none")(logits, labels)
    >>> [round(value, 4) for value in values.tolist()]
    [2.25, 4.5833]
    """

    def __init__(
        self,
        *,
        dim: int | None = None,
        scale: float = 1.0,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        super().__init__(
            "ap", dim=dim, scale=scale, ignore_index=ignore_index, empty=empty, reduction=reduction, gather=gather,
            backend=backend,
        )  # fmt: skip


@documented_like(structured_hinge)
class NDCGHingeLoss(RankHingeLoss):
    """
    Structured hinge of normalised discounted cumulative gain (NDCG).

    The usual choice for learning to rank lists of documents, with binary or graded relevance. The value is an upper
    bound on scale·(1 − NDCG) for binary relevance, and the weighted sum of such bounds over the grades otherwise.

    Call it as `loss(scores, target)`, with mask, qid, or index and memory as needed. See `forward`.

    Parameters
    ----------
    k : int, optional
        Cut-off: only the first k places count. None counts all places.
    gain : {"exp2", "linear"} or callable, default "exp2"
        What a grade is worth, as in `rankwise.NDCG`. "exp2" is 2^grade − 1.
    As in `structured_hinge`: dim, scale, ignore_index, empty, reduction, gather, backend.

    See Also
    --------
    functional.structured_hinge : The same loss as a function, with loss="ndcg".
    APHingeLoss : For binary relevance measured by average precision.
    SmoothRankLoss : A continuous version of 1 − NDCG with its true gradient.
    rankwise.NDCG : The loss itself, with the definition of gains and discounts.

    Examples
    --------
    Two queries of different lengths in one flat batch, with grades from 0 to 2:

    >>> import torch
    >>> from rankwise.torch import NDCGHingeLoss
    >>> criterion = NDCGHingeLoss()
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 1.0, 0.0], requires_grad=True)  # the output of a network
    >>> grades, query = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([7, 7, 7, 9, 9])
    >>> loss = criterion(scores, grades, qid=query)
    >>> loss.backward()
    >>> round(loss.item(), 4)
    1.3189
    """

    def __init__(
        self,
        *,
        k: int | None = None,
        gain: Gain = "exp2",
        dim: int | None = None,
        scale: float = 1.0,
        ignore_index: int | None = None,
        empty: str = "zero",
        reduction: str = "mean",
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        plain = k is None and gain == "exp2"
        super().__init__(
            "ndcg" if plain else NDCG(k=k, gain=gain), dim=dim, scale=scale, ignore_index=ignore_index, empty=empty,
            reduction=reduction, gather=gather, backend=backend,
        )  # fmt: skip
