"""The checked input of a call: which samples count, which are relevant, and which scores are not finite."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rankwise.arguments import NotFiniteError, is_whole, limit_of

_HALVES = (torch.float16, torch.bfloat16)
_KNOWN = (*_HALVES, torch.float32, torch.float64)
_LIMITS = {torch.float32: limit_of(np.empty(0, np.float32)), torch.float64: limit_of(np.empty(0))}


def precise(device: torch.device) -> torch.dtype:
    """The most precise type of a device: float64, or float32 where that is missing."""
    return torch.float32 if device.type == "mps" else torch.float64


def compute_dtype(scores: Tensor) -> torch.dtype:
    """The type of values and gradients: float32, or that of the scores if it is more precise."""
    return torch.float32 if scores.dtype in _HALVES else scores.dtype


def check_tensor(name: str, given: Any) -> None:
    """Raise unless this is a dense tensor."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(given).__name__}; convert it with torch.as_tensor")
    if given.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {given.layout}; convert it with .to_dense()")


def check_beside(name: str, given: Tensor, of: str, others: Tensor) -> None:
    """Raise unless two tensors are on the same device."""
    if given.device != others.device:
        raise ValueError(f"{name} is on {given.device} but {of} are on {others.device}; move it with .to()")


def check_per_row(name: str, given: Any, of: str, rows: Tensor, booleans: bool = False) -> None:
    """Raise unless these are whole numbers, one for each row of a tensor called `of`."""
    check_tensor(name, given)
    if given.is_floating_point() or given.is_complex() or (given.dtype == torch.bool and not booleans):
        raise TypeError(f"{name} must be integers, got {given.dtype}")
    if given.shape != rows.shape[:1]:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)}; {of} of shape {tuple(rows.shape)} need ({rows.shape[0]},)"
        )
    check_beside(name, given, of, rows)


def check_samples(scores: Tensor, target: Tensor, mask: Tensor | None, qid: Tensor | None, dim: int | None) -> int:
    """The dimension to rank along; raises if shapes, dtypes or devices do not agree."""
    check_tensor("scores", scores)
    if scores.dtype not in _KNOWN:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _KNOWN)
        raise TypeError(f"scores must be floating point ({known}), got {scores.dtype}; pass the raw outputs of a model")
    if scores.dim() == 0:
        raise ValueError("scores must have at least one dimension, got a scalar; keep the dimension of the samples")
    for name, other in (("target", target), ("mask", mask)):
        if other is not None:
            _check_like_scores(name, other, scores)
    if target.is_complex():
        raise TypeError(f"target must be boolean, or 0 and 1, got {target.dtype}")
    if mask is not None and (mask.is_floating_point() or mask.is_complex()):
        raise TypeError(f"mask must be boolean, True where a sample counts, got {mask.dtype}")
    if qid is not None:
        if scores.dim() != 1:
            raise ValueError(f"qid needs flat scores (n,), got {tuple(scores.shape)}; flatten them, or leave qid out")
        check_per_row("qid", qid, "scores", scores)
    if dim is None:
        if scores.dim() > 1:
            raise ValueError(
                f"scores have shape {tuple(scores.shape)}; pass dim, the dimension to rank along. dim=0: the "
                f"{scores.shape[0]} samples of each column are ranked, one query per class; dim=-1: each row is one "
                f"list of {scores.shape[-1]}. For one query, pass scores.flatten() and target.flatten()"
            )
        return -1
    if not is_whole(dim):
        raise TypeError(f"dim must be an integer or None, got {type(dim).__name__}")
    if not -scores.dim() <= dim < scores.dim():
        raise ValueError(f"dim={dim} is not a dimension of scores of shape {tuple(scores.shape)}")
    return int(dim)


def _check_like_scores(name: str, given: Tensor, scores: Tensor) -> None:
    """Raise unless a tensor has the shape and the device of the scores."""
    check_tensor(name, given)
    if given.shape != scores.shape:
        hint = ": pass scores.squeeze(-1)" if scores.shape == (*given.shape, 1) else ""
        raise ValueError(
            f"{name} has shape {tuple(given.shape)} but scores have {tuple(scores.shape)}; make them equal{hint}"
        )
    check_beside(name, given, "scores", scores)


def check_ranked(scores: Tensor, dim: int) -> None:
    """Raise if every list has a single sample and so nothing to rank; warn for a batch of one sample with dim=0.

    A flat query of one sample is an empty query, like any query with one class only.
    """
    ranked = dim % scores.dim()
    # In a compiled graph the size of a batch may be unknown, and asking would break the graph.
    if (ranked == 0 and (scores.dim() == 1 or torch.compiler.is_compiling())) or scores.shape[ranked] != 1:
        return
    what = f"dim={dim} of scores of shape {tuple(scores.shape)} has length 1"
    if ranked > 0:
        raise ValueError(
            f"{what}, so every list has a single sample and there is nothing to rank; pass dim=0 to rank the "
            f"{scores.shape[0]} samples of the batch, or scores.squeeze({dim}) and target.squeeze({dim})"
        )
    warnings.warn(
        f"{what}: a batch of a single sample has nothing to rank, and its loss is 0. Drop such batches "
        "(drop_last=True in a DataLoader). If the sample is one list, pass dim=-1",
        stacklevel=2,
    )


