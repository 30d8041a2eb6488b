"""Any device: the same results from tensor operations only. Scores stay on the device; the host reads sizes.

The cost is that of a few sorts: O(n log n) work and O(n) memory, and no matrix of positives by negatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.thresholds import Levels, check_number, weigh_levels
from rankwise.surrogates import ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.torch.layout import Samples, compute_dtype, precise, refuse_scores
from rankwise.torch.objective import Objective, Outcome, RankSort
from rankwise.torch.on_device.hinge import hinge
from rankwise.torch.on_device.rank_sort import rank_sort
from rankwise.torch.on_device.rows import SortedRows, sort_rows
from rankwise.torch.on_device.soft import error_driven, smooth
from rankwise.torch.on_device.tables import DiscountedTensors

_SOLVERS: dict[type[Surrogate], Callable[..., tuple[Tensor, Tensor]]] = {
    Hinge: hinge,
    Smooth: smooth,
    ErrorDriven: error_driven,
}


def can_solve(objective: Objective, graded: bool) -> bool:
    """Whether there are tensor operations for it: for RankSort, and for losses with a discount.

    The hinge must satisfy (C2), and the smooth loss must not have to soften the ranks of all samples, as with grades.
    """
    loss, surrogate = objective.loss, objective.surrogate
    known = type(surrogate) in _SOLVERS and loss.has_discount
    if isinstance(surrogate, Hinge):
        return known and surrogate.method == "auto" and loss.k is None
    if isinstance(surrogate, Smooth):
        return known and not (graded and surrogate.soft_ranks)
    return known or type(surrogate) is RankSort


def solve_batch(scores: Tensor, samples: Samples, qid: Tensor | None, objective: Objective) -> Outcome:
    """As in `core`, for what `can_solve`."""
    if qid is not None:
        return _solve_ragged(scores, samples, qid, objective)
    if scores.dim() == 2:
        return _solve_rows(scores, samples, objective)
    row = Samples(*(None if one is None else one[None] for one in samples))  # type: ignore[arg-type]
    alone = _solve_rows(scores[None], row, objective)
    return alone._replace(gradient=alone.gradient[..., 0, :])


def _nothing(scores: Tensor, n_queries: int, parts: tuple[int, ...] = ()) -> Outcome:
    """The outcome of queries that do not count."""
    values = scores.new_zeros((*parts, n_queries), dtype=precise(scores.device))
    filled = scores.new_zeros(n_queries, dtype=torch.bool)
    return Outcome(values, filled, scores.new_zeros((*parts, *scores.shape)))


def _solve_rows(scores: Tensor, samples: Samples, objective: Objective) -> Outcome:
    """Solve scores (Q, n) with one query per row."""
    scores = scores.detach().to(compute_dtype(scores)).contiguous()
    if scores.numel() == 0:
        return _nothing(scores, scores.shape[0], objective.parts)
    if isinstance(objective.surrogate, RankSort):
        return rank_sort(scores, samples, objective.surrogate.width)
    solve = _solve_binary if samples.grades is None else _solve_graded
    return solve(scores, samples, objective)


def _solve_ragged(scores: Tensor, samples: Samples, qid: Tensor, objective: Objective) -> Outcome:
    """Solve scores (n,) with queries by qid.

    Queries of similar size (by powers of two) are padded to rows together, so memory stays O(n).
    """
    flat = scores.detach().to(compute_dtype(scores))
    refuse_scores(flat, samples.valid)
    valid = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    ids, query, sizes = torch.unique(qid.long(), return_inverse=True, return_counts=True)
    by_query = query.argsort(stable=True)
    begins = sizes.cumsum(0) - sizes
    found = _nothing(flat, ids.shape[0], objective.parts)
    classes = (2 * sizes - 1).double().log2().long()  # ⌈log2 size⌉
    for level in classes.unique().tolist():
        members = (classes == level).nonzero().squeeze(1)
        places = begins[members, None] + torch.arange(1 << level, device=flat.device)
        inside = torch.arange(1 << level, device=flat.device) < sizes[members, None]
        at = by_query[places.clamp(max=by_query.shape[0] - 1)]
        grades = None if samples.grades is None else torch.where(inside, samples.grades[at], 0.0)
        part = _solve_rows(flat[at], Samples(samples.relevant[at] & inside, valid[at] & inside, grades), objective)
        found.values[..., members], found.filled[members] = part.values, part.filled
        found.gradient[..., at[inside]] = part.gradient[..., inside]
    return found._replace(query=query)


def _solve_binary(scores: Tensor, samples: Samples, objective: Objective) -> Outcome:
    loss, surrogate = cast(DiscountedLoss, objective.loss), objective.surrogate
    rows = sort_rows(scores, samples)
    filled, most_pos = rows.can_rank, rows.pos.shape[1]
    if most_pos == 0 or rows.most_neg == 0:
        return _nothing(scores, scores.shape[0])
    _check(loss, rows, isinstance(surrogate, Hinge))
    tensors = DiscountedTensors(loss, rows.n_pos, rows.n_neg, (most_pos, max(scores.shape[1], 2)))
    values, slope = _SOLVERS[type(surrogate)](rows, tensors, surrogate)
    values = torch.where(filled.squeeze(1), values, 0.0)
    slope = torch.where(filled, slope, 0.0).to(scores.dtype)
    return Outcome(values, filled.squeeze(1), torch.zeros_like(scores).scatter_(1, rows.order, slope))


def _check(loss: DiscountedLoss, rows: SortedRows, thorough: bool) -> None:
    """Raise for a custom loss that has no normaliser, or, if thorough, breaks (C2), for the counts of some query."""
    if loss.proven:
        return
    for n_pos, n_neg in torch.cat([rows.n_pos, rows.n_neg], 1).unique(dim=0).tolist():
        if n_pos == 0 or n_neg == 0:
            continue
        if thorough:
            loss.check(n_pos, n_neg, thorough=False)
        else:
            loss.normaliser(n_pos, n_neg)


def _solve_graded(scores: Tensor, samples: Samples, objective: Objective) -> Outcome:
    """Sums of binary results over thresholds of grades; see `rankwise.metrics.thresholds`."""
    grades = cast(Tensor, samples.grades)
    valid = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    level, members = _levels_of(grades, valid)
    check_number(level.shape[1])
    real = level < torch.inf
    n_levels = real.sum(1)
    starts = np.concatenate([[0], np.cumsum(n_levels.cpu().numpy())])
    on_host = Levels(starts, level[real].double().cpu().numpy(), members[real].cpu().numpy())
    weights = torch.zeros_like(level)
    found = weigh_levels(on_host, valid.sum(1).cpu().numpy(), objective.loss)
    weights[real] = torch.as_tensor(found, dtype=level.dtype, device=level.device)
    values, gradient = torch.zeros_like(weights[:, 0]), torch.zeros_like(scores)
    for t in range(1, level.shape[1]):
        part = _solve_binary(scores, Samples((grades >= level[:, t : t + 1]) & valid, valid), objective)
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
