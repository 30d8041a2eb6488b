"""The smooth and the error-driven loss in tensors; formulas: `rankwise.surrogates.smooth` and `error_driven`.

Comparisons are softened by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1), and summed for all queries of a batch at once.

Scores are negated, t = −s, so that positives ascend from the top: c_k = Σ_j H(t_k − t_j). Two searches among the edges
t_k ± width place a sample: it is below the windows of positives k < under, in those of under ≤ k < upto, and above
those from upto on. This takes O(n log P) work and O(n) memory per query, and no P × N matrix.

A sum over a window is a difference of two prefix sums, and must not cancel. So positives are divided into cells, each
as long as two windows; a gap longer than a cell counts as one cell. A window lies in one cell or in two consecutive
ones, and offsets are measured from the first positive of the cell. Sums of offsets by positive are sums of integers
(offsets are rounded to 2⁻⁵⁰ of a window for n up to 1,000 and to 2⁻⁴⁰ for a million), exact on any device in any order.
Sums of weights by sample are in floating point, with the rounding error of the total.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.surrogates import ErrorDriven, Smooth
from rankwise.torch.on_device.rows import SortedRows, mean_of_ties
from rankwise.torch.on_device.tables import DiscountedTensors

_pad = torch.nn.functional.pad


def smooth(rows: SortedRows, loss: DiscountedTensors, surrogate: Smooth) -> tuple[Tensor, Tensor]:
    """Values (Q,), and gradients by rank, (Q, n)."""
    positives, windows, above, near = _counts(rows, surrogate.width)
    k = torch.arange(1, above.shape[1] + 1, device=above.device)
    w = loss.weight[k - 1] / loss.norm
    ideal, _ = loss.continued(k.to(above.dtype))
    found, slope = loss.continued(torch.where(rows.real, k + above, 1.0))
    weight = mean_of_ties(positives.level, -w * slope, rows.real) * (0.5 / surrogate.width)
    errors = torch.where(rows.real, w * (ideal - found), 0.0)
    return errors.sum(1), rows.by_rank(-weight * near, level_sums(windows, weight))


def error_driven(rows: SortedRows, loss: DiscountedTensors, surrogate: ErrorDriven) -> tuple[Tensor, Tensor]:
    """Values (Q,), and updates by rank, (Q, n)."""
    positives, windows, above, _ = _counts(rows, surrogate.width)
    error = _errors(rows, positives, loss, above, surrogate.interpolate)
    weight = torch.where(rows.real & (above > 0.0), error / above, 0.0)
    of_negatives = ramp_sums(positives, windows, weight)
    return torch.where(rows.real, error, 0.0).sum(1), rows.by_rank(-error, of_negatives)


def _counts(rows: SortedRows, width: float) -> tuple[Positives, Windows, Tensor, Tensor]:
    """Positives, the windows of all samples, and c_k of every positive with the number of negatives in its window."""
    positives = positives_of(rows, width)
    windows = windows_of(positives, -rows.scores.to(positives.level.dtype).contiguous())
    return positives, windows, *count(positives, windows, rows.is_neg)


def _errors(
    rows: SortedRows, positives: Positives, loss: DiscountedTensors, above: Tensor, interpolate: bool
) -> Tensor:
    """The error of every positive, (Q, P): (w(p)/C)·(D(p) − D(p + c)), p its soft place among the positives."""
    among, _ = count(positives, windows_of(positives, positives.level), rows.real)
    place = torch.where(rows.real, (0.5 + among).clamp(min=1.0), 1.0)
    ideal, _ = loss.continued(place)
    found, _ = loss.continued(place + torch.where(rows.real, above, 0.0))
    has_precision = (ideal > 0.0) | ((ideal == 0.0) & loss.is_cut)
    if interpolate and bool(has_precision.any()):
        precision = torch.where(rows.real, torch.where(ideal > 0.0, found / ideal, 0.0), -torch.inf)
        highest = ideal * precision.flip(1).cummax(1).values.flip(1)
        found = torch.where((has_precision | ~rows.real).all(1, keepdim=True), highest, found)
    low = place.long().clamp(max=rows.pos.shape[1])
    high = (low + 1).clamp(max=rows.pos.shape[1])
    w = loss.weight[low - 1] + (place - low) * (loss.weight[high - 1] - loss.weight[low - 1])
    return w / loss.norm * (ideal - found)


class Positives(NamedTuple):
    """Positives of each query from the top, (Q, P). level: t, or ∞ after the last positive.

    lower, upper: the edges of their windows. head: the first positive of their cell. base: its level. offset: the
    distance from base, in units of 2·width.
    """

    width: float
    level: Tensor
    lower: Tensor
    upper: Tensor
    head: Tensor
    base: Tensor
    offset: Tensor


class Windows(NamedTuple):
    """By sample (Q, n): it is in the windows of under ≤ k < upto; those from cut on belong to the last cell.

    early, late: its offset from the first positive of the first and of the last of these cells.
    """

    under: Tensor
    cut: Tensor
    upto: Tensor
    early: Tensor
    late: Tensor


def positives_of(rows: SortedRows, width: float) -> Positives:
    """The positives of sorted rows, with the windows of this width around them."""
    real = rows.real
    level = torch.where(real, -rows.pos, torch.inf)
    steps = torch.where(real[:, 1:], level.diff() / (4.0 * width), 0.0).clamp(max=1.0)
    cell = _pad(steps.cumsum(1).floor(), (1, 0))
    head = torch.searchsorted(cell, cell)
    base = level.gather(1, head)
    lower = _first_near(level - width, lambda x: x - level > -width)
    upper = _first_near(level + width, lambda x: x - level >= width)
    return Positives(width, level, lower, upper, head, base, torch.where(real, (level - base) / (2.0 * width), 0.0))


def _first_near(x: Tensor, passes: Callable[[Tensor], Tensor]) -> Tensor:
    """The smallest numbers near x that pass, given rounded differences; like x, they ascend along rows."""
    for _ in range(2):
        below = x.nextafter(torch.full_like(x, -torch.inf))
        x = torch.where(passes(below), below, x)
    for _ in range(2):
        x = torch.where(passes(x), x, x.nextafter(torch.full_like(x, torch.inf)))
    return x.cummax(1).values


def windows_of(positives: Positives, t: Tensor) -> Windows:
    """The windows that hold samples of levels t (Q, n)."""
    under = torch.searchsorted(positives.upper, t, right=True)
    upto = torch.searchsorted(positives.lower, t, right=True)
    last = (upto - 1).clamp(min=0)
    cut = positives.head.gather(1, last).maximum(under).minimum(upto)
    first = under.clamp(max=positives.level.shape[1] - 1)
    early, late = (
        torch.where(under < upto, (t - positives.base.gather(1, at)) / (2.0 * positives.width), 0.0)
        for at in (first, last)
    )
    return Windows(under, cut, upto, early, late)


def count(positives: Positives, windows: Windows, counted: Tensor) -> tuple[Tensor, Tensor]:
    """Σ H(t_k − t_j) over the counted samples for every positive (Q, P), and how many are in its window."""
    dtype = positives.level.dtype
    bits = 60 - counted.shape[1].bit_length()  # offsets in units of 2·width are less than 4 in size
    one = counted.long()
    early, late = ((offset * 2.0**bits).round().long() * one for offset in (windows.early, windows.late))
    under, cut, upto = windows[:3]
    n_pos = positives.level.shape[1]

    def by_positive(*changes: tuple[Tensor, Tensor]) -> Tensor:
        """Running sums of changes, each added from a positive on."""
        total = one.new_zeros(one.shape[0], n_pos + 1)
        for at, change in changes:
            total.scatter_add_(1, at, change)
        return total.cumsum(1)[:, :n_pos]

    beyond, near = by_positive((upto, one)), by_positive((under, one), (upto, -one)).to(dtype)
    moment = by_positive((under, early), (cut, late - early), (upto, -late)).to(dtype) * 2.0**-bits
    inside = 0.5 * near + (near * positives.offset - moment)
    return beyond.to(dtype) + inside.clamp(min=0.0), near


def level_sums(windows: Windows, weight: Tensor) -> Tensor:
    """The sum of the weights of positives whose window contains a sample, (Q, n)."""
    sums = _pad(weight.cumsum(1), (1, 0))
    return sums.gather(1, windows.upto) - sums.gather(1, windows.under)


def ramp_sums(positives: Positives, windows: Windows, weight: Tensor) -> Tensor:
    """Σ_k weight_k·H(t_k − t_j) by sample, (Q, n)."""
    below = _pad(weight.flip(1).cumsum(1).flip(1), (0, 1)).gather(1, windows.upto)
    sums, moments = (_pad(one.cumsum(1), (1, 0)) for one in (weight, weight * positives.offset))
    parts = []
    for first, stop, offset in (
        (windows.under, windows.cut, windows.early),
        (windows.cut, windows.upto, windows.late),
    ):
        inside, moment = (one.gather(1, stop) - one.gather(1, first) for one in (sums, moments))
        parts.append(moment + inside * (0.5 - offset))
    return below + parts[0] + parts[1]
