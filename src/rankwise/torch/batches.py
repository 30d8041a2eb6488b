"""From what the caller gave to a reduced value: the part that all rank losses share."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch.distributed as dist
from torch import Tensor

from rankwise.inputs import check_empty, is_whole
from rankwise.losses import LossLike
from rankwise.torch import operator
from rankwise.torch.layout import as_rows, check_ranked, check_samples
from rankwise.torch.operator import BACKENDS
from rankwise.torch.registry import key_of

__all__ = ["Gather", "check_options", "is_distributed", "loss_of_batch"]

REDUCTIONS = ("mean", "sum", "none")
Gather = bool | Literal["ddp"]


def loss_of_batch(
    scores: Tensor,
    target: Tensor,
    loss: LossLike,
    scale: float,
    update: str,
    mask: Tensor | None,
    qid: Tensor | None,
    dim: int | None,
    ignore_index: int | None,
    empty: str,
    reduction: str,
    gather: Gather,
    backend: str,
) -> Tensor:
    """Check, join, solve and reduce: what every rank loss does with a batch; update as in `Goal`."""
    check_options(empty, reduction, gather, backend)
    if ignore_index is not None and not is_whole(ignore_index):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
    if not is_distributed(gather):
        ranked = check_samples(scores, target, mask, qid, dim)
    else:
        from rankwise.torch import distributed  # imports PyTorch's compiler, which takes seconds

        check = partial(check_samples, scores, target, mask, qid, dim)
        ranked = distributed.together(check, scores.device)
        scores, target, mask, qid = distributed.join(scores, target, mask, qid, ranked, gather == "ddp")
    check_ranked(scores, ranked)  # joined: one process may have a single sample
    rows = (as_rows(one, ranked) for one in (scores, target, mask))
    value, _ = operator.apply(*rows, qid, ignore_index, key_of(loss), scale, update, empty, reduction, backend)
    return value.view(scores.movedim(ranked, -1).shape[:-1]) if reduction == "none" and scores.dim() > 2 else value


def is_distributed(gather: Gather) -> bool:
    """Whether there are several processes to gather from."""
    return bool(gather) and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def check_options(empty: str, reduction: str, gather: Gather, backend: str) -> None:
    """Refuse unknown names."""
    check_empty(empty)
    if reduction not in REDUCTIONS:
        raise ValueError(f"unknown reduction={reduction!r}; use one of {', '.join(map(repr, REDUCTIONS))}")
    if gather not in (False, True, "ddp"):
        raise ValueError(f"unknown gather={gather!r}; use False, True or 'ddp'")
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend={backend!r}; use one of {', '.join(map(repr, BACKENDS))}")
