"""Batches of every layout at random: ties, masks, labels to ignore, and queries without one class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

import rankwise as rw
from rankwise.queries import Solved

IGNORED = -7


class Case(NamedTuple):
    """A batch: what is passed, and for each query, in the order of the result, its samples in the flattened scores."""

    scores: Any
    target: Any
    options: dict[str, Any]
    queries: list[np.ndarray]
    shape: tuple[int, ...]


def draw_scores(rng: np.random.Generator, relevant: np.ndarray, ties: bool) -> np.ndarray:
    kind = rng.integers(4) if ties else 2
    if kind == 0:
        scores = rng.integers(-2, 3, relevant.shape) * 0.5
    elif kind == 1:
        scores = np.round(rng.normal(size=relevant.shape), 1) + 0.3 * relevant
    else:
        scores = rng.normal(size=relevant.shape) + rng.choice([0.0, 1.0]) * relevant
    return scores * 10.0 ** rng.integers(-1, 2)


def draw(rng: np.random.Generator, layout: str, dtype: Any, graded: bool = False, ties: bool = True) -> Case:
    least = 1 if layout in ("flat", "ragged", "ragged masked") else 2  # lists of one sample are refused
    n, a, b = int(rng.integers(least, 13)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shape, dim = {
        "flat": ((n,), -1),
        "cube": ((a, b, n), -1),
        "columns": ((n, b), 0),
        "masked columns": ((n, b), 0),
        "middle": ((a, n, b), 1),
        "ragged": ((n * b,), -1),
        "ragged masked": ((n * b,), -1),
    }.get(layout, ((b, n), -1))
    relevant = rng.random(shape) < rng.choice([0.1, 0.5, 0.8])
    scores = torch.tensor(draw_scores(rng, relevant, ties)).to(dtype)
    kinds = [torch.int64, torch.float32, torch.int8]
    if layout not in ("ignored", "ragged masked"):
        kinds += [torch.uint8, torch.int32, torch.float64, *([] if graded else [torch.bool])]
    target = torch.tensor(relevant * (rng.integers(1, 5, shape) if graded else 1)).to(kinds[rng.integers(len(kinds))])
    options: dict[str, Any] = {} if len(shape) == 1 else {"dim": dim}
    counts = np.ones(shape, dtype=bool)
    qid = rng.permutation(rng.choice([-3, 0, 5, 2**40], size=shape))
    if "masked" in layout:
        counts &= rng.random(shape) < 0.7
        if rng.random() < 0.5:  # a query all of whose samples are masked
            counts &= (qid != qid[0]) if layout.startswith("ragged") else (np.indices(shape)[0 if dim else 1] > 0)
        options["mask"] = torch.tensor(counts)
        scores[torch.tensor(~counts)] = float(rng.choice([np.nan, np.inf, -np.inf, 60000.0]))
    if layout in ("ignored", "ragged masked"):
        unlabelled = rng.random(shape) < 0.2
        counts &= ~unlabelled
        target[torch.tensor(unlabelled)] = IGNORED
        options["ignore_index"] = IGNORED
    if layout.startswith("ragged"):
        options["qid"] = torch.tensor(qid)
        queries = [np.flatnonzero((qid == one) & counts) for one in np.unique(qid)]
        return Case(scores, target, options, queries, (len(queries),))
    rows = np.moveaxis(np.arange(counts.size).reshape(shape), dim, -1)
    kept = np.moveaxis(counts, dim, -1)
    queries = [rows[at][kept[at]] for at in np.ndindex(rows.shape[:-1])]
    return Case(scores, target, options, queries, rows.shape[:-1])


class Everywhere(rw.Surrogate):
    """A surrogate of one's own, without a name: the sum of the scores of negatives."""

    def solve_binary(self, scores: Any, queries: Any, loss: rw.Loss, n_threads: int = 1) -> Any:
        counts = np.repeat(queries.can_rank, np.diff(queries.starts))
        gradient = (counts & ~queries.relevant).astype(scores.dtype)
        ends = np.append(0.0, np.cumsum(gradient * scores))[queries.starts]
        return Solved(np.diff(ends), np.diff(ends), gradient)
