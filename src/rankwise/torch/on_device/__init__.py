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
from rankwise.metrics.thresholds import check_number, level_gains, weigh_levels
from rankwise.surrogates import ErrorDriven, Hinge, Smooth, Surrogate
from rankwise.surrogates.rank_sort import RankSort
from rankwise.surrogates.soft_ranks import has_one_step
from rankwise.torch.layout import Samples, compute_dtype, precise, refuse_scores
from rankwise.torch.objective import Objective, Outcome
from rankwise.torch.on_device.grades import Grades, grades_of, soft_ranks
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
    """Whether there are tensor operations for it: for RankSort, and for losses with a discount; (C2) for the hinge."""
    loss, surrogate = objective.loss, objective.surrogate
    if isinstance(surrogate, Hinge) and not (surrogate.method == "auto" and loss.k is None):
        return False
    if graded and isinstance(surrogate, Smooth) and surrogate.soft_ranks:
        return isinstance(loss, DiscountedLoss) and loss.is_uniform
    return type(surrogate) is RankSort or (type(surrogate) in _SOLVERS and not loss.judges_labels)


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


def _check(loss: DiscountedLoss, rows: SortedRows, needs_c2: bool) -> None:
    """Raise for a custom loss that has no normaliser, or, if needs_c2, breaks (C2), for the counts of some query."""
    if loss.proven:
        return
    for n_pos, n_neg in torch.cat([rows.n_pos, rows.n_neg], 1).unique(dim=0).tolist():
        if n_pos == 0 or n_neg == 0:
            continue
        if needs_c2:
            loss.check(n_pos, n_neg)
        else:
            loss.normaliser(n_pos, n_neg)


def _solve_graded(scores: Tensor, samples: Samples, objective: Objective) -> Outcome:
    """Sums of binary results over thresholds of grades, see `rankwise.metrics.thresholds`; or soft ranks."""
    grades, surrogate = grades_of(samples), objective.surrogate
    if isinstance(surrogate, Smooth) and surrogate.soft_ranks:
        return _solve_soft_ranks(scores, grades, objective, surrogate.width)
    n_levels = check_number(grades.level.shape[1])
    weights = grades.in_rows(weigh_levels(grades.levels, grades.sizes, objective.loss))
    values, gradient = torch.zeros_like(weights[:, 0]), torch.zeros_like(scores)
    for t in range(1, n_levels):
        part = _solve_binary(scores, Samples(grades.members(t), grades.valid), objective)
        values += weights[:, t] * part.values
        gradient += weights[:, t : t + 1].to(gradient.dtype) * part.gradient
    if n_levels < 2:  # no threshold has checked the scores
        sort_rows(scores, Samples(grades.valid, grades.valid))
    return Outcome(values, grades.can_rank, gradient)


def _solve_soft_ranks(scores: Tensor, grades: Grades, objective: Objective, width: float) -> Outcome:
    """The smooth loss by soft ranks; a query with one step of gain is binary, as in the core."""
    loss = cast(DiscountedLoss, objective.loss)
    gain, step = level_gains(grades.levels, loss)
    is_binary = has_one_step(grades.levels, step)
    relevant = (grades.by_sample(gain) > 0.0) & torch.as_tensor(is_binary, device=scores.device)[:, None]
    values, _, gradient, _ = _solve_binary(scores, Samples(relevant, grades.valid), objective)
    if not is_binary.all():  # each result is 0 where the other one counts
        step = np.where(np.repeat(is_binary, grades.numbers), 0.0, step)
        others, slope = soft_ranks(scores, grades, loss, width, gain, step)
        values, gradient = values + others, gradient + slope.to(gradient.dtype)
    return Outcome(values, grades.can_rank, gradient)
