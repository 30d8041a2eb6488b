"""Rank losses as modules without parameters or state: options when made, tensors when called."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.gains import Gain
from rankwise.inputs import as_scale
from rankwise.losses import NDCG, LossLike, as_loss
from rankwise.smooth import error_driven_way
from rankwise.torch.batches import Batch, Gather, check_options, loss_of_batch
from rankwise.torch.embedding_memory import EmbeddingMemory
from rankwise.torch.functional import check_update
from rankwise.torch.memory import ScoreMemory
from rankwise.torch.outcome import Goal, Options, soft_goal
from rankwise.torch.registry import key_of
from rankwise.torch.retrieval import check_retrieval, goal_of, retrieval_loss


class _RankLoss(torch.nn.Module):
    """A loss and the options of its functional twin."""

    def __init__(self, loss: LossLike, **options: Any) -> None:
        super().__init__()
        as_loss(loss)
        check_options(options["empty"], options["reduction"], options["gather"], options["backend"])
        self.loss = loss
        self.options = options

    def extra_repr(self) -> str:
        """The loss and the options."""
        return ", ".join([repr(self.loss), *(f"{name}={value!r}" for name, value in self.options.items())])


class _ScoresLoss(_RankLoss):
    """A loss of scores and target."""

    def _goal(self) -> Goal:
        raise NotImplementedError

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
        """The loss of one batch, or of all samples in the memory, of which the batch has these indices."""
        asked = self.options
        rest = (asked["empty"], asked["reduction"], asked["backend"])
        options = Options(asked["ignore_index"], key_of(self.loss), *self._goal(), *rest)
        batch = Batch(scores, target, mask, qid, index)
        return loss_of_batch(batch, options, asked["dim"], asked["gather"], memory)


class RankHingeLoss(_ScoresLoss):
    """The structured hinge of a rank loss, J = max_R scale·Δ(R*, R) + F(R) − F(R*).

    Called with scores and target of one shape, and mask= or qid=, or index= and memory=. Scores (n,) are one query.
    Scores of two dimensions or more need dim: on (n, C), dim=0 ranks each column's samples, one query a class; dim=1
    (or −1) takes each row for one list.

    Parameters
    ----------
    loss, dim, scale, ignore_index, empty, reduction, gather, backend
        As in `functional.structured_hinge`.

    Examples
    --------
    >>> scores = torch.tensor([[2.0, 1.0, 0.5, 0.0]])
    >>> round(RankHingeLoss("mrr", dim=1)(scores, torch.tensor([[0, 1, 0, 1]])).item(), 4)
    2.25
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
        super().__init__(
            loss, dim=dim, scale=scale, ignore_index=ignore_index, empty=empty, reduction=reduction, gather=gather,
            backend=backend,
        )  # fmt: skip
        as_scale(scale)

    def _goal(self) -> Goal:
        return Goal(as_scale(self.options["scale"]), "")


class APHingeLoss(RankHingeLoss):
    """The structured hinge of average precision.

    Parameters
    ----------
    **options
        Those of `RankHingeLoss` but loss; scores of two dimensions or more need dim.

    Examples
    --------
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0], requires_grad=True)
    >>> APHingeLoss()(scores, torch.tensor([0, 1, 0, 1])).item()
    2.25
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("ap", **options)


class NDCGHingeLoss(RankHingeLoss):
    """The structured hinge of NDCG.

    Parameters
    ----------
    k : int, optional
        The last place that counts; None for all of them.
    gain : {"exp2", "linear"} or callable
        What a grade is worth, as in `rankwise.NDCG`.
    **options
        Those of `RankHingeLoss` but loss; scores of two dimensions or more need dim.
    """

    def __init__(self, *, k: int | None = None, gain: Gain = "exp2", **options: Any) -> None:
        plain = k is None and gain == "exp2"
        super().__init__("ndcg" if plain else NDCG(k=k, gain=gain), **options)


class DirectLoss(_ScoresLoss):
    """A rank loss itself, Δ of the ranking by scores, with the gradient of direct loss minimisation.

    Called as `RankHingeLoss` is: scores of two dimensions or more need dim.

    Parameters
    ----------
    loss, epsilon, update, dim, ignore_index, empty, reduction, gather, backend
        As in `functional.direct_loss`.
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
        super().__init__(
            loss, epsilon=epsilon, update=update, dim=dim, ignore_index=ignore_index, empty=empty, reduction=reduction,
            gather=gather, backend=backend,
        )  # fmt: skip
        check_update(loss, epsilon, update)

    def _goal(self) -> Goal:
        update = self.options["update"]
        return Goal(check_update(self.loss, self.options["epsilon"], update), update)


class SmoothRankLoss(_ScoresLoss):
    """A rank loss with its comparisons softened over a width, and its true gradient.

    Called as `RankHingeLoss` is: scores of two dimensions or more need dim.

    Parameters
    ----------
    loss, width, dim, ignore_index, empty, reduction, gather, backend
        As in `functional.smooth_loss`.

    Examples
    --------
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0])
    >>> round(SmoothRankLoss("ndcg", width=0.5)(scores, torch.tensor([0, 1, 0, 1])).item(), 4)
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
        super().__init__(
            loss, width=width, dim=dim, ignore_index=ignore_index, empty=empty, reduction=reduction, gather=gather,
            backend=backend,
        )  # fmt: skip
        self._goal()

    def _goal(self) -> Goal:
        return soft_goal(self.loss, self.options["width"], "smooth")


class ErrorDrivenLoss(_ScoresLoss):
    """The error-driven loss, AP-loss for "ap": its gradient is an update rule, not the derivative of the value.

    Called as `RankHingeLoss` is: scores of two dimensions or more need dim.

    Parameters
    ----------
    loss, width, interpolate, dim, ignore_index, empty, reduction, gather, backend
        As in `functional.error_driven_loss`.

    Examples
    --------
    >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.0])
    >>> ErrorDrivenLoss(width=0.5)(scores, torch.tensor([0, 1, 0, 1])).item()
    0.5
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
        super().__init__(
            loss, width=width, interpolate=interpolate, dim=dim, ignore_index=ignore_index, empty=empty,
            reduction=reduction, gather=gather, backend=backend,
        )  # fmt: skip
        self._goal()

    def _goal(self) -> Goal:
        return soft_goal(self.loss, self.options["width"], error_driven_way(self.options["interpolate"]))


class RetrievalLoss(_RankLoss):
    """A rank loss with every embedding as a query against the others, or against reference embeddings.

    Called with embeddings (B, d) and labels (B,), and reference (R, d) with reference_labels (R,), or a memory, if
    there are any; arguments are those of `functional.retrieval_loss`.
    """

    def __init__(
        self,
        loss: LossLike = "ap",
        *,
        surrogate: str = "hinge",
        scale: float = 1.0,
        width: float = 0.1,
        similarity: str = "cosine",
        empty: str = "skip",
        reduction: str = "mean",
        chunk_size: int | None = None,
        gather: Gather = False,
        backend: str = "auto",
    ) -> None:
        super().__init__(
            loss, surrogate=surrogate, scale=scale, width=width, similarity=similarity, empty=empty,
            reduction=reduction, chunk_size=chunk_size, gather=gather, backend=backend,
        )  # fmt: skip
        goal_of(loss, surrogate, scale, width)
        check_retrieval(similarity, chunk_size)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        memory: EmbeddingMemory | None = None,
    ) -> Tensor:
        """The loss of one batch."""
        given: dict[str, Any] = {"reference": reference, "reference_labels": reference_labels, "memory": memory}
        return retrieval_loss(embeddings, labels, self.loss, **given, **self.options)
