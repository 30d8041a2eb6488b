"""Any device: the same results from tensor operations only. Scores stay on the device; the host reads sizes."""

from __future__ import annotations

from functools import partial
from typing import cast

import torch
from torch import Tensor

from rankwise.metrics.discounted import DiscountedLoss
from rankwise.metrics.loss import Loss
from rankwise.metrics.step_loss import StepLoss
from rankwise.torch.layout import Samples, compute_dtype, precise, refuse_scores
from rankwise.torch.outcome import Goal, Outcome
from rankwise.torch.tensor_dynamic import best_rewarded
from rankwise.torch.tensor_grades import solve_graded
from rankwise.torch.tensor_halving import most_violating
from rankwise.torch.tensor_loss import DiscountedTensors, StepTensors, TensorLoss
from rankwise.torch.tensor_rows import SortedRows, bisect, gradient, sort_rows, total
from rankwise.torch.tensor_soft import softened


def solve_batch(
    scores: Tensor, samples: Samples, qid: Tensor | None, loss: Loss, goal: Goal
) -> tuple[Outcome, Tensor | None]:
    """As in `core_backend`."""
    if loss.breaks_c1 is not None and loss.has_grades:
        raise ValueError(
            f"{loss.name} runs on the CPU only, in the compiled core; pass scores.cpu() and backend='core'"
        )
    if qid is not None:
        return _solve_ragged(scores, samples, qid, loss, goal)
    if scores.dim() == 2:
        return _solve_rows(scores, samples, loss, goal), None
    row = Samples(*(None if one is None else one[None] for one in samples))  # type: ignore[arg-type]
    alone = _solve_rows(scores[None], row, loss, goal)
    return alone._replace(gradient=alone.gradient[0]), None


def _solve_rows(scores: Tensor, samples: Samples, loss: Loss, goal: Goal) -> Outcome:
    """Solve scores (Q, n) with one query per row."""
    scores = scores.detach().to(compute_dtype(scores)).contiguous()
    if scores.numel() == 0:
        return Outcome(scores.new_zeros(scores.shape[0]), scores.new_zeros(scores.shape[0]).bool(), scores.clone())
    if samples.grades is not None:
        return solve_graded(scores, samples, loss, goal, partial(_solve_binary, loss=loss, goal=goal))
    return _solve_binary(scores, samples, loss, goal)


def _solve_binary(scores: Tensor, samples: Samples, loss: Loss, goal: Goal) -> Outcome:
    if not loss.has_grades:
        return _zero_one(scores, samples, goal)
    if loss.has_discount:
        return _solve(scores, samples, loss, goal)
    parts = [_solve(*_row(scores, samples, q), loss, goal) for q in range(scores.shape[0])]
    return Outcome(*(torch.cat(one) for one in zip(*parts, strict=True)))


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


def _row(scores: Tensor, samples: Samples, q: int) -> tuple[Tensor, Samples]:
    valid = None if samples.valid is None else samples.valid[q : q + 1]
    return scores[q : q + 1], Samples(samples.relevant[q : q + 1], valid)


def _solve(scores: Tensor, samples: Samples, loss: Loss, goal: Goal) -> Outcome:
    rows = sort_rows(scores, samples)
    filled = (rows.n_pos > 0) & (rows.n_neg > 0)
    if rows.most_pos == 0 or rows.most_neg == 0:
        return Outcome(rows.pos.new_zeros(scores.shape[0]), filled.squeeze(1), torch.zeros_like(scores))
    _check(loss, rows, goal)
    if goal.is_soft:
        return _outcome(scores, rows, filled, *softened(rows, _discounted(loss, rows), goal))
    in_tensors = _in_tensors(loss, rows, has_c2=goal.update != "negative")
    unit = torch.where(filled, 2 / (rows.n_pos.to(rows.pos.dtype) * rows.n_neg), 0.0)
    if goal.update:
        values, slope = _direct(rows, in_tensors, loss, goal, unit)
    else:
        above = _most_violating(rows, in_tensors, loss, goal.scale)
        slope = gradient(rows, above) * unit
        values = goal.scale * in_tensors.lost(above, rows.n_pos) + total(rows, slope)
    return _outcome(scores, rows, filled, values, slope)


