"""The smooth loss with grades in tensors, by soft ranks of all samples; formulas: `rankwise.surrogates.soft_ranks`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.thresholds import check_number, level_norms, sums_of
from rankwise.torch.layout import Samples
from rankwise.torch.on_device.grades import Grades
from rankwise.torch.on_device.rows import sort_rows
from rankwise.torch.on_device.soft import Positives, Windows, count, level_sums, positives_of, windows_of
from rankwise.torch.on_device.tables import DiscountedTensors


def soft_ranks(
    scores: Tensor,
    grades: Grades,
    loss: DiscountedLoss,
    width: float,
    gain: NDArray[np.float64],
    step: NDArray[np.float64],
) -> tuple[Tensor, Tensor]:
    """Values (Q,) and gradients (Q, n) from G and ΔG of every level; both are 0 of queries without steps."""
    n_levels = grades.numbers
    norm = sums_of(step * level_norms(grades.levels, grades.sizes, step, loss), n_levels)
    norm[~((n_levels > 1) & (norm > 0.0))] = np.inf
    best = sums_of(step * loss.ideals(np.where(step > 0.0, grades.levels.members, 1)), n_levels) / norm
    all_places = _places(scores, grades.valid, width)
    dtype, n = all_places.place.dtype, grades.valid.sum(1, keepdim=True).clamp(min=1)
    on_device = torch.as_tensor(np.stack([best, 1.0 / norm]), dtype=dtype, device=scores.device)
    tensors = DiscountedTensors(loss, n, torch.ones_like(n), (int(n.amax()), max(scores.shape[1], 2)))
    discount, slope = tensors.continued(all_places.place)
    share, gradient = on_device[1][:, None], torch.zeros_like(discount)
    weight = grades.by_sample(gain)
    if not loss.is_uniform:
        weight = _by_levels(scores, grades, tensors, width, grades.in_rows(step), discount * share, gradient)
    weight = weight * share
    return on_device[0] - (discount * weight).sum(1), gradient + all_places.pull(-slope * weight)


def _by_levels(
    scores: Tensor,
    grades: Grades,
    loss: DiscountedTensors,
    width: float,
    step: Tensor,
    discount: Tensor,
    gradient: Tensor,
) -> Tensor:
    """W of every sample; adds the gradient through places among samples of at least some grade. discount: D/Z."""
    check_number(step.shape[1])
    weight = torch.zeros_like(discount)
    for t in step.any(0).nonzero().flatten().tolist():
        among = _places(scores, grades.members(t), width)
        w, slope = loss.interpolated(among.place)
        steps = torch.where(grades.members(t), step[:, t : t + 1], 0.0)
        weight += steps * w
        gradient += among.pull(-discount * steps * slope)
    return weight


class _Places(NamedTuple):
    """Soft places of members among themselves, (Q, n), 1 of others; near: the members in each one's window, by rank."""

    place: Tensor
    positives: Positives
    windows: Windows
    near: Tensor
    at: Tensor
    real: Tensor

    def pull(self, rate: Tensor) -> Tensor:
        """The gradient of Σ rate·place, by sample."""
        own = torch.where(self.real, rate.gather(1, self.at), 0.0)
        slope = (level_sums(self.windows, own) - own * self.near) * (0.5 / self.positives.width)
        return torch.zeros_like(rate).scatter_(1, self.at, torch.where(self.real, slope, 0.0))


def _places(scores: Tensor, member: Tensor, width: float) -> _Places:
    """½ + Σ_e H(s_e − s_d) over the members of each query; there must be at least one member."""
    rows = sort_rows(scores, Samples(member, member))
    positives = positives_of(rows, width)
    windows = windows_of(positives, positives.level)
    above, near = count(positives, windows, rows.real)
    at = rows.order[:, : above.shape[1]]  # members come first
    place = above.new_ones(scores.shape)
    place.scatter_(1, at, torch.where(rows.real, (0.5 + above).clamp(min=1.0), 1.0))
    return _Places(place, positives, windows, near, at, rows.real)
