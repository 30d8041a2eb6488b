"""The smooth and the error-driven loss in tensors; formulas: `rankwise.surrogates.smooth` and `error_driven`."""

from __future__ import annotations

import torch
from torch import Tensor

from rankwise.surrogates import ErrorDriven, Smooth
from rankwise.torch.on_device.ramps import (
    Positives,
    Windows,
    count,
    level_sums,
    positives_of,
    ramp_sums,
    windows_of,
)
from rankwise.torch.on_device.rows import SortedRows
from rankwise.torch.on_device.tables import DiscountedTensors


def smooth(rows: SortedRows, loss: DiscountedTensors, surrogate: Smooth) -> tuple[Tensor, Tensor]:
    """Values (Q,), and gradients by rank, (Q, n)."""
    positives, windows, above, near = _counts(rows, surrogate.width)
    k = torch.arange(1, rows.most_pos + 1, device=above.device)
    w = loss.weight[k - 1] / loss.norm
    ideal, _ = loss.continued(k.to(above.dtype))
    found, slope = loss.continued(torch.where(positives.real, k + above, 1.0))
    weight = _shared(positives, torch.where(positives.real, -w * slope, 0.0)) * (0.5 / surrogate.width)
    return _by_rank(rows, positives, w * (ideal - found), -weight * near, level_sums(windows, weight))


def error_driven(rows: SortedRows, loss: DiscountedTensors, surrogate: ErrorDriven) -> tuple[Tensor, Tensor]:
    """Values (Q,), and updates by rank, (Q, n)."""
    positives, windows, above, _ = _counts(rows, surrogate.width)
    error = _errors(rows, positives, loss, above, surrogate.interpolate)
    weight = torch.where(positives.real & (above > 0.0), error / above, 0.0)
    return _by_rank(rows, positives, error, -error, ramp_sums(positives, windows, weight))


def _counts(rows: SortedRows, width: float) -> tuple[Positives, Windows, Tensor, Tensor]:
    """Positives, the windows of all samples, and c_k of every positive with the number of negatives in its window."""
    positives = positives_of(rows, width)
    windows = windows_of(positives, -rows.scores.to(positives.level.dtype).contiguous())
    return positives, windows, *count(positives, windows, rows.is_neg)


def _by_rank(
    rows: SortedRows, positives: Positives, error: Tensor, own: Tensor, of_negatives: Tensor
) -> tuple[Tensor, Tensor]:
    """Values, and gradients by rank, from the errors and own gradients of positives (Q, P)."""
    values = torch.where(positives.real, error, 0.0).sum(1)
    of_positives = own.gather(1, (rows.is_pos.cumsum(1) - 1).clamp(min=0))
    return values, torch.where(rows.is_neg, of_negatives, torch.where(rows.is_pos, of_positives, 0.0))


def _errors(
    rows: SortedRows, positives: Positives, loss: DiscountedTensors, above: Tensor, interpolate: bool
) -> Tensor:
    """The error of every positive, (Q, P): (w(p)/C)·(D(p) − D(p + c)), p its soft place among the positives."""
    among, _ = count(positives, windows_of(positives, positives.level), positives.real)
    place = torch.where(positives.real, (0.5 + among).clamp(min=1.0), 1.0)
    ideal, _ = loss.continued(place)
    found, _ = loss.continued(place + torch.where(positives.real, above, 0.0))
    has_precision = (ideal > 0.0) | ((ideal == 0.0) & loss.is_cut)
    if interpolate and bool(has_precision.any()):
        precision = torch.where(positives.real, torch.where(ideal > 0.0, found / ideal, 0.0), -torch.inf)
        highest = ideal * precision.flip(1).cummax(1).values.flip(1)
        found = torch.where((has_precision | ~positives.real).all(1, keepdim=True), highest, found)
    low = place.long().clamp(max=rows.most_pos)
    high = (low + 1).clamp(max=rows.most_pos)
    w = loss.weight[low - 1] + (place - low) * (loss.weight[high - 1] - loss.weight[low - 1])
    return w / loss.norm * (ideal - found)


def _shared(positives: Positives, values: Tensor) -> Tensor:
    """Give positives that tie their mean."""
    level = positives.level
    run = torch.nn.functional.pad((level[:, 1:] != level[:, :-1]).cumsum(1), (1, 0))
    sums, sizes = (torch.zeros_like(values).scatter_add_(1, run, one) for one in (values, torch.ones_like(values)))
    return (sums / sizes.clamp(min=1.0)).gather(1, run)
