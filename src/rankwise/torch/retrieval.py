"""Metric learning: every sample is a query that ranks the others by similarity; those with its label are relevant."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rankwise.arguments import check_known, is_whole
from rankwise.documenting import SHARED, documented
from rankwise.metrics.registry import LossLike
from rankwise.surrogates import ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.torch import operator
from rankwise.torch.arguments import Gather, checked, describe, takes_also
from rankwise.torch.batches import is_distributed
from rankwise.torch.layout import check_beside, check_per_row, check_tensor
from rankwise.torch.modules import RankLoss
from rankwise.torch.objective import Objective, objective_of, posed, queries_counted, refuse_empty

# Similarities held at a time, unless chunk_size says otherwise: 256 MiB of float32.
_MOST_HELD = 1 << 26


class Retrieval(NamedTuple):
    """The options of a loss of embeddings, with their defaults."""

    surrogate: str | Surrogate | None = None
    scale: float | None = None
    width: float = 0.05
    similarity: str = "cosine"
    empty: str = "skip"
    reduction: str = "mean"
    chunk_size: int | None = None
    gather: Gather = False
    backend: str = "auto"

    def made(self) -> tuple[Any, ...]:
        """Check all options; the surrogate as `posed` takes it."""
        checked(empty=self.empty, reduction=self.reduction, gather=self.gather, backend=self.backend)
        check_known("similarity", self.similarity, ("cosine", "dot"))
        size = self.chunk_size
        if size is not None and (not is_whole(size) or size < 1):
            raise ValueError(f"chunk_size must be a whole number of queries, at least 1, got {size!r}")
        if isinstance(self.surrogate, Surrogate):
            return (self.surrogate,)
        if self.surrogate is None and self.scale is not None:
            raise ValueError(
                "scale is the weight of the loss in the hinge, but without surrogate= the loss is smooth; pass "
                "surrogate='hinge' with it, or width= instead"
            )
        name = "smooth" if self.surrogate is None else self.surrogate
        scale = 1.0 if self.scale is None else self.scale
        named = {"smooth": (Smooth, self.width), "error-driven": (ErrorDriven, self.width), "hinge": (Hinge, scale)}
        check_known("surrogate", name, tuple(named))
        return named[name]


def retrieve(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None,
    reference_labels: Tensor | None,
    loss: LossLike,
    asked: Retrieval,
) -> Tensor:
    """The loss of embeddings that rank each other, or references."""
    objective = posed(loss, *asked.made())
    several = is_distributed(asked.gather)
    if several:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds
    prepared = partial(_prepare, embeddings, labels, reference, reference_labels, asked.similarity)
    queries, ranked, of_ranked, own = distributed.together(prepared, embeddings.device) if several else prepared()
    if several:
        ranked, of_ranked, first = distributed.join_embeddings(ranked, of_ranked, own == 0)
        own = None if own is None else first
    given = queries, labels, ranked, of_ranked
    step = asked.chunk_size or max(1, _MOST_HELD // max(ranked.shape[0], 1))

    def solve() -> tuple[Tensor, Tensor]:
        # The operator knows only the place of an empty query within its chunk.
        refuse = asked.empty == "error" and operator.is_plain(queries)
        empty = "zero" if refuse else asked.empty
        values, filled = _by_chunk(given, own, step, objective, empty, "none", asked.backend)
        if refuse:
            refuse_empty(filled, objective_of(objective).lacks(False))
        return values, filled

    values, filled = distributed.together(solve, embeddings.device) if several else solve()
    if several and asked.gather == "ddp":
        values = values.detach() + torch.distributed.get_world_size() * (values - values.detach())
    if asked.reduction == "none":
        return values
    total, count = values.sum(), queries_counted(filled, asked.empty)
    if several:
        total, count = distributed.sum_over_processes(total), distributed.sum_over_processes(count)
    return total if asked.reduction == "sum" else total / count.clamp(min=1)


def _prepare(
    embeddings: Tensor, labels: Tensor, reference: Tensor | None, reference_labels: Tensor | None, similarity: str
) -> tuple[Tensor, Tensor, Tensor, int | None]:
    """Queries and what they rank, with labels, checked and normalised; and which of these is the first query."""
    if (reference is None) != (reference_labels is None):
        raise ValueError("reference and reference_labels must be given together; pass both or neither")
    queries = _checked(embeddings, labels, "embeddings", "labels", similarity)
    if reference is None or reference_labels is None:
        return queries, queries, labels, 0
    ranked = _checked(reference, reference_labels, "reference", "reference_labels", similarity)
    if reference.shape[1] != embeddings.shape[1]:
        raise ValueError(
            f"reference has {reference.shape[1]} columns but embeddings have {embeddings.shape[1]}; make them equal"
        )
    check_beside("reference", reference, "embeddings", embeddings)
    if reference.dtype != embeddings.dtype:
        raise ValueError(
            f"reference is {reference.dtype} but embeddings are {embeddings.dtype}; convert one with .to()"
        )
    return queries, ranked, reference_labels, None


def _checked(embeddings: Tensor, labels: Tensor, name: str, name_of_labels: str, similarity: str) -> Tensor:
    check_tensor(name, embeddings)
    if embeddings.dim() != 2 or not embeddings.is_floating_point():
        raise ValueError(f"{name} must be (n, d) and floating point, got {tuple(embeddings.shape)}, {embeddings.dtype}")
    check_per_row(name_of_labels, labels, name, embeddings, booleans=True)
    if operator.is_plain(embeddings):  # otherwise the operator raises for the resulting similarities
        finite = embeddings.detach().isfinite().all(1)
        if not bool(finite.all()):
            row = int((~finite).nonzero()[0])
            raise ValueError(f"{name}[{row}] has entries that are not finite; look for the cause in the model")
    return torch.nn.functional.normalize(embeddings, dim=1) if similarity == "cosine" else embeddings


def _by_chunk(
    given: tuple[Tensor, ...], own: int | None, step: int, objective: Objective | str, *options: str
) -> tuple[Tensor, Tensor]:
    """Values of all queries and whether each counts, step queries at a time; query i is reference own + i."""

    def solve(begin: int, queries: Tensor, labels: Tensor, reference: Tensor, of_reference: Tensor) -> Any:
        target, mask = labels[:, None] == of_reference, None
        if own is not None:  # no query ranks itself
            mask = torch.ones_like(target)
            mask.diagonal(own + begin).fill_(False)
        return operator.reduced_loss(queries @ reference.T, target, mask, None, None, objective, *options)

    parts = []
    queries, labels, *reference = given
    again = queries.shape[0] > step and torch.is_grad_enabled()
    for begin in range(0, max(queries.shape[0], 1), step):
        part = partial(solve, begin)
        chunk = (queries[begin : begin + step], labels[begin : begin + step], *reference)
        parts.append(checkpoint(part, *chunk, use_reentrant=False) if again else part(*chunk))
    values, filled = (torch.cat(one) for one in zip(*parts, strict=True))
    return values, filled


_ENTRIES = """
embeddings : Tensor of shape (B, d)
    One query per row, in floating point.
