"""Comparisons softened by a ramp, H(x) = clip(x/(2·width) + ½, 0, 1), and sums over them for all queries of a batch.

Scores are negated, t = −s, so that positives ascend from the top: c_k = Σ_j H(t_k − t_j). Two searches among the edges
t_k ± width place a sample: it is below the windows of positives k < under, in those of under ≤ k < upto, and above
those from upto on. This takes O(n log P) work and O(n) memory per query, and no P × N matrix.

A sum over a window is a difference of two prefix sums, and must not cancel. So positives are divided into cells, each
as long as two windows and numbered along the gaps between positives; a gap longer than a cell counts as one cell.
However far apart scores lie, those in a window lie in one cell or in two consecutive ones. Offsets are measured from
the first positive of the cell. Sums of offsets by positive are sums of integers, which use as many bits as n allows.
They are exact except for the rounding of each offset, to 2⁻⁵⁰ of a window for n up to 1,000 and 2⁻⁴⁰ for a million, on
any device in any order. Sums of weights by sample are differences of running sums in floating point, with the rounding
error of the total: with a million samples, less than 10⁻¹² of the largest gradient in every trial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.torch.on_device.rows import SortedRows

_pad = torch.nn.functional.pad


class Positives(NamedTuple):
    """Positives of each query from the top, (Q, P). level: t, or ∞ after the last positive; real: whether there is one.

    lower, upper: the edges of their windows. head: the first positive of their cell. base: its level. offset: the
    distance from base, in units of 2·width.
    """

    width: float
    level: Tensor
    real: Tensor
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
    real = torch.arange(rows.most_pos, device=rows.pos.device) < rows.n_pos
    level = torch.where(real, -rows.pos, torch.inf)
    steps = torch.where(real[:, 1:], level.diff() / (4.0 * width), 0.0).clamp(max=1.0)
    cell = _pad(steps.cumsum(1).floor(), (1, 0))
    head = torch.searchsorted(cell, cell)
    base = level.gather(1, head)
    lower = _first_near(level - width, lambda x: x - level > -width)
    upper = _first_near(level + width, lambda x: x - level >= width)
    return Positives(
        width, level, real, lower, upper, head, base, torch.where(real, (level - base) / (2.0 * width), 0.0)
    )


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
