"""The part that all rank losses share: from the arguments of a call to the reduced value."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from rankwise.torch.arguments import Asked, Gather
from rankwise.torch.layout import as_rows, check_ranked, check_samples
from rankwise.torch.memory import ScoreMemory, check_batch, place, write
from rankwise.torch.objective import Objective
from rankwise.torch.operator import reduced_loss


class Batch(NamedTuple):
    """The tensors of a call; all except scores and target are optional. at: their indices in a memory."""

    scores: Tensor
    target: Tensor
    mask: Tensor | None = None
    qid: Tensor | None = None
    at: Tensor | None = None


def loss_of_batch(batch: Batch, objective: Objective | str, asked: Asked, memory: ScoreMemory | None = None) -> Tensor:
    """Check, join, solve and reduce a batch, alone or among all samples of a memory."""
    if memory is not None and torch.compiler.is_compiling():
        from rankwise.torch.compiling import loss_among_samples

        among: Tensor = loss_among_samples(batch, objective, asked, memory)
        return among
    dim, ignore_index, empty, reduction, gather, backend = asked
    check = partial(_check, batch, dim, memory)
    if not is_distributed(gather):
        ranked = check()
    else:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds

        ranked = distributed.together(check, batch.scores.device)
        batch = distributed.join(batch, ranked, gather == "ddp")
    if memory is not None and batch.at is not None:
        whole, entries = place(memory, *batch[:3], batch.at, ignore_index)
        batch, ignore_index = Batch(*whole), None
    check_ranked(batch.scores, ranked)  # joined: one process may have a single sample
    scores, target = as_rows(batch.scores, ranked), as_rows(batch.target, ranked)
    mask = None if batch.mask is None else as_rows(batch.mask, ranked)
    value, _ = reduced_loss(scores, target, mask, batch.qid, ignore_index, objective, empty, reduction, backend)
    if memory is not None:
        write(memory, *entries)
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
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        raise NotImplementedError("torch.func cannot map or differentiate a loss with a memory; use backward()")
    check_batch(memory, batch.scores, batch.at, ranked)
    return ranked


def is_distributed(gather: Gather) -> bool:
    """Whether there are several processes to gather from."""
    return bool(gather) and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
