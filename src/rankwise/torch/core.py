"""The compiled core. It reads contiguous float32 and float64 scores on the CPU without a copy; others are copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.arguments import NotFiniteError
from rankwise.queries import as_queries, group
from rankwise.torch.layout import Samples, compute_dtype, not_finite, precise
from rankwise.torch.objective import Objective, Outcome


def solve_batch(scores: Tensor, samples: Samples, qid: Tensor | None, objective: Objective) -> Outcome:
    """Solve scores (Q, n) with one query per row, one query (n,), or queries given by qid (n,).

    Queries are found first, and then the samples that count.
    """
    truth = _array(samples.relevant if samples.grades is None else samples.grades)
    flat, n_queries = _array(scores), scores.shape[0] if scores.dim() == 2 else 1
    starts: NDArray[np.int64] = np.arange(n_queries + 1) * scores.shape[-1]
    query, at = None, None  # at: where the samples to solve are among those given; None: all, in this order
    if qid is not None:
        grouping = group(_array(qid), truth.shape[0])
        starts, at = grouping.starts, grouping.order
        query = torch.from_numpy(grouping.scatter(np.repeat(np.arange(grouping.ids.size), np.diff(starts))))
    if samples.valid is not None:
        valid = _array(samples.valid)
        kept = np.flatnonzero(valid if at is None else valid[at])
        starts, at = np.searchsorted(kept, starts), kept if at is None else at[kept]
    if at is not None:
        flat, truth = flat[at], truth[at]
    queries = as_queries(truth, starts)
    try:
        solved = objective.surrogate.solve(flat, queries, objective.loss, torch.get_num_threads())
    except NotFiniteError as error:
        raise not_finite(scores, samples.valid) or error from None  # names the place in the tensor that was given
    slope = solved.gradient
    if at is not None:
        slope = np.zeros((*objective.parts, scores.numel()), solved.gradient.dtype)
        slope[..., at] = solved.gradient
    values, filled = torch.from_numpy(solved.value), torch.from_numpy(objective.can_rank(queries))
    outcome = Outcome(values, filled, torch.from_numpy(slope.reshape(*objective.parts, *scores.shape)), query)
    device = scores.device
    if device.type == "cpu":
        return outcome
    outcome = outcome._replace(values=values.to(precise(device)))
    return Outcome(*(None if one is None else one.to(device) for one in outcome))  # type: ignore[arg-type]


def _array(values: Tensor) -> NDArray[Any]:
    """A flat view of a tensor if it is contiguous, on the CPU and of a type that the core takes, otherwise a copy."""
    if values.is_floating_point():
        values = values.detach()
        if values.dtype != compute_dtype(values):
            values = values.to(compute_dtype(values))
    return np.ascontiguousarray(values.cpu().numpy()).reshape(-1)
