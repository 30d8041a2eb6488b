"""The rank losses as one PyTorch operator: how it runs, what it returns, and its semi-gradient.

`solve` solves a batch without gradient. The operator `rankwise::rank_loss` calls it, can be compiled (a fake kernel
gives the shapes) and can be mapped by torch.func.vmap. `function_for` adds the gradient: backward multiplies the
semi-gradient found in the forward pass, and cannot be differentiated again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rankwise.torch import core, on_device
from rankwise.torch.layout import compute_dtype
from rankwise.torch.objective import Objective, key_of, objective_of, refuse_empty, share_of_query

_Outputs = tuple[Tensor, Tensor, Tensor, Tensor]


class Options(NamedTuple):
    """All options of a call besides its tensors; an operator takes the key of the objective."""

    ignore_index: int | None
    objective: Objective | str
    empty: str
    reduction: str
    backend: str


# Gradients of the arguments other than scores: target, mask, qid and the options.
_NO_GRADIENTS = (None,) * (3 + len(Options._fields))


def solve(scores: Tensor, target: Tensor, mask: Tensor | None, qid: Tensor | None, options: Options) -> _Outputs:
    """The value and its gradient by sample.

    scores: (n,) for one query, (Q, n) for one query per row, or (n,) with qid (n,). With reduction="none" there is one
    value per query, the gradient of a sample is that of its own query's value, and two more tensors are returned: which
    queries have something to rank (Q,), and with qid the query of each sample (n,).
    """
    ignore_index, objective, empty, reduction, backend = options
    objective = objective_of(objective)
    samples = objective.read(target, mask, ignore_index)
    in_core = backend == "core" or (backend == "auto" and scores.device.type == "cpu")
    graded = samples.grades is not None
    if not in_core and not on_device.can_solve(objective):
        if backend == "tensor":
            what = f"{type(objective.surrogate).__name__} of {objective.loss.name!r}"
            raise ValueError(
                f"backend='tensor' has no operations for {what}; use backend='auto', which takes the core for it on "
                "every device"
            )
        in_core = True
    solver = core if in_core else on_device
    values, filled, gradient, query = solver.solve_batch(scores, samples, qid, objective)
    query = filled.new_empty(0, dtype=torch.int64) if query is None else query
    if empty == "error":
        refuse_empty(filled, objective.lacks(graded), qid)
    if reduction == "none":
        shape = values.shape[:-1] if qid is None and scores.dim() == 1 else values.shape
        return values.to(gradient.dtype).view(shape), filled, gradient, query
    if values.shape[-1] == 1:
        return values.sum(-1, dtype=gradient.dtype), filled[:0], gradient, query[:0]
    share = share_of_query(filled, empty, reduction)
    return (values * share).sum(-1).to(gradient.dtype), filled[:0], gradient.mul_(share), query[:0]


# Written out: older versions of PyTorch do not read annotations that are strings.
_SCHEMA = (
    "(Tensor scores, Tensor target, Tensor? mask, Tensor? qid, int? ignore_index, str objective, str empty, "
    "str reduction, str backend) -> (Tensor, Tensor, Tensor, Tensor)"
)


@torch.library.custom_op("rankwise::rank_loss", mutates_args=(), schema=_SCHEMA)
def rank_loss(scores: Any, target: Any, mask: Any, qid: Any, ignore_index: Any, *options: Any) -> _Outputs:
    """`solve` as an operator, with separate arguments because operators take no named tuples."""
    return solve(scores, target, mask, qid, Options(ignore_index, *options))


@rank_loss.register_fake
def _(scores: Tensor, target: Tensor, mask: Any, qid: Any, *given: Any) -> _Outputs:
    options = Options(*given)
    parts = objective_of(options.objective).parts
    each, alone = options.reduction == "none", qid is None and scores.dim() == 1
    n_queries: Any = 1 if alone else scores.shape[0]
    if qid is not None and each:
        n_queries = torch.library.get_ctx().new_dynamic_size()
    dtype = compute_dtype(scores)
    return (
        scores.new_empty((*parts, n_queries) if each and not alone else parts, dtype=dtype),
        scores.new_empty(n_queries if each else 0, dtype=torch.bool),
        scores.new_empty((*parts, *scores.shape), dtype=dtype),
        scores.new_empty(scores.shape[0] if each and qid is not None else 0, dtype=torch.int64),
    )


@rank_loss.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[_Outputs, tuple[int, ...]]:
    """Map over a batch: the rows of all its members become the rows of one call."""
    scores, target, mask, qid = args[:4]
    options = Options(*args[4:])
    empty, reduction = options.empty, options.reduction
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
    values, filled, gradient, query = rank_loss(*rows, None, *options._replace(reduction="none"))
    at = values.dim() - 1  # the dimension of the batch, after the parts
    values = values.view(*values.shape[:at], *shape[:-1]).movedim(at, 0)
    filled, gradient = filled.view(size, -1), gradient.view(*gradient.shape[:at], *shape).movedim(at, 0)
    if reduction != "none":
        share = torch.stack([share_of_query(one, empty, reduction) for one in filled])
        share = share.view(size, *[1] * (gradient.dim() - 1))
        gradient = gradient * share.to(gradient.dtype)
        if len(shape) > 2:
            values = (values * share[..., 0]).sum(-1).to(gradient.dtype)
        filled = filled.new_empty(size, 0)
    return (values, filled, gradient, query.expand(size, 0)), (0, 0, 0, 0)


def _semi_gradient(grad: Tensor, gradient: Tensor, query: Tensor, scores: Tensor) -> Tensor:
    """The gradient of grad·value in the scores, or of Σ_q grad_q·value_q."""
    found = _by_sample(grad, gradient, query) * gradient
    return _over_parts(found, scores.dim()).to(scores.dtype)


def _by_sample(grad: Tensor, gradient: Tensor, query: Tensor) -> Tensor:
    """The factor of each sample, to be multiplied by the gradient."""
    if grad.dim() == 0:
        return grad
    return grad[..., query] if grad.dim() == gradient.dim() else grad[..., None]


def _over_parts(gradient: Tensor, dim: int) -> Tensor:
    """The sum over the parts of an objective, if it has several."""
    return gradient.sum(0) if gradient.dim() > dim else gradient


class _SemiGradient(torch.autograd.Function):
    """`_semi_gradient`, once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, gradient: Tensor, query: Tensor, scores: Tensor) -> Tensor:
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


