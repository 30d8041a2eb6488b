"""Batches of several processes joined along their first dimension, with the gradient that one process would have.

Every process ranks the union of all scores, which costs less than sending them, and keeps the gradient of its own part,
so backward sends nothing. If one process raises, all raise. Compiled graphs break here and run eagerly.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from rankwise.torch.batches import Batch
from rankwise.torch.layout import compute_dtype

_Found = TypeVar("_Found")
# A target of any dtype is exact in one of these, and in those after it.
_TARGETS = (torch.bool, torch.int64, torch.float64)


@torch.compiler.disable
def join(batch: Batch, dim: int, times_world: bool) -> Batch:
    """The batches of all processes, joined along dimension 0 in the order of their ranks.

    Rows of different widths are padded and masked. times_world: multiply gradients by the number of processes.
    """
    scores, target, mask, qid, index = batch
    alike = {
        "dtype": compute_dtype(scores),
        "number of dimensions": scores.dim(),
        "use of mask=": mask is not None,
        "use of qid=": qid is not None,
        "use of memory=": index is not None,
    }
    kind = 2 if target.is_floating_point() else int(target.dtype != torch.bool)
    shapes, kinds = zip(*_meet((tuple(scores.shape), kind), alike, scores.device), strict=True)
    ranked = dim % scores.dim()
    widths = {shape[ranked] for shape in shapes} if ranked > 0 else set()
    others = {tuple(size for at, size in enumerate(shape) if at not in (0, ranked)) for shape in shapes}
    if len(others) > 1:
        raise ValueError(
            f"with gather, scores may differ between processes only in dimensions 0 and {ranked}, got {[*shapes]}"
        )
    target = target.detach().to(_TARGETS[max(kinds)])
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

    are_queries: whether these are the queries themselves. Every process must run backward, which adds gradients up.
    """
    alike = {
        "dtype": embeddings.dtype,
        "width of embeddings": embeddings.shape[1],
        "need of a gradient": embeddings.requires_grad and torch.is_grad_enabled(),
        "use of reference=": not are_queries,
    }
    sizes = _meet(embeddings.shape[0], alike, embeddings.device)
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
    said = tell_all(None if error is None else str(error) or type(error).__name__, device)
    if error is not None:
        raise error
    for rank, text in enumerate(said):
        if text is not None:
            raise ValueError(f"process {rank}: {text}")
    return found[0]


def _meet(own: Any, alike: dict[str, Any], device: torch.device) -> list[Any]:
    """What each process says; raises in all processes unless they agree in what must be alike, by name."""
    of_all = tell_all((own, alike), device)
    for name in alike:
        given = [one[name] for _, one in of_all]
        if len(set(given)) > 1:
            raise ValueError(f"with gather, all processes must have the same {name}, got {given}")
    return [one for one, _ in of_all]


def tell_all(own: Any, device: torch.device) -> list[Any]:
    """What each process sends to all others, by process."""
    message = torch.frombuffer(bytearray(pickle.dumps(own)), dtype=torch.uint8).to(device)
    size = torch.tensor([message.shape[0]], device=device)
    received = [torch.empty_like(size) for _ in range(dist.get_world_size())]
    dist.all_gather(received, size)
    sizes = torch.cat(received).tolist()
    return [pickle.loads(part.cpu().numpy().tobytes()) for part in gather_parts(message, sizes).split(sizes)]


def gather_parts(values: Tensor, sizes: list[int]) -> Tensor:
    """Join parts of unequal length: each is padded to the longest and sent as bytes."""
    padded = values.new_zeros(max(sizes), *values.shape[1:])
    padded[: values.shape[0]] = values
    parts = [torch.empty_like(padded) for _ in sizes]
    if padded.numel() > 0:
        dist.all_gather([part.view(torch.uint8) for part in parts], padded.view(torch.uint8))
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


class _Join(torch.autograd.Function):
    """Values of all processes, and its own part of their gradient; summed: each has only a share of the gradient."""

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
