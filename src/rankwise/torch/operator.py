"""The rank losses as one PyTorch operator, and their semi-gradient.

`solve` solves a batch without gradient. The operator `rankwise::rank_loss` calls it, can be compiled (a fake kernel
gives the shapes) and mapped by torch.func.vmap; eager calls do without it, which saves time. `reduced_loss` adds the
reduction and the gradient: backward multiplies the semi-gradient of the forward pass, and has no derivative itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.torch import core, on_device
from rankwise.torch.layout import compute_dtype, precise
from rankwise.torch.objective import Objective, objective_of, refuse_empty, share_of_query

_Outputs = tuple[Tensor, Tensor, Tensor, Tensor]
# Written out: older versions of PyTorch do not read annotations that are strings.
_SCHEMA = (
    "(Tensor scores, Tensor target, Tensor? mask, Tensor? qid, int? ignore_index, str objective, bool refuse, "
    "str backend) -> (Tensor, Tensor, Tensor, Tensor)"
)


def solve(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None,
    qid: Tensor | None,
    ignore_index: int | None,
    objective: Objective | str,
    refuse: bool,
    backend: str,
) -> _Outputs:
    """Solve scores (n,) for one query, (Q, n) for one query per row, or (n,) with qid (n,); refuse: empty queries.

    Return the fields of `Outcome`; `query` is empty without qid.
    """
    objective = objective_of(objective)
    samples = objective.read(target, mask, ignore_index)
    in_core = backend == "core" or (backend == "auto" and scores.device.type == "cpu")
    graded = samples.grades is not None
    if not in_core and not on_device.can_solve(objective, graded):
        if backend == "tensor":
            what = f"{type(objective.surrogate).__name__} of {objective.loss.name!r}" + " with grades" * graded
            raise ValueError(
                f"backend='tensor' has no operations for {what}; use backend='auto', which takes the core for it on "
                "every device"
            )
        in_core = True
    values, filled, gradient, query = (core if in_core else on_device).solve_batch(scores, samples, qid, objective)
    if refuse:
        refuse_empty(filled, objective.lacks(graded), qid)
    return values, filled, gradient, filled.new_empty(0, dtype=torch.int64) if query is None else query


rank_loss = torch.library.custom_op("rankwise::rank_loss", solve, mutates_args=(), schema=_SCHEMA)


@rank_loss.register_fake
def _(scores: Tensor, target: Tensor, mask: Any, qid: Any, ignore_index: Any, objective: str, *rest: Any) -> _Outputs:
    parts = objective_of(objective).parts
    n_queries: Any = 1 if scores.dim() == 1 else scores.shape[0]
    if qid is not None:
        n_queries = torch.library.get_ctx().new_dynamic_size()
    return (
        scores.new_empty((*parts, n_queries), dtype=precise(scores.device)),
        scores.new_empty(n_queries, dtype=torch.bool),
        scores.new_empty((*parts, *scores.shape), dtype=compute_dtype(scores)),
        scores.new_empty(0 if qid is None else scores.shape[0], dtype=torch.int64),
    )


@rank_loss.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[_Outputs, tuple[int, ...]]:
    """Map over a batch: the rows of all its members become the rows of one call."""
    scores, target, mask, qid, *options = args
    if qid is not None:
        raise NotImplementedError(
            "vmap cannot map queries of different lengths (qid=); use a loop, or pad them and pass mask="
        )
    size = info.batch_size
    spread: list[Any] = [
        None if one is None else one.expand(size, *one.shape) if dim is None else one.movedim(dim, 0)
        for one, dim in zip((scores, target, mask), in_dims, strict=False)
    ]
    shape = spread[0].shape  # (batch, n) or (batch, Q, n)
    rows = [None if one is None else one.reshape(shape[:-1].numel(), shape[-1]) for one in spread]
    values, filled, gradient, query = rank_loss(*rows, None, *options)
    at = values.dim() - 1  # the dimension of the batch, after the parts
    each = shape[:-1] if len(shape) > 2 else (size, 1)
    values = values.view(*values.shape[:at], *each).movedim(at, 0)
    gradient = gradient.view(*gradient.shape[:at], *shape).movedim(at, 0)
    return (values, filled.view(each), gradient, query.expand(size, 0)), (0, 0, 0, 0)


def _reduced(values: Tensor, share: Tensor | float | None, scores: Tensor, qid: Tensor | None) -> Tensor:
    """Values (…, Q), one of each query of scores, in the type of their gradient; summed by their shares if given."""
    if share is not None:
        values = _times(share, values).sum(-1)
    elif scores.dim() == 1 and qid is None:
        values = values.squeeze(-1)
    return values.to(compute_dtype(scores))


def _times(share: Tensor | float, values: Tensor) -> Tensor:
    """The product, in less time if the share is 1."""
    return values if isinstance(share, float) and share == 1.0 else values * share


def _semi_gradient(grad: Tensor, gradient: Tensor, query: Tensor | None, scores: Tensor) -> Tensor:
    """The gradient of Σ_q grad_q·value_q in the scores; grad (…, Q), or (…, 1) for all. Sums over parts."""
    grad = grad.to(gradient.dtype)
    if query is not None:
        grad = grad[..., query]
    elif grad.dim() < gradient.dim():
        grad = grad[..., None]
    found = grad * gradient
    return (found.sum(0) if found.dim() > scores.dim() else found).to(scores.dtype)


class _SemiGradient(torch.autograd.Function):
    """`_semi_gradient`, once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, gradient: Tensor, query: Tensor | None, scores: Tensor) -> Tensor:
        return _semi_gradient(grad, gradient, query, scores)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "rank losses have no second derivative: their gradient is a semi-gradient, constant between kinks, or an "
            "update rule; use create_graph=False, or a method that needs first derivatives only"
        )


