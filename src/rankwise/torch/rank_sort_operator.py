"""RankSort as one PyTorch operator: two values, and the update of each by sample.

It can be compiled (a fake kernel gives the shapes). Backward multiplies the updates found in the forward pass, and
cannot be differentiated again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rankwise.arguments import NotFiniteError
from rankwise.queries import as_queries, group
from rankwise.surrogates.rank_sort import solve_rank_sort
from rankwise.torch.layout import check_samples, compute_dtype, not_finite, precise
from rankwise.torch.operator import OnlyOnce
from rankwise.torch.options import Outcome, share_of_query
from rankwise.torch.tensor_rank_sort import Detections, solve_in_tensors

_Outputs = tuple[Tensor, Tensor, Tensor]
_NO_GRADIENTS = (None,) * 8  # of all arguments after the scores


class Given(NamedTuple):
    """The tensors of a call, each (n,); mask and qid are optional."""

    scores: Tensor
    target: Tensor
    mask: Tensor | None
    qid: Tensor | None


def check_flat(given: Given) -> None:
    """Raise if shapes, dtypes or devices do not agree."""
    scores = given.scores
    if getattr(scores, "ndim", 1) > 1:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} but must be flat, (n,); pass scores.flatten(), target.flatten() "
            "and, for several images, qid= with the image of each sample"
        )
    check_samples(*given, None)


# Written out: older versions of PyTorch do not read annotations that are strings.
_SCHEMA = (
    "(Tensor scores, Tensor target, Tensor? mask, Tensor? qid, int? ignore_index, float width, str empty, "
    "str reduction, str backend) -> (Tensor, Tensor, Tensor)"
)


@torch.library.custom_op("rankwise::rank_sort", mutates_args=(), schema=_SCHEMA)
def rank_sort(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None,
    qid: Tensor | None,
    ignore_index: int | None,
    width: float,
    empty: str,
    reduction: str,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Values (2,) and updates (2, n).

    With reduction="none" and qid, values are (2, Q), and the query of each sample is returned too.
    """
    found = _detections(Given(scores, target, mask, qid), ignore_index)
    in_core = backend == "core" or (backend == "auto" and scores.device.type == "cpu")
    outcome, query = (_solve_in_core if in_core else solve_in_tensors)(found, width)
    query = torch.empty(0, dtype=torch.int64, device=scores.device) if query is None else query
    if empty == "error" and not bool(outcome.filled.all()):
        _refuse_empty(outcome.filled, query, qid)
    values, gradients = outcome.values, outcome.gradient
    if reduction == "none":
        return values.to(gradients.dtype).view((2,) if qid is None else values.shape), gradients, query
    if values.shape[1] == 1:
        return values.sum(1, dtype=gradients.dtype), gradients, query[:0]
    share = share_of_query(outcome.filled, empty, reduction)
    return (values * share).sum(1).to(gradients.dtype), gradients.mul_(share), query[:0]


@rank_sort.register_fake
def _(
    scores: Tensor, target: Tensor, mask: Any, qid: Any, ignore_index: Any, width: float, empty: str, reduction: str,
    backend: str,
) -> _Outputs:  # fmt: skip
    each, dtype = reduction == "none", compute_dtype(scores)
    shape: tuple[Any, ...] = (2, torch.library.get_ctx().new_dynamic_size()) if each and qid is not None else (2,)
    return (
        scores.new_empty(shape, dtype=dtype),
        scores.new_empty((2, scores.shape[0]), dtype=dtype),
        scores.new_empty(scores.shape[0] if each and qid is not None else 0, dtype=torch.int64),
    )


