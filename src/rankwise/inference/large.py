"""The fast engine for one large query: the steps of bucketed.py, the passes shared among threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankwise.inference.bucketed import (
    BLOCK,
    OWN,
    assign,
    bucket_count,
    count,
    counters,
    locate,
    order_positives,
    solve_members,
)
from rankwise.inference.buckets import BucketMap
from rankwise.inference.charts import choose
from rankwise.inference.edges import reference, settle
from rankwise.inference.positives import discounted_loss, finish_positives, scaled_weights
from rankwise.inference.problem import Solution
from rankwise.inference.quicksort import STACK_ROWS
from rankwise.inference.regions import BUCKET, START, STOP
from rankwise.inference.threads import run
from rankwise.loss_forms import LossTables


def solve_large(
    scores: NDArray[np.floating],
    relevant: NDArray[np.bool_],
    n_pos: int,
    tables: LossTables,
    scale: float,
    limit: float,
    n_threads: int,
) -> Solution | None:
    """Solve one query with positives and negatives; None if a score is not within ±limit."""
    n = scores.shape[0]
    n_neg = n - n_pos
    weight, discount, tail, per_pair = tables
    where, order, pos = order_positives(scores, relevant, n_pos, limit)
    if order.size < n_pos:
        return None
    weights, unit = np.empty(n_pos), 2.0 / (float(n_pos) * float(n_neg))
    norm = scaled_weights(weight, discount, tail, per_pair, n_pos, n_neg, scale, weights)

    # Pass 1: buckets and their counts.
    chart, pivot = choose(scores, n_pos, limit)
    kind = scores.dtype.type  # on its way through Python it has lost it
    chart = BucketMap(chart[0], *map(kind, chart[1:5]), *chart[5:])
    n_buckets = bucket_count(chart, pivot)
    parts = _parts(n, n_threads)
    hists = [counters(n_buckets, pivot) for _ in parts]
    fine = run(
        count, [(scores, *part, where, limit, chart, pivot, hist) for part, hist in zip(parts, hists, strict=True)]
    )
    if not all(fine):
        return None

    # In which buckets the positives have their places.
    of_part = np.stack([hist[0] for hist in hists])
    value, at_rank = np.empty(n_buckets + OWN, scores.dtype), np.zeros(n_pos + 2, np.int64)
    typed, stack = np.empty(2, scores.dtype), np.empty((STACK_ROWS, 5), np.int64)
    loss_data = (weights, discount, tail, pos)
    problem = (*loss_data, 1, n_pos + 1, 1)
    above, home = locate(*problem, chart, pivot, of_part.sum(axis=0, dtype=np.uint32), typed)
    ref = reference(pos, above, home)
    regions, total = settle(*problem, pivot, n_buckets, above, home, unit, ref, value, at_rank, stack, typed)

    # Pass 2: gradients of settled buckets, members of the others.
    members = of_part[:, regions[:, BUCKET]].astype(np.int64)
    ends = regions[:, START] + np.cumsum(members, axis=0)
    cursor = ends - members
    gathered = int(regions[-1, STOP]) if regions.size else 0
    mixed, index = np.empty(gathered, scores.dtype), np.empty(gathered, np.int64)
    gradient, partial = np.empty_like(scores), np.zeros(-(-n // BLOCK))
    shared = (where, chart, pivot, value, unit, ref)
    fine = run(
        assign,
        [(scores, *p, *shared, cursor[t], ends[t], mixed, index, gradient, partial) for t, p in enumerate(parts)],
    )
    if not all(fine):
        return None

    # Algorithm 1 proper on those.
    cuts = np.searchsorted(regions[:, STOP], np.linspace(0, gathered, len(parts) + 1)[1:-1])
    cuts = np.concatenate([[0], cuts, [regions.shape[0]]])
    ranked, of_regions = np.zeros((len(parts), n_pos + 2), np.int64), np.zeros(regions.shape[0])
    run(
        solve_members,
        [
            (*loss_data, regions, a, b, mixed, index, unit, ref, limit, ranked[t], gradient, of_regions)
            for t, (a, b) in enumerate(pairwise(cuts))
        ],
    )
    at_rank += ranked.sum(axis=0)
    total += float(partial.sum()) + float(of_regions.sum())
    total += finish_positives(pos, order, n_pos, at_rank, n_neg, ref, gradient)
    lost = discounted_loss(weight, discount, tail, norm, at_rank, n_pos)
    return Solution(scale * lost + total, lost, gradient, at_rank[: n_pos + 1], order)


def _parts(n: int, n_threads: int) -> list[tuple[int, int]]:
    """Where parts of whole blocks begin and end, one a thread."""
    blocks = -(-n // BLOCK)
    n_parts = min(n_threads, blocks)
    return list(pairwise(min(n, blocks * t // n_parts * BLOCK) for t in range(n_parts + 1)))
