"""The losses of detectors as one PyTorch operator: two values, and the update of each by sample.

It can be compiled (a fake kernel gives the shapes). Backward multiplies the updates found in the forward pass, and
cannot be differentiated again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankwise.torch import detector_core, tensor_detectors
from rankwise.torch.detector_layout import Given, detections
from rankwise.torch.layout import compute_dtype
from rankwise.torch.operator import OnlyOnce
from rankwise.torch.outcome import share_of_query

_Outputs = tuple[Tensor, Tensor, Tensor]
_NO_GRADIENTS = (None,) * 9  # of all arguments after the scores


# Written out: older versions of PyTorch do not read annotations that are strings.
_SCHEMA = (
    "(Tensor scores, Tensor target, Tensor? localisation, Tensor? mask, Tensor? qid, int? ignore_index, float width, "
    "str empty, str reduction, str backend) -> (Tensor, Tensor, Tensor)"
)


@torch.library.custom_op("rankwise::detector_loss", mutates_args=(), schema=_SCHEMA)
def detector_loss(
    scores: Tensor,
    target: Tensor,
    localisation: Tensor | None,
    mask: Tensor | None,
    qid: Tensor | None,
    ignore_index: int | None,
    width: float,
    empty: str,
    reduction: str,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """RankSort, or aLRP where localisation (n,) is given: values (2,), gradients (2, n).

    With reduction="none" and qid, values are (2, Q), and the query of each sample is returned too.
    """
    if backend == "core" and scores.device.type != "cpu":
        raise ValueError(f"backend='core' runs on the CPU but scores are on {scores.device}; use backend='auto'")
    found = detections(Given(scores, target, localisation, mask, qid), ignore_index)
    on_host = scores.device.type == "cpu" and backend != "tensor"
    outcome, query = (detector_core if on_host else tensor_detectors).solve_detections(found, width)
    query = torch.empty(0, dtype=torch.int64, device=scores.device) if query is None else query
    if empty == "error" and not bool(outcome.filled.all()):
        _refuse_empty(outcome.filled, query, qid)
    values, gradients = outcome.values, outcome.gradient
    if reduction == "none":
        return values.to(gradients.dtype).view((2,) if qid is None else values.shape), gradients, query
    if values.shape[1] == 1:
        return values.sum(1, dtype=gradients.dtype), gradients, query[:0]
    share = share_of_query(outcome.filled, empty, reduction)
    return (values * share).sum(1).to(gradients.dtype), gradients.mul_(share), query[:0]


@detector_loss.register_fake
def _(
    scores: Tensor, target: Tensor, localisation: Any, mask: Any, qid: Any, ignore_index: Any, width: float, empty: str,
    reduction: str, backend: str,
) -> _Outputs:  # fmt: skip
    each, dtype = reduction == "none", compute_dtype(scores)
    shape: tuple[Any, ...] = (2, torch.library.get_ctx().new_dynamic_size()) if each and qid is not None else (2,)
    return (
        scores.new_empty(shape, dtype=dtype),
        scores.new_empty((2, scores.shape[0]), dtype=dtype),
        scores.new_empty(scores.shape[0] if each and qid is not None else 0, dtype=torch.int64),
    )


def _refuse_empty(filled: Tensor, query: Tensor, qid: Tensor | None) -> None:
    """Raise for the first query without positives."""
    q = int((~filled).nonzero()[0])
    which = "the query" if qid is None else f"the query with qid {int(qid[query == q][0])}"
    raise ValueError(f"{which} has no positives and so no loss; remove it, or pass empty='zero' or empty='skip'")


def scaled(grad: Tensor, gradients: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
    """Each part's gradients (n,), multiplied by the incoming gradient of its value, or of its query's value."""
    if grad.dim() == 1:
        return grad[0] * gradients[0], grad[1] * gradients[1]
    by_sample = grad[:, query]
    return by_sample[0] * gradients[0], by_sample[1] * gradients[1]


class _Update(OnlyOnce):
    """`scaled` as a function that also takes the scores."""

    @staticmethod
    def forward(grad: Tensor, gradients: Tensor, query: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        return scaled(grad, gradients, query)


class DetectorLoss(torch.autograd.Function):
    """`detector_loss` with the updates of both parts; for aLRP, the second is a gradient in localisation."""

    # Separate arguments: the compiler counts them.
    @staticmethod
    def forward(
        scores: Tensor,
        target: Tensor,
        localisation: Tensor | None,
        mask: Tensor | None,
        qid: Tensor | None,
        ignore_index: int | None,
        width: float,
        empty: str,
        reduction: str,
        backend: str,
    ) -> _Outputs:
        found: _Outputs = detector_loss(
            scores, target, localisation, mask, qid, ignore_index, width, empty, reduction, backend
        )
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: _Outputs) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], inputs[0])
        ctx.localised = None if inputs[2] is None else inputs[2].dtype

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *rest: Any) -> Any:
        gradients, query, scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            first, second = _Update.apply(grad, gradients, query, scores)
        else:
            first, second = scaled(grad, gradients, query)
        if ctx.localised is None:
            return (first + second).to(scores.dtype), *_NO_GRADIENTS
        return first.to(scores.dtype), None, second.to(ctx.localised), *_NO_GRADIENTS[2:]
