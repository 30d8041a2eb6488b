"""The different grades of every query of a batch, on the device and, for what a loss makes of them, on the host."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.metrics.thresholds import Levels
from rankwise.torch.layout import Samples


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

    def in_rows(self, values: NDArray[np.float64]) -> Tensor:
        """Values by level, (T,), as (Q, L); 0 where a query has no more levels."""
        found = torch.zeros_like(self.level)
        found[self.level < torch.inf] = torch.as_tensor(values, dtype=found.dtype, device=found.device)
        return found

    def by_sample(self, values: NDArray[np.float64]) -> Tensor:
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
