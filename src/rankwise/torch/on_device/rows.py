"""Queries of one batch sorted along their rows, in tensors only: by descending score, what does not count last."""

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

    def of_positives(self, values: Tensor) -> Tensor:
        """Values in sorted order (Q, n), of the positives of each row, (Q, P); arbitrary after the last."""
        flat = values[self.is_pos]
        at = self.n_pos.cumsum(0) - self.n_pos + torch.arange(self.most_pos, device=flat.device)
        return flat[at.clamp(max=max(flat.shape[0] - 1, 0))] if self.most_pos else flat.new_empty(values.shape[0], 0)

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
    neg = by_score[is_neg].to(dtype)
    rows = SortedRows(
        by_score, order, is_pos, is_neg, n_pos, n_neg, neg, neg, n_neg.cumsum(0) - n_neg, facts[0], facts[1]
    )
    return rows._replace(pos=rows.of_positives(by_score).to(dtype))
