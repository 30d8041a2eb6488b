"""The compiled core. It reads contiguous float32 and float64 scores on the CPU without a copy; others are copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.arguments import NotFiniteError
from rankwise.metrics.loss import Loss
from rankwise.queries import as_queries, group
from rankwise.torch.layout import Samples, compute_dtype, not_finite, precise
from rankwise.torch.options import Goal, Outcome


def solve_batch(
    scores: Tensor, samples: Samples, qid: Tensor | None, loss: Loss, goal: Goal
) -> tuple[Outcome, Tensor | None]:
    """Solve scores (Q, n) with one query per row, one query (n,), or queries given by qid (n,).

    With qid, the query of each sample is returned too. Queries are found first, and then the samples that count.
    """
    truth = _array(samples.relevant if samples.grades is None else samples.grades)
    flat, starts, kept, grouping = _array(scores), _starts(scores), None, None
    if qid is not None:
        grouping = group(_array(qid), truth.shape[0])
        flat, truth, starts = grouping.gather(flat), grouping.gather(truth), grouping.starts
    if samples.valid is not None:
        valid = _array(samples.valid)
        kept = np.flatnonzero(valid if grouping is None else grouping.gather(valid))
        flat, truth, starts = flat[kept], truth[kept], np.searchsorted(kept, starts)
    queries = as_queries(truth, starts)
    n_threads = torch.get_num_threads()
    try:
        solved = goal.surrogate.solve(flat, queries, loss, n_threads)
        values, gradient = solved.value, solved.gradient
    except NotFiniteError as error:
        raise not_finite(scores, samples.valid) or error from None  # names the place in the tensor that was given
    query = None
    if kept is not None:
        every = np.zeros(scores.numel(), gradient.dtype)
        every[kept] = gradient
        gradient = every
    if grouping is not None:
        gradient = grouping.scatter(gradient)
        query = grouping.scatter(np.repeat(np.arange(grouping.ids.size), np.diff(grouping.starts)))
    slope, filled = torch.from_numpy(gradient.reshape(tuple(scores.shape))), torch.from_numpy(queries.can_rank)
    outcome = Outcome(torch.from_numpy(values), filled, slope)
    of_samples = None if query is None else torch.from_numpy(query)
    device = scores.device
    if device.type == "cpu":
        return outcome, of_samples
    outcome = Outcome(outcome.values.to(device, precise(device)), filled.to(device), slope.to(device))
    return outcome, None if of_samples is None else of_samples.to(device)


def _starts(scores: Tensor) -> NDArray[np.int64]:
    """Where each row begins, (Q + 1,)."""
    n_queries = scores.shape[0] if scores.dim() == 2 else 1
    return np.arange(n_queries + 1) * scores.shape[-1]


def _array(values: Tensor) -> NDArray[Any]:
    """A flat view of a tensor if it is contiguous, on the CPU and of a type that the core takes, otherwise a copy."""
    if values.is_floating_point():
        values = values.detach()
        if values.dtype != compute_dtype(values):
            values = values.to(compute_dtype(values))
    return np.ascontiguousarray(values.cpu().numpy()).reshape(-1)
