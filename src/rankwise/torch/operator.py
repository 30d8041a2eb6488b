"""The rank losses as one operator that PyTorch knows: how it runs, what it returns, and its semi-gradient.

`rankwise::rank_loss` solves a batch without gradient. `RankLoss` gives it one: backward multiplies the semi-gradient
found on the way forward, and refuses to be differentiated again. Both compile (a fake kernel tells the shapes) and
both can be mapped by torch.func.vmap.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.torch import core_backend, tensor_backend
from rankwise.torch.layout import compute_dtype, samples
from rankwise.torch.outcome import Goal, refuse_empty
from rankwise.torch.registry import loss_of

__all__ = ["BACKENDS", "RankLoss"]

BACKENDS = ("auto", "core", "tensor")
_Outputs = tuple[Tensor, Tensor, Tensor, Tensor]


@torch.library.custom_op("rankwise::rank_loss", mutates_args=())
def rank_loss(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None,
    qid: Tensor | None,
    ignore_index: int | None,
    loss: str,
    scale: float,
    update: str,
    refuse: bool,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values and whether each query counts (Q,), the gradient of each value by sample, and each sample's query.

    scores (Q, n), one query a row, and then no queries are told (0,); or (n,) with qid (n,), sorted by qid.
    """
    found = loss_of(loss)
    told = samples(target, mask, ignore_index)
    on_host = scores.device.type == "cpu" if backend == "auto" else backend == "core"
    if backend == "core" and scores.device.type != "cpu":
        raise ValueError(f"backend='core' runs on the CPU and scores are on {scores.device}; use backend='auto'")
    solver = core_backend if on_host else tensor_backend
    goal = Goal(scale, update)
    if qid is None:
        outcome, query = solver.solve_rows(scores, told, found, goal), scores.new_empty(0, dtype=torch.int64)
    else:
        outcome, query = solver.solve_ragged(scores, told, qid, found, goal)
    if refuse:
        refuse_empty(outcome.filled, None if qid is None else qid[query < outcome.filled.shape[0]].unique().tolist())
    return *outcome, query


@rank_loss.register_fake
def _(scores: Tensor, target: Tensor, mask: Any, qid: Any, *rest: Any) -> _Outputs:
    n_queries = scores.shape[0] if qid is None else torch.library.get_ctx().new_dynamic_size()
    dtype = compute_dtype(scores)
    return (
        scores.new_empty(n_queries, dtype=dtype),
        scores.new_empty(n_queries, dtype=torch.bool),
        torch.empty_like(scores, dtype=dtype, memory_format=torch.contiguous_format),
        scores.new_empty(0 if qid is None else scores.shape[0], dtype=torch.int64),
    )


@rank_loss.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[_Outputs, tuple[int, ...]]:
    """Mapped over a batch, rows of all its members are rows of one call."""
    scores, target, mask, qid, *rest = args
    if qid is not None:
        raise NotImplementedError("vmap over ragged queries (qid=) has no common shape; loop, or pad and pass mask=")
    size = info.batch_size
    spread: list[Any] = [
        None if one is None else one.expand(size, *one.shape) if dim is None else one.movedim(dim, 0)
        for one, dim in zip((scores, target, mask), in_dims, strict=False)
    ]
    shape = spread[0].shape  # (batch, Q, n)
    flat = [None if one is None else one.reshape(shape[0] * shape[1], shape[2]) for one in spread]
    values, filled, gradient, query = rank_loss(*flat, None, *rest)
    return (
        (values.view(shape[:2]), filled.view(shape[:2]), gradient.view(shape), query.expand(size, 0)),
        (0, 0, 0, 0),
    )


class _SemiGradient(torch.autograd.Function):
    """The backward pass, as a function that has no derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, gradient: Tensor, query: Tensor, scores: Tensor) -> Tensor:
        if gradient.dim() == 2:
            found = grad[:, None] * gradient
        else:  # samples that do not count belong to no query: they find the 0 at the end
            found = torch.nn.functional.pad(grad, (0, 1))[query] * gradient
        return found.to(scores.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "rank losses have no second derivative: the semi-gradient is constant between kinks; "
            "use create_graph=False, or a method that needs first derivatives only"
        )


class RankLoss(torch.autograd.Function):
    """`rank_loss` with its semi-gradient: values (Q,), and whether each query has positives and negatives (Q,)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*args: Any) -> _Outputs:
        found: _Outputs = rank_loss(*args)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: _Outputs) -> None:
        _, filled, gradient, query = output
        ctx.mark_non_differentiable(filled, gradient, query)
        ctx.save_for_backward(gradient, query, inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> Any:
        return _SemiGradient.apply(grad, *ctx.saved_tensors), *[None] * 9
