"""The losses of detectors on the CPU: the compiled core, query by query."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankwise.arguments import NotFiniteError
from rankwise.queries import as_queries, group
from rankwise.surrogates.rank_sort import solve_alrp, solve_rank_sort
from rankwise.torch.detector_layout import Detections
from rankwise.torch.layout import compute_dtype, not_finite
from rankwise.torch.outcome import Outcome


def solve_detections(found: Detections, width: float) -> tuple[Outcome, Tensor | None]:
    """Values (2, Q), gradients (2, n), and with qid the query of each sample. A query is filled if it has positives."""
    n, grouping = found.scores.shape[0], None
    at: Any = slice(None)
    starts = np.array([0, n])
    if found.qid is not None:
        grouping = group(found.qid.numpy(), n)
        at, starts = grouping.gather(np.arange(n)), grouping.starts
    if found.valid is not None:
        kept = np.flatnonzero(found.valid.numpy()[at])
        at, starts = kept if grouping is None else at[kept], np.searchsorted(kept, starts)
    scores = np.ascontiguousarray(found.scores.detach().to(compute_dtype(found.scores)).numpy()[at])
    queries = as_queries(np.ascontiguousarray(found.relevant.numpy()[at]), starts)
    solver = solve_rank_sort if found.sorts else solve_alrp
    try:
        solved = solver(scores, queries, found.told.numpy()[at], width, torch.get_num_threads())
    except NotFiniteError as error:
        raise not_finite(found.scores, found.valid) or error from None  # names the place in the tensor that was given
    gradients, query = torch.from_numpy(solved.gradients), None
    if not isinstance(at, slice):
        gradients = gradients.new_zeros(2, n).index_copy_(1, torch.from_numpy(at), gradients)
    if grouping is not None:
        query = torch.from_numpy(grouping.scatter(np.repeat(np.arange(starts.size - 1), np.diff(grouping.starts))))
    return Outcome(torch.from_numpy(solved.values), torch.from_numpy(queries.counts[0] > 0), gradients), query
