"""Queries of one batch sorted along their rows, in tensors only: by descending score, what does not count last."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.torch.layout import Samples, precise, refuse_scores, within_limits


class SortedRows(NamedTuple):
    """Scores (Q, n) in descending order, their places in the given rows, and which are positive and negative.

    n_pos, n_neg: (Q, 1). pos: (Q, P) the positives' scores in descending order, P the largest n_pos; real: whether
    there is one, else the score is arbitrary. neg: the negatives' scores of all queries one after the other; those of a
    query begin at first (Q, 1). most_neg: the largest n_neg, on the host.
    """

    scores: Tensor
    order: Tensor
    is_pos: Tensor
    is_neg: Tensor
    n_pos: Tensor
    n_neg: Tensor
    pos: Tensor
    real: Tensor
    neg: Tensor
    first: Tensor
    most_neg: int

    @property
    def can_rank(self) -> Tensor:
        """Whether each query has both classes, (Q, 1)."""
        return (self.n_pos > 0) & (self.n_neg > 0)

    def negative(self, j: Tensor) -> Tensor:
        """The score of the j-th negative of each row, 1 ≤ j; arbitrary where there is no j-th negative."""
        return self.neg[(self.first + j - 1).clamp(0, self.neg.shape[0] - 1)]

    def of_positives(self, values: Tensor) -> Tensor:
        """Values in sorted order (Q, n), of the positives of each row, (Q, P); arbitrary where there is none."""
        return _in_rows(values[self.is_pos], self.n_pos, self.pos.shape[1])

    def by_rank(self, of_positives: Tensor, of_negatives: Tensor) -> Tensor:
        """Values by rank (Q, n), of positives (Q, P) and of negatives, which are by rank; 0 of what does not count."""
        at = (self.is_pos.cumsum(1) - 1).clamp(min=0)
        return torch.where(self.is_neg, of_negatives, torch.where(self.is_pos, of_positives.gather(1, at), 0.0))


def sort_rows(scores: Tensor, samples: Samples) -> SortedRows:
    """Sort rows (Q, n)."""
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
    real = torch.arange(facts[0], device=scores.device) < n_pos
    first, pos = n_neg.cumsum(0) - n_neg, _in_rows(pos, n_pos, facts[0])
    return SortedRows(by_score, order, is_pos, is_neg, n_pos, n_neg, pos, real, neg, first, facts[1])


def _in_rows(values: Tensor, counts: Tensor, most: int) -> Tensor:
    """Values of all rows one after the other, counts (Q, 1) of each, as (Q, most); arbitrary where a row has fewer."""
    at = counts.cumsum(0) - counts + torch.arange(most, device=values.device)
    return values[at.clamp(max=max(values.shape[0] - 1, 0))]


def mean_of_ties(levels: Tensor, values: Tensor, member: Tensor) -> Tensor:
    """Replace each value by the mean over members at its level, exact for integers; levels are sorted along rows."""
    run = torch.nn.functional.pad((levels[:, 1:] != levels[:, :-1]).cumsum(1), (1, 0))
    sums = torch.zeros_like(values).scatter_add_(1, run, torch.where(member, values, 0))
    sizes = torch.zeros_like(values).scatter_add_(1, run, member.to(values.dtype)).clamp(min=1)
    return (sums.to(precise(values.device)) / sizes).gather(1, run)
