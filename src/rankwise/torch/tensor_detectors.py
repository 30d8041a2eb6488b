"""The losses of detectors on any device, in tensor operations: positives are compared with all samples, in chunks.

There are O(P·n) comparisons, as in the published loops, in chunks small enough that memory stays O(n) for large
queries. Queries are solved one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankwise.surrogates.rank_sort import LEAST_ERROR
from rankwise.torch.detector_layout import Detections
from rankwise.torch.layout import compute_dtype, precise, refuse_scores
from rankwise.torch.outcome import Outcome

# Number of comparisons of positives with all samples of their query at a time.
_AT_ONCE = 1 << 21


def solve_detections(found: Detections, width: float) -> tuple[Outcome, Tensor | None]:
    """As in `detector_core`."""
    scores = found.scores.detach().to(compute_dtype(found.scores))
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
        relevant = found.relevant[members]
        filled[q] = relevant.any()
        value, gradient = _solve_query(scores[members].to(dtype), relevant, found.told[members], found.sorts, width)
        values[:, q], gradients[:, members] = value, gradient.to(scores.dtype)
    return Outcome(values, filled, gradients), query


class _Errors(NamedTuple):
    """For some positives, (c,): both errors (2, c), the update, and its weight in the updates of negatives.

    of_positives: (P,) the gradient of the second error.
    """

    errors: Tensor
    update: Tensor
    weight: Tensor
    of_positives: Tensor


def _solve_query(scores: Tensor, relevant: Tensor, told: Tensor, sorts: bool, width: float) -> tuple[Tensor, Tensor]:
    """Values (2,) and gradients (2, n) of one query."""
    positives, negatives = relevant.nonzero().squeeze(1), (~relevant).nonzero().squeeze(1)
    value, gradient = scores.new_zeros(2), scores.new_zeros(2, scores.shape[0])
    level, below, own = scores[positives], scores[negatives], told[positives].to(scores.dtype)
    of_positives, of_negatives = torch.zeros_like(level), torch.zeros_like(below)
    errors_of = _rank_sort if sorts else _alrp
    at_once = max(1, _AT_ONCE // max(scores.shape[0], 1))
    for some in torch.arange(positives.shape[0], device=scores.device).split(at_once):
        above = _ramp(below - level[some, None], width)
        found = errors_of(some, level, _ramp(level - level[some, None], width), above.sum(1), own)
        value += found.errors.sum(1)
        gradient[0, positives[some]] = -found.update
        of_positives += found.of_positives
        of_negatives += found.weight @ above
    gradient[0, negatives], gradient[1, positives] = of_negatives, of_positives
    n_pos = max(positives.shape[0], 1)
    return value / n_pos, gradient / n_pos


def _ramp(x: Tensor, width: float) -> Tensor:
    """H(x), in the memory of x."""
    return x.mul_(0.5 / width).add_(0.5).clamp_(0.0, 1.0)


def _rank_sort(some: Tensor, level: Tensor, beside: Tensor, false: Tensor, quality: Tensor) -> _Errors:
    """beside (c, P): H(s_k − s_i) for some positives i and all positives k; false (c,): negatives above."""
    lesser = beside * (quality < quality[some, None])
    rest, missorted, poor = beside - lesser, lesser.sum(1), 1.0 - quality
    place = beside.sum(1)
    there = torch.where(missorted > 0, lesser @ poor / missorted, 0.0) - (rest @ poor) / rest.sum(1)
    excess = torch.where(missorted > 0, there / place, 0.0)
    ranking, sorting = false / (place + false), excess * missorted
    of_positives = (excess @ lesser).index_add_(0, some, -sorting)
    return _Errors(torch.stack([ranking, sorting]), ranking, 1.0 / (place + false), of_positives)


def _alrp(some: Tensor, level: Tensor, beside: Tensor, false: Tensor, localisation: Tensor) -> _Errors:
    """Like `_rank_sort`; positives that tie in score count with the mean over their orders."""
    row = torch.arange(some.shape[0], device=some.device)
    beside[row, some] = 0.0
    rank = 1.0 + beside.sum(1) + false
    update = torch.where(false > LEAST_ERROR, (beside @ localisation + false) / rank, 0.0)
    ahead = (level > level[some, None]).to(beside.dtype) + 0.5 * (level == level[some, None])
    ahead[row, some] = 1.0
    errors = torch.stack([false / rank, ahead @ localisation / rank])
    return _Errors(errors, update, update / false.clamp(min=LEAST_ERROR), (1.0 / rank) @ ahead)