class _Compiled(torch.autograd.Function):
    """The value with its semi-gradient, as PyTorch compiles it: the compiler accepts no jvp."""

    generate_vmap_rule = True

    # Separate arguments: the compiler counts them.
    @staticmethod
    def forward(
        scores: Tensor,
        target: Tensor,
        mask: Tensor | None,
        qid: Tensor | None,
        ignore_index: int | None,
        objective: str,
        empty: str,
        reduction: str,
        backend: str,
    ) -> _Outputs:
        values, *rest = rank_loss(scores, target, mask, qid, ignore_index, objective, empty == "error", backend)
        return _reduced(values, share_of_query(rest[0], empty, reduction), scores, qid), *rest

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: _Outputs) -> None:
        ctx.empty, ctx.reduction, ctx.is_ragged = inputs[6], inputs[7], inputs[3] is not None
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> Any:
        filled, gradient, query, scores = ctx.saved_tensors
        share = share_of_query(filled, ctx.empty, ctx.reduction)
        by_query = share is None and ctx.is_ragged
        if share is not None:
            grad = _times(share, grad)[..., None]
        elif scores.dim() == 1 and not ctx.is_ragged:
            grad = grad[..., None]
        scaled = _SemiGradient.apply if torch.is_grad_enabled() else _semi_gradient
        return scaled(grad, gradient, query if by_query else None, scores), *(None,) * 8


def _refuse_forward_mode(ctx: Any, *grads: Any) -> Any:
    raise NotImplementedError(
        "rank losses have no forward-mode derivative; use reverse mode: backward, torch.func.grad or jacrev"
    )


class _Mapped(_Compiled):
    """The same under torch.func."""

    jvp = staticmethod(_refuse_forward_mode)


class _Eager(torch.autograd.Function):
    """The same without transforms, for which PyTorch would bind the arguments anew at every call."""

    jvp = staticmethod(_refuse_forward_mode)
    backward = _Compiled.backward

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, mask: Any, qid: Any, *given: Any) -> tuple[Tensor, Tensor]:
        ignore_index, objective, empty, reduction, backend = given
        refuse = empty == "error"
        values, filled, gradient, query = solve(scores, target, mask, qid, ignore_index, objective, refuse, backend)
        value = _reduced(values, share_of_query(filled, empty, reduction), scores, qid)
        _Compiled.setup_context(ctx, (scores, target, mask, qid, *given), (value, filled, gradient, query))
        return value, filled


def reduced_loss(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None,
    qid: Tensor | None,
    ignore_index: int | None,
    objective: Objective | str,
    *options: str,
) -> tuple[Tensor, Tensor]:
    """The value, with a semi-gradient in the scores, and which queries count; scores as in `solve`.

    options: empty, reduction and backend. With reduction="none" there is a value for each query.
    """
    function: Any = _Eager
    if not is_plain(scores):
        function = _Compiled if torch.compiler.is_compiling() else _Mapped
        objective = objective if isinstance(objective, str) else objective.key()  # the caller keeps it alive
    value, filled, *_ = function.apply(scores, target, mask, qid, ignore_index, objective, *options)
    return value, filled


def is_plain(values: Tensor) -> bool:
    """Whether this is a tensor with data that is not being traced, compiled or mapped."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    known = type(values) is Tensor or type(values) is torch.nn.Parameter
    return known and values.device.type != "meta" and torch._C._len_torch_dispatch_stack() == 0