labels : Tensor of shape (B,)
    Integer label of each embedding. Items with the label of a query are relevant to it.
reference : Tensor of shape (R, d), optional
    Embeddings to rank, all of them for every query. Without them, each query ranks the other embeddings of the batch,
    and not itself.
reference_labels : Tensor of shape (R,), optional
    Integer label of each reference. Required with reference.
surrogate : {"smooth", "error-driven", "hinge"} or Surrogate, optional
    How the rank loss is minimised, by default as in `SmoothRankLoss`.
scale : float, optional
    Weight of the rank loss in the hinge, 1 by default. 0.3 to 1 suits cosines. Only for surrogate="hinge".
width : float, default 0.05
    Half the width of the ramp of the other two surrogates, in units of similarity. 0.05 to 0.1 suits cosines.
similarity : {"cosine", "dot"}, default "cosine"
    How embeddings are compared. "cosine" normalises them first, and "dot" takes them as they are.
empty : {"zero", "skip", "error"}, default "skip"
    What to do with a query without positives (alone in its label) or without negatives, as in other losses.
chunk_size : int, optional
    Number of queries whose similarities are held at a time. Memory is O(chunk_size·R), and backward computes the
    similarities again. None takes as many as fit in 256 MiB.
gather : bool or "ddp", default False
    Whether to use the queries and references of all processes of torch.distributed; "ddp" for
    DistributedDataParallel, as in other losses. With reduction="none", the values are those of this process's queries.
"""
SHARED["retrieval_examples"] = """\
Examples
--------
>>> import torch, rankwise.torch as rwt
>>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.28, 0.96]])  # of a network
>>> labels = torch.tensor([7, 7, 3])"""
describe("retrieval", _ENTRIES)


@documented
class RetrievalLoss(RankLoss):
    """Rank loss for retrieval and metric learning: every embedding is a query.

    Each embedding of the batch ranks the others by similarity, or ranks reference embeddings. Those with the label of
    the query are relevant. The value is the mean rank loss over the queries.

    {retrieval_arguments}

    See Also
    --------
    SmoothRankLoss : For scores that a model gives directly.

    {retrieval_examples}
    >>> round(rwt.RetrievalLoss("ap")(embeddings, labels).item(), 4)
    0.1667
    """

    @takes_also(Retrieval)
    def __init__(self, loss: LossLike = "ap", **options: Any) -> None:
        asked = Retrieval(**options)
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

        {retrieval_function}
        """
        return retrieve(embeddings, labels, reference, reference_labels, self.loss, self.options)
