"""Batches of several processes joined along their first dimension, with the gradient that one process would have.

A rank loss is not a sum over samples: the union must be ranked as one. Every process ranks the union of all scores,
which costs less than sending them, and keeps the gradient of its own part, so backward sends nothing. If one process
raises, all raise, and none is left waiting. Compiled graphs break here and run eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from rankwise.torch.batches import Batch
from rankwise.torch.layout import compute_dtype

_Found = TypeVar("_Found")
_MOST_DIMS = 6
_SCORES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# A target of any dtype is exact in one of these, and in those after it.
_TARGETS = (torch.bool, torch.int64, torch.float64)
_NO_YES = (False, True)


@torch.compiler.disable
def join(batch: Batch, dim: int, times_world: bool) -> Batch:
    """The batches of all processes, joined along dimension 0 in the order of their ranks.

    Rows of different widths are padded and masked. times_world: multiply gradients by the number of processes. Every
    process has the values of all queries, and its scores receive the gradient of what it computes from them. With
    reduction="none" all processes must therefore weigh the values alike.
    """
    scores, target, mask, qid, index = batch
    alike = {
        "dtype": (compute_dtype(scores), _SCORES),
        "use of mask=": (mask is not None, _NO_YES),
        "use of qid=": (qid is not None, _NO_YES),
        "use of memory=": (index is not None, _NO_YES),
    }
    shapes, kinds = _meet(scores, alike, 2 if target.is_floating_point() else int(target.dtype != torch.bool))
    ranked = dim % scores.dim()
    widths = {shape[ranked] for shape in shapes} if ranked > 0 else set()
    others = {tuple(size for at, size in enumerate(shape) if at not in (0, ranked)) for shape in shapes}
    if len(others) > 1:
        raise ValueError(
            f"with gather, scores may differ between processes only in dimensions 0 and {ranked}, got {shapes}"
        )
    target = target.to(_TARGETS[max(kinds)])
    mask = None if mask is None else mask.bool()
    if len(widths) > 1:
        mask = torch.ones_like(target, dtype=torch.bool) if mask is None else mask
        padding = [0, 0] * (scores.dim() - 1 - ranked) + [0, max(widths) - scores.shape[ranked]]
        scores, target, mask = (torch.nn.functional.pad(one, padding) for one in (scores, target, mask))
    sizes = [shape[0] for shape in shapes]
    rest = (mask, *(None if one is None else one.to(torch.int64) for one in (qid, index)))
    return Batch(
        _Join.apply(scores, sizes, compute_dtype(scores), False, len(sizes) if times_world else 1),
        gather_parts(target, sizes),
        *(None if one is None else gather_parts(one, sizes) for one in rest),
    )


@torch.compiler.disable
def join_embeddings(embeddings: Tensor, labels: Tensor, are_queries: bool) -> tuple[Tensor, Tensor, int]:
    """Embeddings (n, d) and labels (n,) of all processes, and where those of this one begin.

    are_queries: whether these are the queries themselves, in all processes or in none. Every process must run
    backward, because the gradients of all processes are added up.
    """
    needs_gradient = embeddings.requires_grad and torch.is_grad_enabled()
    alike = {
        "dtype": (embeddings.dtype, _SCORES),
        "need of a gradient": (needs_gradient, _NO_YES),
        "use of reference=": (not are_queries, _NO_YES),
    }
    shapes, _ = _meet(embeddings, alike)
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(f"with gather, embeddings must have the same width in all processes, got {shapes}")
    sizes = [shape[0] for shape in shapes]
    joined = _Join.apply(embeddings, sizes, embeddings.dtype, True, 1)
    return joined, gather_parts(labels.to(torch.int64), sizes), _own_part(sizes).start


@torch.compiler.disable
def sum_over_processes(value: Tensor) -> Tensor:
    """The sum of a number over all processes; each has the gradient of its own."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total + (value - value.detach())


@torch.compiler.disable
def together(run: Callable[[], _Found], device: torch.device) -> _Found:
    """Return run() if no process raises; if one raises, all raise."""
    found: list[_Found] = []
    error = None
    try:
        found.append(run())
    except Exception as raised:
        error = raised
    text = b"" if error is None else (str(error) or type(error).__name__).encode()
    sizes = [numbers[0] for numbers in tell_all([len(text)], device)]
    if not any(sizes):
        return found[0]
    texts = gather_parts(torch.tensor(list(text), dtype=torch.uint8, device=device), sizes)
    if error is not None:
        raise error
    first = next(rank for rank, size in enumerate(sizes) if size)
    raise ValueError(f"process {first}: {bytes(texts[: sizes[first]].tolist()).decode()}")


def _meet(
    values: Tensor, alike: Mapping[str, tuple[Any, Sequence[Any]]], number: int = 0
) -> tuple[list[tuple[int, ...]], list[int]]:
    """The shape of every process's values, and its number; raises in all processes if they cannot be joined.

    alike: by name, a value that must be the same in all processes, and the values it can take.
    """
    if values.dim() > _MOST_DIMS:
        raise ValueError(f"gather takes tensors of at most {_MOST_DIMS} dimensions, got {values.dim()}; reshape them")
    alike = {"number of dimensions": (values.dim(), range(_MOST_DIMS + 1)), **alike}
    size = list(values.shape) + [0] * (_MOST_DIMS - values.dim())
    of_all = tell_all([number, *(choices.index(own) for own, choices in alike.values()), *size], values.device)
    for at, (name, (_, choices)) in enumerate(alike.items(), start=1):
        if len({one[at] for one in of_all}) > 1:
            raise ValueError(
                f"with gather, all processes must have the same {name}, got {[choices[one[at]] for one in of_all]}"
            )
    begin = 1 + len(alike)
    return [tuple(one[begin : begin + values.dim()]) for one in of_all], [one[0] for one in of_all]


def tell_all(numbers: list[int], device: torch.device) -> list[list[int]]:
    """The numbers that each process sends to all others, by process."""
    own = torch.tensor(numbers, dtype=torch.int64, device=device)
    received = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(received, own)
    by_process: list[list[int]] = torch.stack(received).tolist()
    return by_process


def gather_parts(values: Tensor, sizes: list[int]) -> Tensor:
    """Join parts of unequal length: each is padded to the longest and sent as bytes."""
    padded = values.new_zeros(max(sizes), *values.shape[1:])
    padded[: values.shape[0]] = values
    parts = [torch.empty_like(padded) for _ in sizes]
    if padded.numel() > 0:
        dist.all_gather([part.view(torch.uint8) for part in parts], padded.view(torch.uint8))
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


class _Join(torch.autograd.Function):
    """Values of all processes, joined in this type. Each process takes its own part of their gradient.

    summed: every process has only a share of that gradient. factor: multiplies it.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, sizes: list[int], dtype: torch.dtype, summed: bool, factor: int) -> Tensor:
        ctx.part, ctx.dtype, ctx.summed, ctx.factor = _own_part(sizes), values.dtype, summed, factor
        return gather_parts(values.detach().to(dtype), sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (total,) = grads
        if ctx.summed:
            total = total.to(compute_dtype(total), memory_format=torch.contiguous_format, copy=True)
            dist.all_reduce(total)
        return (total[ctx.part] * ctx.factor).to(ctx.dtype), None, None, None, None


def _own_part(sizes: list[int]) -> slice:
    """Where the part of this process is among parts of these sizes."""
    rank = dist.get_rank()
    return slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
