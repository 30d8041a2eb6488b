"""Embeddings that rank each other: what is checked, and the losses of the queries, some at a time."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rankwise.torch import operator
from rankwise.torch.operator import is_plain
from rankwise.torch.options import Options, refuse_empty


def prepare(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None,
    reference_labels: Tensor | None,
    similarity: str,
) -> tuple[Tensor, Tensor, Tensor, int | None]:
    """Queries, reference and its labels, checked; and which reference is the first query, or None."""
    if (reference is None) != (reference_labels is None):
        raise ValueError("reference and reference_labels must be given together; pass both or neither")
    queries = _checked(embeddings, labels, "embeddings", "labels", similarity)
    if reference is None or reference_labels is None:
        return queries, queries, labels, 0
    reference = _checked(reference, reference_labels, "reference", "reference_labels", similarity)
    _check_alike(embeddings, reference)
    return queries, reference, reference_labels, None


class Given(NamedTuple):
    """Queries (B, d) with labels (B,), and the embeddings they rank, (R, d) with labels (R,)."""

    queries: Tensor
    labels: Tensor
    reference: Tensor
    reference_labels: Tensor


def by_chunk(given: Given, options: Options, own: int | None, step: int, refuse: bool) -> tuple[Tensor, Tensor]:
    """Values of all queries and whether each counts, step queries at a time."""
    parts = []
    queries, labels, *reference = given
    again = queries.shape[0] > step and torch.is_grad_enabled()
    for begin in range(0, max(queries.shape[0], 1), step):
        part = partial(_part, options=options, own=None if own is None else own + begin, again=again)
        chunk = (queries[begin : begin + step], labels[begin : begin + step], *reference)
        parts.append(checkpoint(part, *chunk, use_reentrant=False) if again else part(*chunk))
    values, filled = (torch.cat(one) for one in zip(*parts, strict=True))
    if refuse:
        refuse_empty(filled)
    return values, filled


def _part(
    queries: Tensor,
    labels: Tensor,
    reference: Tensor,
    reference_labels: Tensor,
    *,
    options: Options,
    own: int | None,
    again: bool,
) -> tuple[Tensor, Tensor]:
    """Values of some queries; query i is reference own + i and not ranked, unless own is None.

    again: backward computes this again, so nothing may be kept for it.
    """
    scores = queries @ reference.T
    target = labels[:, None] == reference_labels
    mask = None
    if own is not None:
        mask = torch.ones_like(target)
        mask.diagonal(own).fill_(False)
    function: Any = operator.function_for(scores, traced=again)
    values, filled = function.apply(scores, target, mask, None, *options)[:2]
    return values, filled


def _checked(embeddings: Tensor, labels: Tensor, name: str, name_of_labels: str, similarity: str) -> Tensor:
    for what, given in ((name, embeddings), (name_of_labels, labels)):
        if not isinstance(given, Tensor):
            raise TypeError(f"{what} must be a tensor, got {type(given).__name__}; convert it with torch.as_tensor")
    if embeddings.dim() != 2 or not embeddings.is_floating_point():
        raise ValueError(f"{name} must be (n, d) and floating point, got {tuple(embeddings.shape)}, {embeddings.dtype}")
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"{name_of_labels} has shape {tuple(labels.shape)}; {name} of shape {tuple(embeddings.shape)} need "
            f"({embeddings.shape[0]},)"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"{name_of_labels} must be integers, got {labels.dtype}")
    if labels.device != embeddings.device:
        raise ValueError(
            f"{name_of_labels} is on {labels.device} but {name} is on {embeddings.device}; move it with .to()"
        )
    if is_plain(embeddings):  # otherwise the operator raises for the resulting similarities
        _refuse_not_finite(embeddings, name)
    return torch.nn.functional.normalize(embeddings, dim=1) if similarity == "cosine" else embeddings


def _refuse_not_finite(embeddings: Tensor, name: str) -> None:
    finite = embeddings.detach().isfinite().all(1)
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        raise ValueError(f"{name}[{row}] has entries that are not finite; look for the cause in the model")


def _check_alike(embeddings: Tensor, reference: Tensor) -> None:
    if reference.shape[1] != embeddings.shape[1]:
        raise ValueError(
            f"reference has {reference.shape[1]} columns but embeddings have {embeddings.shape[1]}; make them equal"
        )
    if (reference.device, reference.dtype) != (embeddings.device, embeddings.dtype):
        raise ValueError(
            f"reference is {reference.dtype} on {reference.device} but embeddings are {embeddings.dtype} on "
            f"{embeddings.device}; convert one of them with .to()"
        )
