"""From what the caller gave to a reduced value: the part that all rank losses share."""

from __future__ import annotations

from torch import Tensor

from rankwise.inputs import check_empty
from rankwise.losses import LossLike
from rankwise.torch import distributed
from rankwise.torch.distributed import Gather
from rankwise.torch.layout import as_rows, check_samples
from rankwise.torch.operator import BACKENDS, RankLoss
from rankwise.torch.registry import key_of

__all__ = ["check_options", "loss_of_batch", "reduce"]

REDUCTIONS = ("mean", "sum", "none")


def loss_of_batch(
    scores: Tensor,
    target: Tensor,
    loss: LossLike,
    scale: float,
    update: str,
    mask: Tensor | None,
    qid: Tensor | None,
    dim: int,
    ignore_index: int | None,
    empty: str,
    reduction: str,
    gather: Gather,
    backend: str,
) -> Tensor:
    """Check, join, solve and reduce: what every rank loss does with a batch; update as in `Goal`."""
    check_options(empty, reduction, gather, backend)
    told = (ignore_index, key_of(loss), scale, update, empty == "error", backend)
    check_samples(scores, target, mask, qid, dim)
    if distributed.is_distributed(gather):
        scores, target, mask, qid = distributed.join(scores, target, mask, qid, dim, gather == "ddp")
    if qid is not None:
        values, filled, _, _ = RankLoss.apply(scores, target, mask, qid, *told)
        return reduce(values, filled, empty, reduction)
    rows = (as_rows(one, dim) for one in (scores, target, mask))
    values, filled, _, _ = RankLoss.apply(*rows, None, *told)
    result = reduce(values, filled, empty, reduction)
    if reduction != "none":
        return result
    return result.view(scores.movedim(dim, -1).shape[:-1])


def reduce(values: Tensor, filled: Tensor, empty: str, reduction: str) -> Tensor:
    """The mean or the sum of values (Q,), or all; no query at all is 0, connected to the graph."""
    if reduction == "none":
        return values
    total = values.sum()
    if reduction == "sum":
        return total
    return total / (filled.sum().clamp(min=1) if empty == "skip" else max(values.shape[0], 1))


def check_options(empty: str, reduction: str, gather: Gather, backend: str) -> None:
    """Refuse unknown names."""
    check_empty(empty)
    if reduction not in REDUCTIONS:
        raise ValueError(f"unknown reduction={reduction!r}; use one of {', '.join(map(repr, REDUCTIONS))}")
    if gather not in (False, True, "ddp"):
        raise ValueError(f"unknown gather={gather!r}; use False, True or 'ddp'")
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend={backend!r}; use one of {', '.join(map(repr, BACKENDS))}")
