"""Grades in tensors: sums over thresholds of binary results, and soft ranks; see `rankwise.metrics.thresholds`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.thresholds import Levels, check_number, level_gains, level_norms, sums_of, weigh_levels
from rankwise.surrogates import Smooth
from rankwise.surrogates.soft_ranks import has_one_step
from rankwise.torch.layout import Samples, precise, refuse_scores
from rankwise.torch.objective import Objective, Outcome
from rankwise.torch.on_device.ramps import Positives, Windows, count, level_sums, positives_of, windows_of
from rankwise.torch.on_device.rows import sort_rows
from rankwise.torch.on_device.tables import DiscountedTensors

Binary = Callable[[Tensor, Samples], Outcome]


class _Grades(NamedTuple):
    """Grades of a batch, (Q, n) in rows. valid: which samples count. level: (Q, L) different grades by row, ascending.

    Entries beyond the levels of a row are infinite. on_host: the same for
    `rankwise.metrics.thresholds`, on the host. sizes: (Q,) samples per row, on the host.
    """

    grades: Tensor
    valid: Tensor
    level: Tensor
    on_host: Levels
    sizes: np.ndarray

    def in_rows(self, values: np.ndarray) -> Tensor:
        """Values by level, (T,), as (Q, L) on the device; 0 where a row has no more levels."""
        level = self.level
        result = torch.zeros_like(level)
        result[level < torch.inf] = torch.as_tensor(values, dtype=level.dtype, device=level.device)
        return result

    def by_sample(self, values: np.ndarray) -> Tensor:
        """Values by level, (T,), of the level of each sample, (Q, n) on the device."""
        at = torch.searchsorted(self.level, self.grades)
        return self.in_rows(values).gather(1, at.clamp(max=self.level.shape[1] - 1))


def solve_graded(scores: Tensor, samples: Samples, objective: Objective, binary: Binary) -> Outcome:
    """Solve scores (Q, n) with grades, one query per row; binary: solves samples without grades."""
    found, loss = _levels_of(samples), cast(DiscountedLoss, objective.loss)
    if isinstance(objective.surrogate, Smooth):
        return _smooth_by_worth(scores, found, loss, objective.surrogate.width, binary)
    check_number(found.level.shape[1])
    weights = found.in_rows(weigh_levels(found.on_host, found.sizes, loss))
    filled = (found.level < torch.inf).sum(1) > 1
    values, gradient = torch.zeros_like(weights[:, 0]), torch.zeros_like(scores)
    for t in range(1, found.level.shape[1]):
        part = binary(scores, Samples((found.grades >= found.level[:, t : t + 1]) & found.valid, found.valid))
        values += weights[:, t] * part.values
        gradient += weights[:, t : t + 1].to(gradient.dtype) * part.gradient
    if found.level.shape[1] < 2:  # no threshold has checked the scores
        sort_rows(scores, Samples(found.valid, found.valid))
    return Outcome(values, filled, gradient)


def _levels_of(samples: Samples) -> _Grades:
    grades = cast(Tensor, samples.grades)
    valid = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    by_grade = torch.where(valid, grades, -1.0).sort(dim=1).values
    new = torch.nn.functional.pad(by_grade[:, 1:] != by_grade[:, :-1], (1, 0), value=True) & (by_grade >= 0.0)
    n_levels = new.sum(1)
    most = max(int(n_levels.amax()), 1)
    at = torch.where(by_grade >= 0.0, new.cumsum(1) - 1, most)
    level = grades.new_full((grades.shape[0], most + 1), torch.inf).scatter_(1, at, by_grade)[:, :most].contiguous()
    size = torch.zeros_like(level, dtype=torch.int64).new_zeros(grades.shape[0], most + 1)
    size = size.scatter_add_(1, at, torch.ones_like(at))[:, :most]
    members = size.flip(1).cumsum(1).flip(1)
    real = level < torch.inf
    starts = np.concatenate([[0], np.cumsum(n_levels.cpu().numpy())])
    on_host = Levels(starts, level[real].double().cpu().numpy(), members[real].cpu().numpy())
    return _Grades(grades, valid, level, on_host, valid.sum(1).cpu().numpy())


def _smooth_by_worth(scores: Tensor, found: _Grades, loss: DiscountedLoss, width: float, binary: Binary) -> Outcome:
    """Solve rows with several grades of worth by soft ranks, and the others as binary ones."""
    gain, step = level_gains(found.on_host, loss)
    one_step = has_one_step(found.on_host, step)
    if not one_step.any():
        return _smooth(scores, found, loss, width)
    refuse_scores(scores, found.valid)  # with their places among all rows
    filled = torch.as_tensor(np.diff(found.on_host.starts) > 1, device=scores.device)
    values, gradient = torch.zeros_like(found.level[:, 0]), torch.zeros_like(scores)
    relevant = (found.by_sample(gain) > 0.0) & found.valid
    rows = torch.as_tensor(one_step, device=scores.device)
    parts = [(rows, binary(scores[rows], Samples(relevant[rows], found.valid[rows])))]
    if not one_step.all():
        others = Samples(relevant[~rows], found.valid[~rows], found.grades[~rows])
        parts.append((~rows, _smooth(scores[~rows], _levels_of(others), loss, width)))
    for rows, part in parts:
        values[rows], gradient[rows] = part.values, part.gradient
    return Outcome(values, filled, gradient)


def _smooth(scores: Tensor, found: _Grades, loss: DiscountedLoss, width: float) -> Outcome:
    """The smooth loss by soft ranks; formulas: `rankwise.surrogates.soft_ranks`."""
    gain, step = level_gains(found.on_host, loss)
    n_levels, dtype = np.diff(found.on_host.starts), precise(scores.device)
    norm = sums_of(step * level_norms(found.on_host, found.sizes, step, loss), n_levels)
    norm[~((n_levels > 1) & (norm > 0.0))] = np.inf
    best = sums_of(step * loss.ideals(np.where(step > 0.0, found.on_host.members, 1)), n_levels) / norm
    share = torch.as_tensor(1.0 / norm, dtype=dtype, device=scores.device)[:, None]
    ranked = _among(scores, found.valid, width)
    tensors = _tensors(loss, found)
    discount, slope = tensors.continued(ranked.place)
    if loss.is_uniform:
        weight = found.by_sample(gain)
        gradient: Tensor | float = 0.0
    else:
        weight, gradient = _by_levels(scores, found, tensors, width, found.in_rows(step), discount * share)
    weight = torch.where(found.valid, weight * share, 0.0)
    values = torch.as_tensor(best, dtype=dtype, device=scores.device) - (discount * weight).sum(1)
    gradient = gradient + ranked.gradient(-slope * weight)
    return Outcome(values, torch.as_tensor(n_levels > 1, device=scores.device), gradient.to(scores.dtype))


def _by_levels(
    scores: Tensor, found: _Grades, loss: DiscountedTensors, width: float, step: Tensor, discount: Tensor
) -> tuple[Tensor, Tensor]:
    """W of every sample, (Q, n), and the gradient through places among samples of some grade or more; discount: D/Z."""
    check_number(found.level.shape[1])
    weight = torch.zeros_like(discount)
    gradient = torch.zeros_like(discount)
    for t in range(found.level.shape[1]):
        if not bool(step[:, t].any()):
            continue
        member = (found.grades >= found.level[:, t : t + 1]) & found.valid
        part: _Among = _among(scores, member, width)
        w, slope = loss.interpolated(part.place)
        worth = torch.where(member, step[:, t : t + 1], 0.0)
        weight = weight + worth * w
        gradient = gradient + part.gradient(-discount * worth * slope)
    return weight, gradient


class _Among(NamedTuple):
    """Soft places of members among themselves, by sample (Q, n), 1 for others, and what their gradient needs."""

    place: Tensor
    positives: Positives
    windows: Windows
    near: Tensor
    at: Tensor

    def gradient(self, weight: Tensor) -> Tensor:
        """The gradient by sample of Σ A(place), weight being A′ by sample (Q, n)."""
        own = torch.where(self.positives.real, weight.gather(1, self.at), 0.0)
        slope = (level_sums(self.windows, own) - own * self.near) * (0.5 / self.positives.width)
        return torch.zeros_like(weight).scatter_(1, self.at, torch.where(self.positives.real, slope, 0.0))


def _among(scores: Tensor, member: Tensor, width: float) -> _Among:
    """½ + Σ_e H(s_e − s_d) over the members of each query (Q, n); there must be at least one member."""
    rows = sort_rows(scores, Samples(member, member))
    positives = positives_of(rows, width)
    windows = windows_of(positives, positives.level)
    above, near = count(positives, windows, positives.real)
    at = rows.order[:, : rows.most_pos]  # members come first
    place = torch.ones(scores.shape, dtype=above.dtype, device=scores.device)
    place.scatter_(1, at, torch.where(positives.real, (0.5 + above).clamp(min=1.0), 1.0))
    return _Among(place, positives, windows, near, at)


def _tensors(loss: DiscountedLoss, found: _Grades) -> DiscountedTensors:
    n = found.valid.sum(1, keepdim=True).clamp(min=1)
    most = int(n.amax())
    return DiscountedTensors(loss, n, torch.ones_like(n), (most, max(found.valid.shape[1], 2)))
