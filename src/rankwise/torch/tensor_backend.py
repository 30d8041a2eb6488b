"""Any device: the same results from tensor operations only. Scores stay on the device; the host reads sizes."""

from __future__ import annotations

from functools import partial
from typing import cast

import torch
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.torch.layout import Samples, compute_dtype, precise, refuse_scores
from rankwise.torch.options import Goal, Outcome
from rankwise.torch.tensor_grades import solve_graded
from rankwise.torch.tensor_hinge import hinge
from rankwise.torch.tensor_loss import DiscountedTensors
from rankwise.torch.tensor_rows import SortedRows, sort_rows
from rankwise.torch.tensor_soft import softened


def can_solve(loss: Loss, goal: Goal) -> bool:
    """Whether there are tensor operations for it: for soft counts, and for the hinge under (C2), by a discount."""
    return loss.has_discount and (goal.is_soft or (not goal.update and loss.k is None))


def solve_batch(
    scores: Tensor, samples: Samples, qid: Tensor | None, loss: Loss, goal: Goal
) -> tuple[Outcome, Tensor | None]:
    """As in `core_backend`, for what `can_solve`."""
    if qid is not None:
        return _solve_ragged(scores, samples, qid, loss, goal)
    if scores.dim() == 2:
        return _solve_rows(scores, samples, loss, goal), None
    row = Samples(*(None if one is None else one[None] for one in samples))  # type: ignore[arg-type]
    alone = _solve_rows(scores[None], row, loss, goal)
    return alone._replace(gradient=alone.gradient[0]), None


def _solve_rows(scores: Tensor, samples: Samples, loss: Loss, goal: Goal) -> Outcome:
    """Solve scores (Q, n) with one query per row."""
    loss = cast(DiscountedLoss, loss)
    scores = scores.detach().to(compute_dtype(scores)).contiguous()
    if scores.numel() == 0:
        return Outcome(scores.new_zeros(scores.shape[0]), scores.new_zeros(scores.shape[0]).bool(), scores.clone())
    if samples.grades is not None:
        return solve_graded(scores, samples, loss, goal, partial(_solve_binary, loss=loss, goal=goal))
    return _solve_binary(scores, samples, loss, goal)


def _solve_ragged(scores: Tensor, samples: Samples, qid: Tensor, loss: Loss, goal: Goal) -> tuple[Outcome, Tensor]:
    """Solve scores (n,) with queries by qid; also return the query of each sample.

    Queries of similar size (by powers of two) are padded to rows together, so memory stays O(n).
    """
    flat = scores.detach().to(compute_dtype(scores))
    refuse_scores(flat, samples.valid)
    valid = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    ids, query, sizes = torch.unique(qid.long(), return_inverse=True, return_counts=True)
    by_query = query.argsort(stable=True)
    begins = sizes.cumsum(0) - sizes
    found = Outcome(
        flat.new_zeros(ids.shape[0], dtype=precise(flat.device)), valid.new_zeros(ids.shape[0]), torch.zeros_like(flat)
    )
    classes = (2 * sizes - 1).double().log2().long()  # ⌈log2 size⌉
    for level in classes.unique().tolist():
        members = (classes == level).nonzero().squeeze(1)
        places = begins[members, None] + torch.arange(1 << level, device=flat.device)
        inside = torch.arange(1 << level, device=flat.device) < sizes[members, None]
        at = by_query[places.clamp(max=by_query.shape[0] - 1)]
        grades = None if samples.grades is None else torch.where(inside, samples.grades[at], 0.0)
        given = Samples(samples.relevant[at] & inside, valid[at] & inside, grades)
        part = _solve_rows(flat[at], given, loss, goal)
        found.values[members], found.filled[members] = part.values, part.filled
        found.gradient[at[inside]] = part.gradient[inside]
    return found, query


def _solve_binary(scores: Tensor, samples: Samples, loss: DiscountedLoss, goal: Goal) -> Outcome:
    rows = sort_rows(scores, samples)
    filled = (rows.n_pos > 0) & (rows.n_neg > 0)
    if rows.most_pos == 0 or rows.most_neg == 0:
        return Outcome(rows.pos.new_zeros(scores.shape[0]), filled.squeeze(1), torch.zeros_like(scores))
    _check(loss, rows, goal)
    tensors = DiscountedTensors(loss, rows.n_pos, rows.n_neg, (rows.most_pos, max(scores.shape[1], 2)))
    values, slope = softened(rows, tensors, goal) if goal.is_soft else hinge(rows, tensors, goal.scale)
    values = torch.where(filled.squeeze(1), values, 0.0)
    slope = torch.where(filled, slope, 0.0).to(scores.dtype)
    return Outcome(values, filled.squeeze(1), torch.zeros_like(scores).scatter_(1, rows.order, slope))


def _check(loss: DiscountedLoss, rows: SortedRows, goal: Goal) -> None:
    """Raise for a custom loss that breaks (C2), or has no normaliser, for the counts of some query."""
    if loss.proven:
        return
    for n_pos, n_neg in torch.cat([rows.n_pos, rows.n_neg], 1).unique(dim=0).tolist():
        if n_pos == 0 or n_neg == 0:
            continue
        if goal.is_soft:
            loss.normaliser(n_pos, n_neg)
        else:
            loss.check(n_pos, n_neg, thorough=False)
