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
    """One query a row, scores (Q, n)."""
    n_queries, n = scores.shape
    flat, relevant = _flat(scores), samples.relevant.contiguous().view(-1)
    if samples.valid is None:
        starts = np.arange(n_queries + 1, dtype=np.int64) * n
        found = _solve(flat.numpy(), relevant.numpy(), starts, loss, goal)
    else:
        kept = samples.valid.reshape(-1).nonzero().squeeze(1)
        starts = np.concatenate([[0], samples.valid.sum(1).cumsum(0).numpy()])
        found = _solve(flat[kept].numpy(), relevant[kept].numpy(), starts, loss, goal)
    if found is None:
        raise _not_finite(scores, samples)
    values, filled, part = found
    gradient = torch.from_numpy(part)
    if samples.valid is not None:
        gradient = torch.zeros_like(flat).index_copy_(0, kept, gradient)
    return _outcome(values, filled, gradient.view(n_queries, n))


def solve_ragged(scores: Tensor, samples: Samples, qid: Tensor, loss: Loss, goal: Goal) -> tuple[Outcome, Tensor]:
    """Queries by qid, scores (n,): and the query of each sample, Q for those that do not count."""
    kept = None if samples.valid is None else samples.valid.nonzero().squeeze(1)
    flat, relevant, ids = (
        (one if kept is None else one[kept]).contiguous().numpy() for one in (_flat(scores), samples.relevant, qid)
    )
    grouping = group(ids, ids.shape[0])
    sizes = np.diff(grouping.starts)
    found = _solve(grouping.gather(flat), grouping.gather(relevant), grouping.starts, loss, goal)
    if found is None:
        raise _not_finite(scores, samples)
    values, filled, part = found
    gradient = torch.from_numpy(grouping.scatter(part))
    query = torch.from_numpy(grouping.scatter(np.repeat(np.arange(sizes.size), sizes)))
    if kept is not None:
        gradient = torch.zeros_like(_flat(scores)).index_copy_(0, kept, gradient)
        query = torch.full_like(qid, sizes.size, dtype=torch.int64).index_copy_(0, kept, query)
    return _outcome(values, filled, gradient), query


def _flat(scores: Tensor) -> Tensor:
    return scores.detach().to(compute_dtype(scores)).contiguous().view(-1)


def _outcome(values: NDArray[np.float64], filled: NDArray[np.bool_], gradient: Tensor) -> Outcome:
    return Outcome(torch.from_numpy(values), torch.from_numpy(filled), gradient)


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
    filled = counts.min(axis=1, initial=1) > 0
    if not goal.update:
        return np.ascontiguousarray(out[:, 0]), filled, gradient
    from rankwise.inference.predicted import predict

    lost, by_scores = predict(scores, relevant, starts, loss, worst=True)
    if goal.update == "positive":
        _, by_scores = predict(scores, relevant, starts, loss, worst=False)
        return lost, filled, (gradient - by_scores) / gradient.dtype.type(goal.scale)
    return lost, filled, (by_scores - gradient) / gradient.dtype.type(goal.scale)
