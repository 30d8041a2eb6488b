"""From what the caller gave to a reduced value: the part that all rank losses share."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import torch.distributed as dist
from torch import Tensor

from rankwise.inputs import check_empty, check_known, is_whole
from rankwise.torch import operator
from rankwise.torch.layout import as_rows, check_ranked, check_samples
from rankwise.torch.operator import BACKENDS
from rankwise.torch.outcome import Options

REDUCTIONS = ("mean", "sum", "none")
Gather = bool | Literal["ddp"]


class Batch(NamedTuple):
    """The tensors of a call; mask and qid may lack."""

    scores: Tensor
    target: Tensor
    mask: Tensor | None
    qid: Tensor | None


def loss_of_batch(batch: Batch, options: Options, dim: int | None, gather: Gather) -> Tensor:
    """Check, join, solve and reduce: what every rank loss does with a batch."""
    ignore_index, reduction = options.ignore_index, options.reduction
    check_options(options.empty, reduction, gather, options.backend)
    if ignore_index is not None and not is_whole(ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
    if not is_distributed(gather):
        ranked = check_samples(*batch, dim)
    else:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds

        ranked = distributed.together(partial(check_samples, *batch, dim), batch.scores.device)
        batch = Batch(*distributed.join(*batch, ranked, gather == "ddp"))
    check_ranked(batch.scores, ranked)  # joined: one process may have a single sample
    scores, target, mask = (as_rows(one, ranked) for one in batch[:3])
    assert scores is not None
    function: Any = operator.function_for(scores)
    value: Tensor = function.apply(scores, target, mask, batch.qid, *options)[0]
    if reduction == "none" and batch.scores.dim() > 2:
        return value.view(batch.scores.movedim(ranked, -1).shape[:-1])
    return value


def is_distributed(gather: Gather) -> bool:
    """Whether there are several processes to gather from."""
    return bool(gather) and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def check_options(empty: str, reduction: str, gather: Gather, backend: str) -> None:
    """Refuse unknown names."""
    check_empty(empty)
    check_known("reduction", reduction, REDUCTIONS)
    if gather not in (False, True, "ddp"):
        raise ValueError(f"unknown gather={gather!r}; use False, True or 'ddp'")
    check_known("backend", backend, BACKENDS)
