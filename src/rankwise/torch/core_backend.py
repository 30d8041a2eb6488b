"""CPU tensors: the compiled core, on the very memory of contiguous float32 and float64 scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankwise.losses import Loss
from rankwise.queries import group
from rankwise.solving import solve_queries
from rankwise.torch.layout import Samples, compute_dtype, refuse_scores
from rankwise.torch.outcome import Goal, Outcome

__all__ = ["solve_ragged", "solve_rows"]

_Solved = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.floating]]


def solve_rows(scores: Tensor, samples: Samples, loss: Loss, goal: Goal) -> Outcome:
    """One query a row, scores (Q, n); or one query, (n,)."""
    n_queries = scores.shape[0] if scores.dim() == 2 else 1
    flat, relevant = _array(scores), _array(samples.relevant)
    if samples.valid is None:
        starts = np.arange(n_queries + 1) * scores.shape[-1]
        found = _solve(flat, relevant, starts, loss, goal)
    else:
        kept = np.flatnonzero(_array(samples.valid))
        sizes = samples.valid.sum(-1).reshape(n_queries).numpy()
        found = _solve(flat[kept], relevant[kept], np.concatenate([[0], np.cumsum(sizes)]), loss, goal)
    if found is None:
        raise _not_finite(scores, samples)
    values, filled, gradient = found
    if samples.valid is not None:
        gradient = _placed(gradient, kept, np.zeros_like(flat))
    return _outcome(values, filled, gradient.reshape(tuple(scores.shape)))


def solve_ragged(scores: Tensor, samples: Samples, qid: Tensor, loss: Loss, goal: Goal) -> tuple[Outcome, Tensor]:
    """Queries by qid, scores (n,): and the query of each sample, Q for those that do not count."""
    flat, relevant, ids = _array(scores), _array(samples.relevant), _array(qid)
    kept = None if samples.valid is None else np.flatnonzero(_array(samples.valid))
    if kept is not None:
        flat, relevant, ids = flat[kept], relevant[kept], ids[kept]
    grouping = group(ids, ids.shape[0])
    sizes = np.diff(grouping.starts)
    found = _solve(grouping.gather(flat), grouping.gather(relevant), grouping.starts, loss, goal)
    if found is None:
        raise _not_finite(scores, samples)
    values, filled, part = found
    gradient, query = grouping.scatter(part), grouping.scatter(np.repeat(np.arange(sizes.size), sizes))
    if kept is not None:
        gradient = _placed(gradient, kept, np.zeros(scores.shape[0], gradient.dtype))
        query = _placed(query, kept, np.full(scores.shape[0], sizes.size))
    return _outcome(values, filled, gradient), torch.from_numpy(query)


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


def _outcome(values: NDArray[np.float64], filled: NDArray[np.bool_], gradient: NDArray[np.floating]) -> Outcome:
    return Outcome(torch.from_numpy(values), torch.from_numpy(filled), torch.from_numpy(gradient))


def _not_finite(scores: Tensor, samples: Samples) -> Exception:
    refuse_scores(scores, samples.valid)
    return RuntimeError("scores changed while they were read; do not write to them from another thread")


def _solve(
    scores: NDArray[Any], relevant: NDArray[np.bool_], starts: NDArray[np.int64], loss: Loss, goal: Goal
) -> _Solved | None:
    """Values and gradients of queries one after the other; None if a score is not finite."""
    threads = torch.get_num_threads()
    method = "dynamic" if goal.update == "negative" else "auto"
    scale = -goal.scale if goal.update == "negative" else goal.scale
    found = solve_queries(scores, relevant, starts, loss, scale, method, n_threads=threads)
    if found is None:
        return None
    out, counts, gradient = found
    filled = (counts[:, 0] > 0) & (counts[:, 1] > 0)
    if not goal.update:
        return np.ascontiguousarray(out[:, 0]), filled, gradient
    from rankwise.inference.predicted import predict

    lost, by_scores = predict(scores, relevant, starts, loss, worst=True)
    if goal.update == "positive":
        _, by_scores = predict(scores, relevant, starts, loss, worst=False)
        return lost, filled, (gradient - by_scores) / gradient.dtype.type(goal.scale)
    return lost, filled, (by_scores - gradient) / gradient.dtype.type(goal.scale)