def _detections(given: Given, ignore_index: int | None) -> Detections:
    """The samples of a call; raises for qualities outside [0, 1]."""
    scores, target, mask, qid = given
    valid = None if mask is None else mask.bool()
    if ignore_index is not None:
        labelled = target != ignore_index
        valid = labelled if valid is None else valid & labelled
    # NumPy has no halves that hold them exactly.
    quality = target if target.dtype in (torch.float32, torch.float64) else target.to(precise(target.device))
    if valid is not None:
        quality = torch.where(valid, quality, 0.0)
    low, high = quality.aminmax() if quality.numel() > 0 else (torch.zeros(()), torch.ones(()))
    if not bool((low >= 0) & (high <= 1)):
        k = int((~((quality >= 0) & (quality <= 1))).nonzero()[0])
        raise ValueError(
            f"target[{k}] is {quality[k].item()}, but the quality of a positive, such as its IoU, must be in (0, 1] "
            "and that of a negative 0; clamp it, or pass ignore_index= for a value that means no label"
        )
    return Detections(scores.detach().to(compute_dtype(scores)), quality, valid, qid)


def _solve_in_core(found: Detections, width: float) -> tuple[Outcome, Tensor | None]:
    """As `solve_in_tensors`, by the compiled core."""
    flat, quality, valid, qid = (None if one is None else one.cpu().numpy() for one in found)
    assert flat is not None
    assert quality is not None
    n, grouping = flat.shape[0], None
    at: Any = slice(None)
    starts = np.array([0, n])
    if qid is not None:
        grouping = group(qid, n)
        at, starts = grouping.gather(np.arange(n)), grouping.starts
    if valid is not None:
        kept = np.flatnonzero(valid[at])
        at, starts = kept if grouping is None else at[kept], np.searchsorted(kept, starts)
    own = np.ascontiguousarray(quality[at])
    queries = as_queries(own > 0, starts)
    try:
        solved = solve_rank_sort(np.ascontiguousarray(flat[at]), queries, own, width, torch.get_num_threads())
    except NotFiniteError as error:
        raise not_finite(found.scores, found.valid) or error from None  # names the place in the tensor that was given
    device = found.scores.device
    gradients, query = torch.from_numpy(solved.gradients), None
    if not isinstance(at, slice):
        gradients = gradients.new_zeros(2, n).index_copy_(1, torch.from_numpy(at), gradients)
    if grouping is not None:
        query = torch.from_numpy(grouping.scatter(np.repeat(np.arange(starts.size - 1), np.diff(grouping.starts))))
        query = query.to(device)
    values = torch.from_numpy(solved.values).to(device, precise(device))
    return Outcome(values, torch.from_numpy(queries.counts[0] > 0).to(device), gradients.to(device)), query


def _refuse_empty(filled: Tensor, query: Tensor, qid: Tensor | None) -> None:
    """Raise for the first query without positives."""
    q = int((~filled).nonzero()[0])
    which = "the query" if qid is None else f"the query with qid {int(qid[query == q][0])}"
    raise ValueError(f"{which} has no positives and so no loss; remove it, or pass empty='zero' or empty='skip'")


def _update(grad: Tensor, gradients: Tensor, query: Tensor, scores: Tensor) -> Tensor:
    """The updates (2, n), multiplied by the incoming gradient of each value, or of its query's value, and added."""
    by_sample = grad[:, None] if grad.dim() == 1 else grad[:, query]
    return (by_sample * gradients).sum(0).to(scores.dtype)


class _Update(OnlyOnce):
    """`_update`, once."""

    @staticmethod
    def forward(grad: Tensor, gradients: Tensor, query: Tensor, scores: Tensor) -> Tensor:
        return _update(grad, gradients, query, scores)


class RankSort(torch.autograd.Function):
    """`rank_sort` with its updates."""

    # Separate arguments: the compiler counts them.
    @staticmethod
    def forward(
        scores: Tensor,
        target: Tensor,
        mask: Tensor | None,
        qid: Tensor | None,
        ignore_index: int | None,
        width: float,
        empty: str,
        reduction: str,
        backend: str,
    ) -> _Outputs:
        found: _Outputs = rank_sort(scores, target, mask, qid, ignore_index, width, empty, reduction, backend)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: _Outputs) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> Any:
        scaled = _Update.apply if torch.is_grad_enabled() else _update
        return scaled(grad, *ctx.saved_tensors), *_NO_GRADIENTS
