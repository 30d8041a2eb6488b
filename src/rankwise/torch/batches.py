"""The part that all rank losses share: from the arguments of a call to the reduced value."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from rankwise.arguments import check_empty, check_known, is_whole
from rankwise.torch import operator
from rankwise.torch.layout import as_rows, check_ranked, check_samples
from rankwise.torch.memory import ScoreMemory, check_batch, place, write
from rankwise.torch.operator import BACKENDS
from rankwise.torch.options import Options

REDUCTIONS = ("mean", "sum", "none")
Gather = bool | Literal["ddp"]


class Batch(NamedTuple):
    """The tensors of a call; all except scores and target are optional. at: their indices in a memory."""

    scores: Tensor
    target: Tensor
    mask: Tensor | None
    qid: Tensor | None
    at: Tensor | None


def loss_of_batch(
    batch: Batch, options: Options, dim: int | None, gather: Gather, memory: ScoreMemory | None
) -> Tensor:
    """Check, join, solve and reduce a batch, alone or among all samples of a memory."""
    if memory is not None and torch.compiler.is_compiling():
        from rankwise.torch.compiling import loss_among_samples

        among: Tensor = loss_among_samples(batch, options, dim, gather, memory)
        return among
    ignore_index, reduction = options.ignore_index, options.reduction
    check_options(options.empty, reduction, gather, options.backend)
    if ignore_index is not None and not is_whole(ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
    check = partial(_check, batch, dim, memory)
    if not is_distributed(gather):
        ranked = check()
    else:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds
        from rankwise.torch.exchange import rank_together

        ranked = distributed.together(check, batch.scores.device)
        is_plain = memory is None and all(one is None for one in batch[2:])
        together: Tensor | None = rank_together(*batch[:2], is_plain, options, gather == "ddp")
        if together is not None:
            return together
        batch = Batch(*distributed.join(*batch, ranked, gather == "ddp"))
    if memory is not None and batch.at is not None:
        whole, labels, seen, entries = place(memory, *batch[:3], batch.at, ignore_index)
        batch, options = Batch(whole, labels, seen, None, None), options._replace(ignore_index=None)
    check_ranked(batch.scores, ranked)  # joined: one process may have a single sample
    scores, target, mask = (as_rows(one, ranked) for one in batch[:3])
    assert scores is not None
    function: Any = operator.function_for(scores)
    value: Tensor = function.apply(scores, target, mask, batch.qid, *options)[0]
    if memory is not None:
        write(memory, entries)
    if reduction == "none" and batch.scores.dim() > 2:
        return value.view(batch.scores.movedim(ranked, -1).shape[:-1])
    return value


def _check(batch: Batch, dim: int | None, memory: ScoreMemory | None) -> int:
    """The dimension to rank along; raises if the arguments do not agree."""
    ranked = check_samples(*batch[:4], dim)
    if (memory is None) != (batch.at is None):
        raise ValueError("index and memory must be given together; pass both or neither")
    if memory is None or batch.at is None:
        return ranked
    if batch.qid is not None:
        raise ValueError(
            "qid and memory cannot be combined, because a memory holds one query per output; pass only one of them"
        )
    refuse_transforms()
    check_batch(memory, batch.scores, batch.at, ranked)
    return ranked


def refuse_transforms() -> None:
    """Raise under torch.func, which cannot handle writes to a memory."""
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        raise NotImplementedError("torch.func cannot map or differentiate a loss with a memory; use backward()")


def is_distributed(gather: Gather) -> bool:
    """Whether there are several processes to gather from."""
    return bool(gather) and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def check_options(empty: str, reduction: str, gather: Gather, backend: str) -> None:
    """Raise for unknown names."""
    check_empty(empty)
    check_known("reduction", reduction, REDUCTIONS)
    if gather not in (False, True, "ddp"):
        raise ValueError(f"unknown gather={gather!r}; use False, True or 'ddp'")
    check_known("backend", backend, BACKENDS)
