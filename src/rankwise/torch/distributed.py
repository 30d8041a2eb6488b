"""Batches of several processes joined along their first dimension, with the gradient that one process would have.

A rank loss is not a sum over samples: the union must be ranked as one. Every process ranks the union of all scores,
which costs less than sending them, and keeps the gradient of its own part, so nothing is sent on the way back.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from rankwise.torch.layout import compute_dtype

__all__ = ["Gather", "is_distributed", "join", "join_embeddings", "rank_total"]

Gather = bool | Literal["ddp"]
_MOST_DIMS = 6


def is_distributed(gather: Gather) -> bool:
    """Whether there are several processes to gather from."""
    return bool(gather) and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def join(
    scores: Tensor, target: Tensor, mask: Tensor | None, qid: Tensor | None, dim: int, times_world: bool
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Scores, target, mask and qid of all processes, joined along dimension 0 in the order of their ranks.

    Where queries are rows of different widths, narrower ones are padded and masked. times_world: multiply gradients by
    the number of processes.
    """
    shapes = _shapes(scores, mask is not None, qid is not None)
    ranked = dim % scores.dim()
    widths = {shape[ranked] for shape in shapes} if ranked > 0 else set()
    others = {tuple(size for at, size in enumerate(shape) if at not in (0, ranked)) for shape in shapes}
    if len(others) > 1:
        raise ValueError(f"scores of the processes differ beyond dimensions 0 and {ranked}: {shapes}")
    if len(widths) > 1:
        mask = torch.ones_like(target, dtype=torch.bool) if mask is None else mask.bool()
        scores, target, mask = (_widen(one, ranked, max(widths)) for one in (scores, target, mask))
    sizes = [shape[0] for shape in shapes]
    return (
        _JoinScores.apply(scores, sizes, times_world),
        _all_gather(target.double(), sizes),
        None if mask is None else _all_gather(mask.to(torch.uint8), sizes).bool(),
        None if qid is None else _all_gather(qid.to(torch.int64), sizes),
    )


def join_embeddings(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, int]:
    """Embeddings (n, d) and labels (n,) of all processes, and where those of this one begin.

    Every process must go backward: the gradients that all of them have of these embeddings are added up.
    """
    shapes = _shapes(embeddings, False, False)
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(f"embeddings of the processes differ in width: {shapes}")
    sizes = [shape[0] for shape in shapes]
    return _JoinEmbeddings.apply(embeddings, sizes), _all_gather(labels, sizes), sum(sizes[: dist.get_rank()])


def rank_total(value: Tensor) -> Tensor:
    """The sum of a number over all processes, without gradient."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total


def _shapes(scores: Tensor, masked: bool, ragged: bool) -> list[tuple[int, ...]]:
    """The shape of every process's scores; refuses, in all of them, what cannot be joined."""
    if scores.dim() > _MOST_DIMS:
        raise ValueError(f"gather takes scores of up to {_MOST_DIMS} dimensions, got {scores.dim()}")
    size = list(scores.shape) + [0] * (_MOST_DIMS - scores.dim())
    own = torch.tensor(
        [scores.dim(), masked, ragged, compute_dtype(scores).itemsize, *size], dtype=torch.int64, device=scores.device
    )
    told = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(told, own)
    facts = [one.tolist() for one in told]
    for at, what in enumerate(("number of dimensions", "use of mask=", "use of qid=", "precision")):
        if len({fact[at] for fact in facts}) > 1:
            raise ValueError(f"the processes differ in the {what} of what they gather: {[fact[at] for fact in facts]}")
    return [tuple(fact[4 : 4 + fact[0]]) for fact in facts]


def _widen(values: Tensor, dim: int, width: int) -> Tensor:
    padding = [0, 0] * (values.dim() - 1 - dim) + [0, width - values.shape[dim]]
    return torch.nn.functional.pad(values, padding)


def _all_gather(values: Tensor, sizes: list[int]) -> Tensor:
    """Parts of unequal length, joined: padded for the journey to the longest."""
    padded = values.new_zeros(max(sizes), *values.shape[1:])
    padded[: values.shape[0]] = values
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


class _JoinScores(torch.autograd.Function):
    """Joined scores, whose gradient every process knows whole: each takes its own part of it."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, sizes: list[int], times_world: bool) -> Tensor:
        rank = dist.get_rank()
        ctx.part = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
        ctx.factor = len(sizes) if times_world else 1
        ctx.dtype = scores.dtype
        return _all_gather(scores.detach().to(compute_dtype(scores)), sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (grads[0][ctx.part] * ctx.factor).to(ctx.dtype), None, None


class _JoinEmbeddings(torch.autograd.Function):
    """Joined embeddings, of whose gradient every process has a share: each takes its own part of the sum."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, sizes: list[int]) -> Tensor:
        rank = dist.get_rank()
        ctx.part = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
        return _all_gather(embeddings.detach(), sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        total = grads[0].contiguous().clone()
        dist.all_reduce(total)
        return total[ctx.part], None
