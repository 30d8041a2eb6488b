"""CPU tensors: the compiled core, on the very memory of contiguous float32 and float64 scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.grouping import group
from rankwise.inputs import NotFiniteError
from rankwise.losses import Loss
from rankwise.method import AUTO, Method
from rankwise.queries import Queries, Solved, as_queries
from rankwise.solving import solve
from rankwise.torch.layout import Samples, compute_dtype, not_finite
from rankwise.torch.outcome import Goal, Outcome

__all__ = ["solve_ragged", "solve_rows"]

_DYNAMIC = Method("dynamic")


def solve_rows(scores: Tensor, samples: Samples, loss: Loss, goal: Goal) -> Outcome:
    """One query a row, scores (Q, n); or one query, (n,)."""
    n_queries = scores.shape[0] if scores.dim() == 2 else 1
    flat, relevant, kept = _array(scores), _array(samples.relevant), None
    if samples.valid is None:
        starts = np.arange(n_queries + 1) * scores.shape[-1]
    else:
        kept = np.flatnonzero(_array(samples.valid))
        sizes = samples.valid.sum(-1).reshape(n_queries).numpy()
        flat, relevant, starts = flat[kept], relevant[kept], np.concatenate([[0], np.cumsum(sizes)])
    queries, (scale, method) = as_queries(relevant, starts), _how(goal)
    try:
        solved = solve(flat, queries, loss, scale, method, torch.get_num_threads())
    except NotFiniteError as error:
        raise not_finite(scores, samples.valid) or error from None  # by its place as it was given
    values, gradient = _reach(goal, flat, queries, loss, solved)
    if kept is not None:
        gradient = _placed(gradient, kept, np.zeros(scores.numel(), gradient.dtype))
    return _outcome(values, solved, gradient.reshape(tuple(scores.shape)))


def solve_ragged(scores: Tensor, samples: Samples, qid: Tensor, loss: Loss, goal: Goal) -> tuple[Outcome, Tensor]:
    """Queries by qid, scores (n,): and the query of each sample, Q for those that do not count."""
    flat, relevant, ids = _array(scores), _array(samples.relevant), _array(qid)
    kept = None if samples.valid is None else np.flatnonzero(_array(samples.valid))
    if kept is not None:
        flat, relevant, ids = flat[kept], relevant[kept], ids[kept]
    grouping = group(ids, ids.shape[0])
    flat, queries = grouping.gather(flat), as_queries(grouping.gather(relevant), grouping.starts)
    scale, method = _how(goal)
    try:
        solved = solve(flat, queries, loss, scale, method, torch.get_num_threads())
    except NotFiniteError as error:
        raise not_finite(scores, samples.valid) or error from None  # by its place as it was given
    values, part = _reach(goal, flat, queries, loss, solved)
    sizes = queries.sizes
    gradient, query = grouping.scatter(part), grouping.scatter(np.repeat(np.arange(sizes.size), sizes))
    if kept is not None:
        gradient = _placed(gradient, kept, np.zeros(scores.shape[0], gradient.dtype))
        query = _placed(query, kept, np.full(scores.shape[0], sizes.size))
    return _outcome(values, solved, gradient), torch.from_numpy(query)


def _array(values: Tensor) -> NDArray[Any]:
    """A tensor's own memory, flat, where it is contiguous and of a type of the core's; else a copy."""
    if values.is_floating_point():
        values = values.detach()
        if values.dtype != compute_dtype(values):
            values = values.to(compute_dtype(values))
    return np.ascontiguousarray(values.numpy()).reshape(-1)


def _placed(part: NDArray[Any], kept: NDArray[np.int64], whole: NDArray[Any]) -> NDArray[Any]:
    whole[kept] = part
    return whole


def _outcome(values: NDArray[np.float64], solved: Solved, gradient: NDArray[np.floating]) -> Outcome:
    filled = (solved.n_pos > 0) & (solved.n_neg > 0)
    return Outcome(torch.from_numpy(values), torch.from_numpy(filled), torch.from_numpy(gradient))


def _how(goal: Goal) -> tuple[float, Method]:
    """The scale to solve for, and the method: a negative one rewards the loss, and needs the dynamic programme."""
    return (-goal.scale, _DYNAMIC) if goal.update == "negative" else (goal.scale, AUTO)


def _reach(
    goal: Goal, scores: NDArray[Any], queries: Queries, loss: Loss, solved: Solved
) -> tuple[NDArray[np.float64], NDArray[np.floating]]:
    """Values and gradients of the hinge that was solved for; or of the direct-loss update it is a part of."""
    if not goal.update:
        return solved.value, solved.gradient
    from rankwise.inference.predicted import predict

    lost, by_scores = predict(scores, queries.relevant, queries.starts, loss, worst=True)
    step = solved.gradient.dtype.type(goal.scale)
    if goal.update == "negative":
        return lost, (by_scores - solved.gradient) / step
    _, by_scores = predict(scores, queries.relevant, queries.starts, loss, worst=False)
    return lost, (solved.gradient - by_scores) / step
