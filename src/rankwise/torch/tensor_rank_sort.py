"""RankSort on any device, in tensor operations: positives are compared with all samples, in chunks.

There are O(P·n) comparisons, as in the published loop, in chunks small enough that memory stays O(n) for large queries.
Queries are solved one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.torch.layout import precise, refuse_scores
from rankwise.torch.options import Outcome

# Number of comparisons of positives with all samples of their query at a time.
_AT_ONCE = 1 << 21


class Detections(NamedTuple):
    """Flat samples, each (n,): the quality is positive where a sample is; valid: which count (None: all)."""

    scores: Tensor
    quality: Tensor
    valid: Tensor | None
    qid: Tensor | None


def solve_in_tensors(found: Detections, width: float) -> tuple[Outcome, Tensor | None]:
    """Values (2, Q), gradients (2, n), and with qid the query of each sample. A query is filled if it has positives."""
    scores = found.scores
    refuse_scores(scores, found.valid)
    n, device, dtype = scores.shape[0], scores.device, precise(scores.device)
    order, query, n_queries = torch.arange(n, device=device), None, 1
    if found.qid is not None:
        names, query = torch.unique(found.qid, return_inverse=True)
        order, n_queries = query.argsort(stable=True), names.shape[0]
    kept = order if found.valid is None else order[found.valid[order]]
    sizes = [kept.shape[0]] if query is None else query[kept].bincount(minlength=n_queries).tolist()
    values, gradients = torch.zeros(2, len(sizes), device=device, dtype=dtype), scores.new_zeros(2, n)
    filled = torch.zeros(len(sizes), device=device, dtype=torch.bool)
    for q, members in enumerate(kept.split(sizes)):
        quality = found.quality[members].to(dtype)
        filled[q] = (quality > 0).any()
        values[:, q], gradient = _solve_query(scores[members].to(dtype), quality, width)
        gradients[:, members] = gradient.to(scores.dtype)
    return Outcome(values, filled, gradients), query


def _solve_query(scores: Tensor, quality: Tensor, width: float) -> tuple[Tensor, Tensor]:
    """Values (2,) and gradients (2, n) of one query."""
    positives, negatives = (quality > 0).nonzero().squeeze(1), (quality == 0).nonzero().squeeze(1)
    value, gradient = scores.new_zeros(2), scores.new_zeros(2, scores.shape[0])
    level, below, own = scores[positives], scores[negatives], quality[positives]
    of_negatives, of_positives, poor = torch.zeros_like(below), torch.zeros_like(level), 1.0 - own
    at_once = max(1, _AT_ONCE // max(scores.shape[0], 1))
    for some in torch.arange(positives.shape[0], device=scores.device).split(at_once):
        above, beside = (_ramp(others - level[some, None], width) for others in (below, level))
        false, place = above.sum(1), beside.sum(1)
        lesser = beside * (own < own[some, None])
        rest, missorted = beside - lesser, lesser.sum(1)
        there = torch.where(missorted > 0, lesser @ poor / missorted, 0.0) - (rest @ poor) / rest.sum(1)
        excess = torch.where(missorted > 0, there / place, 0.0)
        ranking, sorting = false / (place + false), excess * missorted
        value += torch.stack([ranking.sum(), sorting.sum()])
        gradient[0, positives[some]] = -ranking
        of_positives += (excess @ lesser).index_add_(0, some, -sorting)
        of_negatives += (1.0 / (place + false)) @ above
    gradient[0, negatives], gradient[1, positives] = of_negatives, of_positives
    n_pos = max(positives.shape[0], 1)
    return value / n_pos, gradient / n_pos


def _ramp(x: Tensor, width: float) -> Tensor:
    """H(x), in the memory of x."""
    return x.mul_(0.5 / width).add_(0.5).clamp_(0.0, 1.0)
