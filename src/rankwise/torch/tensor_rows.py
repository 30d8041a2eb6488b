"""Queries of one batch sorted along their rows, in tensors only: the input of the search, and gradients of its result.

A row holds the samples of a query by descending score; samples that do not count come last. A ranking is given by c_k,
the number of negatives above the k-th positive: above (Q, P).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.torch.layout import Samples, precise, refuse_scores, within_limits


class SortedRows(NamedTuple):
    """Scores (Q, n) in descending order, their places in the given rows, and which are positive and negative.

    n_pos, n_neg: (Q, 1). pos: (Q, most positives) their scores, in descending order. neg: the negatives' scores of all
    queries one after the other; those of a query begin at first (Q, 1). most_pos, most_neg: the largest counts, on the
    host.
    """

    scores: Tensor
    order: Tensor
    is_pos: Tensor
    is_neg: Tensor
    n_pos: Tensor
    n_neg: Tensor
    pos: Tensor
    neg: Tensor
    first: Tensor
    most_pos: int
    most_neg: int

    def negative(self, j: Tensor) -> Tensor:
        """The score of the j-th negative of each row, 1 ≤ j; arbitrary where there is no j-th negative."""
        return self.neg[(self.first + j - 1).clamp(0, self.neg.shape[0] - 1)]


def sort_rows(scores: Tensor, samples: Samples) -> SortedRows:
    """Sort rows (Q, n) in which some sample counts."""
    relevant, valid = samples.relevant, samples.valid
    n_pos = relevant.sum(1, keepdim=True)
    n_valid = torch.full_like(n_pos, scores.shape[1]) if valid is None else valid.sum(1, keepdim=True)
    n_neg = n_valid - n_pos
    # All that the host needs, in one transfer: sizes, and whether scores can be compared.
    facts = torch.stack([n_pos.amax(), n_neg.amax(), within_limits(scores, valid).all().to(n_pos.dtype)]).tolist()
    if not facts[2]:
        refuse_scores(scores, valid)
    key = scores if valid is None else torch.where(valid, scores, -torch.inf)
    by_score, order = key.sort(dim=1, descending=True)
    is_pos = relevant.gather(1, order)
    is_neg = ~is_pos if valid is None else valid.gather(1, order) & ~is_pos
    dtype = precise(scores.device)
    pos, neg = by_score[is_pos].to(dtype), by_score[is_neg].to(dtype)
    begin = n_pos.cumsum(0) - n_pos
    at = begin + torch.arange(facts[0], device=scores.device)
    rows_of_pos = pos[at.clamp(max=max(pos.shape[0] - 1, 0))] if facts[0] else pos.new_empty(scores.shape[0], 0)
    return SortedRows(
        by_score, order, is_pos, is_neg, n_pos, n_neg, rows_of_pos, neg, n_neg.cumsum(0) - n_neg, facts[0], facts[1]
    )


def tame(rows: SortedRows, reach: Tensor) -> tuple[Tensor, Tensor]:
    """Positives (Q, P), lowered to where no negative passes them, and a ceiling (Q, 1) that passes them all.

    reach (Q, 1): the most that the loss adds to a step, in absolute value. Sums of steps keep their signs, and no
    distant score makes them inexact.
    """
    highest = rows.negative(torch.ones_like(rows.n_neg))
    pos = rows.pos.minimum(highest + 2 * reach.abs())
    return pos, pos[:, :1] + 1 + pos[:, :1].abs() + 2 * reach.abs()


def bisect(rows: SortedRows, worst: bool) -> Tensor:
    """above (Q, P) of the ranking by scores; if worst, a negative with the score of a positive is above it."""
    low, high = torch.zeros_like(rows.pos, dtype=torch.int64), rows.n_neg.expand(rows.pos.shape)
    for _ in range(rows.most_neg.bit_length()):
        m = (low + high + 1) // 2
        score = rows.negative(m)
        passes = (low < high) & (score >= rows.pos if worst else score > rows.pos)
        low, high = torch.where(passes, m, low), torch.where(passes, high, (m - 1).clamp(min=0))
    return torch.where(torch.arange(rows.most_pos, device=low.device) < rows.n_pos, low, 0)


def gradient(rows: SortedRows, above: Tensor) -> Tensor:
    """∂(F(R) − F(R*))/∂s (Q, n) in sorted order, in units of 2/(PN): c of a negative's rank, −c_k of a positive.

    A negative's is the number of positives it is above. Samples of one class that tie in score share theirs.
    """
    k = torch.arange(1, rows.most_pos + 1, device=above.device)
    real = k <= rows.n_pos
    # ends[c] is the number of positives with c negatives above them, so P − Σ_{c < j} ends[c] have at least j.
    ends = above.new_zeros(above.shape[0], rows.most_neg + 1).scatter_add_(1, above, real.to(above.dtype))
    passed = rows.n_pos - ends.cumsum(1)
    j, place = rows.is_neg.cumsum(1), rows.is_pos.cumsum(1)
    below = passed.gather(1, (j - 1).clamp(min=0))
    ahead = above.gather(1, (place - 1).clamp(min=0))
    inside = real & (above > 0) & (above < rows.n_neg)
    torn = inside & (rows.negative(above) == rows.negative(above + 1))
    split = (rows.pos[:, 1:] == rows.pos[:, :-1]) & (above[:, 1:] != above[:, :-1]) & real[:, 1:]
    dtype = rows.pos.dtype
    if bool(torn.any() | split.any()):
        negatives, positives = _shared(rows, below, rows.is_neg), _shared(rows, ahead, rows.is_pos)
    else:
        negatives, positives = below.to(dtype), ahead.to(dtype)
    return torch.where(rows.is_neg, negatives, torch.where(rows.is_pos, -positives, 0.0))


def _shared(rows: SortedRows, values: Tensor, member: Tensor) -> Tensor:
    """Replace each value by the mean over samples of its class with the same score; sums of integers are exact."""
    new = torch.zeros_like(member, dtype=torch.int64)
    new[:, 1:] = rows.scores[:, 1:] != rows.scores[:, :-1]
    run = new.cumsum(1)
    sums = torch.zeros_like(values).scatter_add_(1, run, torch.where(member, values, 0))
    sizes = torch.zeros_like(values).scatter_add_(1, run, member.to(values.dtype)).clamp(min=1)
    return (sums.to(rows.pos.dtype) / sizes).gather(1, run)


def total(rows: SortedRows, steepness: Tensor) -> Tensor:
    """Σ gradient·score (Q,), with scores measured from the highest negative of each row; gradients of a row sum to 0.

    Positives far above it, whose gradient is 0, do not make the sum inexact.
    """
    counted = (rows.is_pos | rows.is_neg) & (steepness != 0)
    scores = rows.scores.to(steepness.dtype)
    first = rows.negative(torch.ones_like(rows.n_neg))
    return torch.where(counted, steepness * (scores - first), 0.0).sum(1)
