"""Grades in tensors: sums of binary results over thresholds; see `rankwise.metrics.thresholds`."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from torch import Tensor

from rankwise.metrics.loss import Loss
from rankwise.metrics.thresholds import Levels, check_number, weigh_levels
from rankwise.torch.layout import Samples
from rankwise.torch.objective import Outcome
from rankwise.torch.on_device.rows import sort_rows


def solve_graded(
    scores: Tensor, samples: Samples, loss: Loss, solve_binary: Callable[[Tensor, Samples], Outcome]
) -> Outcome:
    """Solve scores (Q, n) with grades, one query per row; solve_binary: solves samples without grades."""
    grades = cast(Tensor, samples.grades)
    valid = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    level, members = _levels_of(grades, valid)
    check_number(level.shape[1])
    real = level < torch.inf
    n_levels = real.sum(1)
    starts = np.concatenate([[0], np.cumsum(n_levels.cpu().numpy())])
    on_host = Levels(starts, level[real].double().cpu().numpy(), members[real].cpu().numpy())
    weights = torch.zeros_like(level)
    found = weigh_levels(on_host, valid.sum(1).cpu().numpy(), loss)
    weights[real] = torch.as_tensor(found, dtype=level.dtype, device=level.device)
    values, gradient = torch.zeros_like(weights[:, 0]), torch.zeros_like(scores)
    for t in range(1, level.shape[1]):
        part = solve_binary(scores, Samples((grades >= level[:, t : t + 1]) & valid, valid))
        values += weights[:, t] * part.values
        gradient += weights[:, t : t + 1].to(gradient.dtype) * part.gradient
    if level.shape[1] < 2:  # no threshold has checked the scores
        sort_rows(scores, Samples(valid, valid))
    return Outcome(values, n_levels > 1, gradient)


def _levels_of(grades: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """The different grades of each row, ascending, (Q, L), infinite after the last; and how many samples have them."""
    by_grade = torch.where(valid, grades, -1.0).sort(dim=1).values
    new = torch.nn.functional.pad(by_grade[:, 1:] != by_grade[:, :-1], (1, 0), value=True) & (by_grade >= 0.0)
    most = max(int(new.sum(1).amax()), 1)
    at = torch.where(by_grade >= 0.0, new.cumsum(1) - 1, most)
    level = grades.new_full((grades.shape[0], most + 1), torch.inf).scatter_(1, at, by_grade)[:, :most]
    size = torch.zeros_like(at).new_zeros(grades.shape[0], most + 1).scatter_add_(1, at, torch.ones_like(at))[:, :most]
    return level, size.flip(1).cumsum(1).flip(1)