def as_rows(values: Tensor, dim: int) -> Tensor:
    """Values with one query per row (Q, n), ranked along dim; those of a single query are unchanged."""
    if values.dim() == 1 or (values.dim() == 2 and dim in (1, -1)):
        return values
    rows = values.movedim(dim, -1)
    return rows.reshape(rows.shape[:-1].numel(), values.shape[dim])


class Samples(NamedTuple):
    """Relevance of each sample, and which samples count: None if all do. Shapes as the scores'.

    grades: in the best precision, 0 where a sample does not count; None where relevance is binary.
    """

    relevant: Tensor
    valid: Tensor | None
    grades: Tensor | None = None


def read_samples(target: Tensor, mask: Tensor | None, ignore_index: int | None, graded: bool = False) -> Samples:
    """Read target, mask and ignore_index; numbers other than 0 and 1 are grades, if grades are allowed."""
    valid = _valid(target, mask, ignore_index)
    relevant = target
    if target.dtype != torch.bool:
        relevant = target == 1
        others = ~(relevant | (target == 0))
        others = others if valid is None else others & valid
        if bool(others.any()):
            if not graded:
                raise _refused(
                    others, target, "target must be binary: {}; pass booleans, e.g. target > 0 for grades, or"
                )
            grades = _numbers(target, valid, torch.inf, "{}; grades must be finite and at least 0. Pass booleans, or")
            return Samples(grades > 0.0, valid, grades)
    return Samples(relevant if valid is None else relevant & valid, valid)


def read_qualities(target: Tensor, mask: Tensor | None, ignore_index: int | None) -> Samples:
    """Read qualities, which are positive where a sample is; raises for those outside [0, 1]."""
    valid = _valid(target, mask, ignore_index)
    allowed = "{}, but the quality of a positive, such as its IoU, must be in (0, 1] and that of a negative 0"
    quality = _numbers(target, valid, 1.0, f"{allowed}; clamp it, or pass")
    return Samples(quality > 0.0, valid, quality)


def _valid(target: Tensor, mask: Tensor | None, ignore_index: int | None) -> Tensor | None:
    """Which samples count; None if all do."""
    valid = None if mask is None else mask.bool()
    if ignore_index is None:
        return valid
    kept = target != ignore_index
    return kept if valid is None else valid & kept


def _numbers(target: Tensor, valid: Tensor | None, most: float, words: str) -> Tensor:
    """A target in the best precision, 0 where it does not count; refuses what is below 0, above most or infinite."""
    numbers = target.to(precise(target.device))
    if valid is not None:
        numbers = torch.where(valid, numbers, 0.0)
    wrong = ~((numbers >= 0.0) & (numbers <= most) & (numbers < torch.inf))
    if bool(wrong.any()):
        raise _refused(wrong, target, words)
    return numbers


def _refused(wrong: Tensor, target: Tensor, words: str) -> ValueError:
    """An error for the first wrong target, whose place and value stand for {}; words end before a last remedy."""
    at = wrong.nonzero()[0].tolist()
    found = words.format(f"{_place('target', at)} is {target[tuple(at)].item()}")
    return ValueError(f"{found} ignore_index= for a value that means no label")


def within_limits(scores: Tensor, valid: Tensor | None) -> Tensor:
    """Whether each score is finite and small enough to compare; True for samples that do not count."""
    dtype = compute_dtype(scores)
    good = scores.to(dtype).abs() <= _LIMITS[dtype]
    return good if valid is None else good | ~valid


def not_finite(scores: Tensor, valid: Tensor | None) -> NotFiniteError | None:
    """An error for the first score that counts and is not finite or too large; None if there is none."""
    wrong = ~within_limits(scores, valid)
    if not bool(wrong.any()):
        return None
    at = wrong.nonzero()[0].tolist()
    value = scores[tuple(at)].item()
    why = "too large to compare; rescale the scores" if abs(value) < float("inf") else "not finite"
    place = _place("scores", at[-1:] if wrong.shape[0] == 1 else at)
    return NotFiniteError(f"{place} is {value}: {why}; mask it, or look for the cause in the model")


def refuse_scores(scores: Tensor, valid: Tensor | None) -> None:
    """Raise for the first score that counts and is not finite or too large."""
    error = not_finite(scores, valid)
    if error is not None:
        raise error


def _place(what: str, at: list[Any]) -> str:
    return f"{what}{at}" if len(at) == 1 else f"{what} of query {at[0]} at {at[1]}"