class _Traced(torch.autograd.Function):
    """`rank_loss` with its semi-gradient, as PyTorch compiles it."""

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
        found: _Outputs = rank_loss(scores, target, mask, qid, ignore_index, objective, empty, reduction, backend)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: _Outputs) -> None:
        _, filled, gradient, query = output
        ctx.mark_non_differentiable(filled, gradient, query)
        ctx.save_for_backward(gradient, query, inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> Any:
        scaled = _SemiGradient.apply if torch.is_grad_enabled() else _semi_gradient
        return scaled(grad, *ctx.saved_tensors), *_NO_GRADIENTS


def _refuse_forward_mode(ctx: Any, *grads: Any) -> Any:
    raise NotImplementedError(
        "rank losses have no forward-mode derivative; use reverse mode: backward, torch.func.grad or jacrev"
    )


class _Mapped(_Traced):
    """The same under torch.func, where forward mode may be requested; the compiler accepts no jvp at all."""

    jvp = staticmethod(_refuse_forward_mode)


class _Eager(torch.autograd.Function):
    """`solve` with its semi-gradient, without the operator around it; backward gives away the gradient's memory.

    A second backward pass, after retain_graph=True, solves again.
    """

    jvp = staticmethod(_refuse_forward_mode)

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, mask: Any, qid: Any, *options: Any) -> tuple[Tensor, Tensor]:
        ctx.options, ctx.dtype, ctx.dim = Options(*options), scores.dtype, scores.dim()
        value, filled, ctx.gradient, ctx.query = solve(scores, target, mask, qid, ctx.options)
        ctx.save_for_backward(scores, target, mask, qid)
        ctx.mark_non_differentiable(filled)
        return value, filled

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> Any:
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            scores, target, mask, qid = ctx.saved_tensors
            gradient = solve(scores, target, mask, qid, ctx.options)[2]
        if torch.is_grad_enabled():
            return _SemiGradient.apply(grad, gradient, ctx.query, ctx.saved_tensors[0]), *_NO_GRADIENTS
        factor = _by_sample(grad, gradient, ctx.query)
        try:
            found = gradient if factor.dim() == 0 and factor.item() == 1.0 else gradient.mul_(factor)
        except RuntimeError:  # a batch of gradients (is_grads_batched=True) does not fit in place
            found = factor * gradient
        return _over_parts(found, ctx.dim).to(ctx.dtype), *_NO_GRADIENTS


def function_for(scores: Tensor, options: Options, traced: bool = False) -> tuple[Any, Options]:
    """The function of (scores, target, mask, qid, *options) that returns the value with its semi-gradient; its options.

    With reduction="none", its second output says which queries count. traced: keep what backward needs where PyTorch's
    checkpoints see it.
    """
    if is_plain(scores) and not traced and scores.device.type == "cpu":
        return _Eager, options
    mapped = not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()
    # The objective itself stays alive with the options of the caller.
    return _Mapped if mapped else _Traced, Options(options[0], key_of(options[1]), *options[2:])


def is_plain(values: Tensor) -> bool:
    """Whether this is a tensor with data that is not being traced, compiled or mapped."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    known = type(values) is Tensor or type(values) is torch.nn.Parameter
    return known and values.device.type != "meta" and torch._C._len_torch_dispatch_stack() == 0