def _outcome(scores: Tensor, rows: SortedRows, filled: Tensor, values: Tensor, slope: Tensor) -> Outcome:
    """Values (Q,) of queries that are filled (Q, 1), and their gradients (Q, n), moved from ranks back to places."""
    values = torch.where(filled.squeeze(1), values, 0.0)
    slope = torch.where(filled, slope, 0.0).to(scores.dtype)
    return Outcome(values, filled.squeeze(1), torch.zeros_like(scores).scatter_(1, rows.order, slope))


def _most_violating(rows: SortedRows, in_tensors: TensorLoss, loss: Loss, scale: float) -> Tensor:
    """By Algorithm 1; or by the dynamic programme for a loss with a cut-off, which does not satisfy (C2)."""
    if loss.k is None:
        return most_violating(rows, in_tensors, scale)
    return best_rewarded(rows, in_tensors, scale, rows.most_neg)


def _direct(rows: SortedRows, in_tensors: TensorLoss, loss: Loss, goal: Goal, unit: Tensor) -> tuple[Tensor, Tensor]:
    """Δ of the ranking by scores, and the direct-loss update; ties are broken so that the two rankings differ."""
    worst = bisect(rows, worst=True)
    if goal.update == "positive":
        higher, lower = _most_violating(rows, in_tensors, loss, goal.scale), bisect(rows, worst=False)
    else:
        # No more negatives above than by scores, unless the loss falls as their number grows.
        most = int(worst.amax()) if in_tensors.rises else rows.most_neg
        higher, lower = worst, best_rewarded(rows, in_tensors, -goal.scale, most)
    slope = (gradient(rows, higher) - gradient(rows, lower)) * (unit / goal.scale)
    return in_tensors.lost(worst, rows.n_pos), slope


def _in_tensors(loss: Loss, rows: SortedRows, has_c2: bool) -> TensorLoss:
    if loss.has_discount:
        return _discounted(loss, rows)
    if loss.step is not None:
        return StepTensors(cast(StepLoss, loss), rows.most_pos, rows.most_neg, rows.pos.device, has_c2)
    raise TypeError(f"{loss!r} is neither a DiscountedLoss nor a StepLoss and runs on the CPU only; pass scores.cpu()")


def _discounted(loss: Loss, rows: SortedRows) -> DiscountedTensors:
    most = (rows.most_pos, max(rows.scores.shape[1], 2))
    return DiscountedTensors(cast(DiscountedLoss, loss), rows.n_pos, rows.n_neg, most)


def _check(loss: Loss, rows: SortedRows, goal: Goal) -> None:
    """Raise for a custom loss that breaks (C2), or has no normaliser, for the counts of some query."""
    if loss.proven:
        return
    for n_pos, n_neg in torch.cat([rows.n_pos, rows.n_neg], 1).unique(dim=0).tolist():
        if n_pos == 0 or n_neg == 0:
            continue
        if goal.update != "negative" and not goal.is_soft and loss.k is None:
            loss.check(n_pos, n_neg, thorough=False)
        else:
            loss.normaliser(n_pos, n_neg)


def _zero_one(scores: Tensor, samples: Samples, goal: Goal) -> Outcome:
    """J = (1/n) Σ max(0, scale − y·s), y = ±1."""
    refuse_scores(scores, samples.valid)
    counted = torch.ones_like(samples.relevant) if samples.valid is None else samples.valid
    n = counted.sum(1, keepdim=True)
    filled = samples.relevant.any(1) & (counted & ~samples.relevant).any(1)
    y = torch.where(samples.relevant, 1.0, -1.0).to(scores.dtype)
    margin = goal.scale - y * scores
    wrong = counted & (margin > 0) & filled[:, None]
    values = torch.where(wrong, margin, 0.0).sum(1, dtype=precise(scores.device))
    size = n.clamp(min=1).to(scores.dtype)
    return Outcome(values / size.squeeze(1), filled, torch.where(wrong, -y / size, 0.0))
