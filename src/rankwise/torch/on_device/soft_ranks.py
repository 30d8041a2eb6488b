"""The smooth loss with grades in tensors, by soft ranks of all samples; formulas: `rankwise.surrogates.soft_ranks`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.thresholds import check_number, level_norms, sums_of
from rankwise.torch.layout import Samples
from rankwise.torch.on_device.grades import Grades
from rankwise.torch.on_device.rows import sort_rows
from rankwise.torch.on_device.soft import count, level_sums, positives_of, windows_of
from rankwise.torch.on_device.tables import DiscountedTensors

_Floats = NDArray[np.float64]


def soft_ranks(
    scores: Tensor, grades: Grades, loss: DiscountedLoss, width: float, gain: _Floats, step: _Floats
) -> tuple[Tensor, Tensor]:
    """Values (Q,) and gradients (Q, n) from G and ΔG of every level; both are 0 of queries without steps."""
    n_levels, levels = grades.numbers, grades.levels
    norm = sums_of(step * level_norms(levels, grades.sizes, step, loss), n_levels)
    norm[~((n_levels > 1) & (norm > 0.0))] = np.inf
    best = sums_of(step * loss.ideals(np.where(step > 0.0, levels.members, 1)), n_levels) / norm
    place, pull = _places(scores, grades.valid, width)
    value, share = torch.as_tensor(np.stack([best, 1.0 / norm]), dtype=place.dtype, device=place.device)[:, :, None]
    n = grades.valid.sum(1, keepdim=True).clamp(min=1)
    tensors = DiscountedTensors(loss, n, torch.ones_like(n), (int(n.amax()), max(scores.shape[1], 2)))
    discount, slope = tensors.continued(place)
    weight, gradient = grades.by_sample(gain), torch.zeros_like(place)
    if not loss.is_uniform:
        weight, gradient = _by_levels(scores, grades, tensors, width, grades.in_rows(step), discount * share)
    weight = weight * share
    return value.squeeze(1) - (discount * weight).sum(1), gradient + pull(-slope * weight)


def _by_levels(
    scores: Tensor, grades: Grades, loss: DiscountedTensors, width: float, step: Tensor, discount: Tensor
) -> tuple[Tensor, Tensor]:
    """W of every sample, and the gradient through places among samples of at least some grade; discount: D/Z."""
    check_number(step.shape[1])
    weight, gradient = torch.zeros_like(discount), torch.zeros_like(discount)
    for t in step.any(0).nonzero().flatten().tolist():
        member = grades.members(t)
        place, pull = _places(scores, member, width)
        w, slope = loss.interpolated(place)
        steps = torch.where(member, step[:, t : t + 1], 0.0)
        weight += steps * w
        gradient += pull(-discount * steps * slope)
    return weight, gradient


def _places(scores: Tensor, member: Tensor, width: float) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """½ + Σ_e H(s_e − s_d) over the members of each query (Q, n), 1 of others; and what finds Σ_d rate_d·∂place_d.

    There must be at least one member.
    """
    rows = sort_rows(scores, Samples(member, member))
    positives = positives_of(rows, width)
    windows = windows_of(positives, positives.level)
    above, near = count(positives, windows, rows.real)
    at = rows.order[:, : above.shape[1]]  # members come first
    place = above.new_ones(scores.shape).scatter_(1, at, torch.where(rows.real, (0.5 + above).clamp(min=1.0), 1.0))

    def pull(rate: Tensor) -> Tensor:
        own = torch.where(rows.real, rate.gather(1, at), 0.0)
        slope = (level_sums(windows, own) - own * near) * (0.5 / width)
        return torch.zeros_like(rate).scatter_(1, at, torch.where(rows.real, slope, 0.0))

    return place, pull
