"""Grades in tensors: the different ones of every query, and the smooth loss by soft ranks of all samples.

Formulas: `rankwise.surrogates.soft_ranks`. What a loss makes of the levels of grades is found on the host.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.thresholds import Levels, level_norms, sums_of
from rankwise.torch.layout import Samples
from rankwise.torch.on_device.rows import sort_rows
from rankwise.torch.on_device.soft import count, level_sums, positives_of, windows_of
from rankwise.torch.on_device.tables import DiscountedTensors

_Floats = NDArray[np.float64]


class Grades(NamedTuple):
    """Grades (Q, n) of a batch. valid: which count. level: (Q, L) the different ones, ascending, ∞ after the last.

    levels: the same for `rankwise.metrics.thresholds`. sizes: (Q,) samples that count. Both are on the host.
    """

    grades: Tensor
    valid: Tensor
    level: Tensor
    levels: Levels
    sizes: NDArray[np.int64]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of different grades of each query, (Q,)."""
        return np.diff(self.levels.starts)

    @property
    def can_rank(self) -> Tensor:
        """Whether each query has two different grades, (Q,)."""
        return (self.level < torch.inf).sum(1) > 1

    def members(self, t: int) -> Tensor:
        """Which samples have at least the t-th grade of their query."""
        return (self.grades >= self.level[:, t : t + 1]) & self.valid

    def in_rows(self, values: _Floats) -> Tensor:
        """Values by level, (T,), as (Q, L); 0 where a query has no more levels."""
        found = torch.zeros_like(self.level)
        found[self.level < torch.inf] = torch.as_tensor(values, dtype=found.dtype, device=found.device)
        return found

    def by_sample(self, values: _Floats) -> Tensor:
        """Values by level, (T,), of the level of each sample, (Q, n)."""
        at = torch.searchsorted(self.level, self.grades.contiguous()).clamp(max=self.level.shape[1] - 1)
        return torch.where(self.valid, self.in_rows(values).gather(1, at), 0.0)


def grades_of(samples: Samples) -> Grades:
    """The grades of rows (Q, n)."""
    grades = cast(Tensor, samples.grades)
    valid = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    by_grade = torch.where(valid, grades, -1.0).sort(dim=1).values
    new = torch.nn.functional.pad(by_grade[:, 1:] != by_grade[:, :-1], (1, 0), value=True) & (by_grade >= 0.0)
    n_levels = new.sum(1)
    most = max(int(n_levels.amax()), 1)
    at = torch.where(by_grade >= 0.0, new.cumsum(1) - 1, most)
    level = grades.new_full((grades.shape[0], most + 1), torch.inf).scatter_(1, at, by_grade)[:, :most].contiguous()
    size = torch.zeros_like(at).new_zeros(grades.shape[0], most + 1).scatter_add_(1, at, torch.ones_like(at))[:, :most]
    members, real = size.flip(1).cumsum(1).flip(1), level < torch.inf
    starts = np.concatenate([[0], np.cumsum(n_levels.cpu().numpy())])
    levels = Levels(starts, level[real].double().cpu().numpy(), members[real].cpu().numpy())
    return Grades(grades, valid, level, levels, valid.sum(1).cpu().numpy())


def soft_ranks(
    scores: Tensor, grades: Grades, loss: DiscountedLoss, width: float, gain: _Floats, step: _Floats
) -> tuple[Tensor, Tensor]:
    """Values (Q,) and gradients (Q, n) from G and ΔG of every level; both are 0 of queries without steps.

    The loss is uniform, and a sample counts in some query. The soft rank of d is ½ + Σ_e H(s_e − s_d).
    """
    n_levels, levels = grades.numbers, grades.levels
    norm = sums_of(step * level_norms(levels, grades.sizes, step, loss), n_levels)
    norm[~((n_levels > 1) & (norm > 0.0))] = np.inf
    best = sums_of(step * loss.ideals(np.where(step > 0.0, levels.members, 1)), n_levels) / norm
    rows = sort_rows(scores, Samples(grades.valid, grades.valid))
    positives = positives_of(rows, width)
    windows = windows_of(positives, positives.level)
    above, near = count(positives, windows, rows.real)
    at = rows.order[:, : above.shape[1]]  # samples that count come first
    value, share = torch.as_tensor(np.stack([best, 1.0 / norm]), dtype=above.dtype, device=above.device)[:, :, None]
    n = grades.valid.sum(1, keepdim=True).clamp(min=1)
    tensors = DiscountedTensors(loss, n, torch.ones_like(n), (int(n.amax()), max(scores.shape[1], 2)))
    discount, slope = tensors.continued(torch.where(rows.real, (0.5 + above).clamp(min=1.0), 1.0))
    weight = torch.where(rows.real, (grades.by_sample(gain) * share).gather(1, at), 0.0)
    rate = -slope * weight
    pulled = (level_sums(windows, rate) - rate * near) * (0.5 / width)
    gradient = torch.zeros_like(value.expand(scores.shape)).scatter_(1, at, torch.where(rows.real, pulled, 0.0))
    return value.squeeze(1) - (discount * weight).sum(1), gradient
