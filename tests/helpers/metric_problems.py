"""What metrics are tried on: their names, scores with few ties and many, queries with and without positives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

ATOL = 1e-12
NAMES = [
    *("ap", "ap@3", "auc", "f1", "mrr", "mrr@3", "ndcg", "ndcg@1", "ndcg@7", "err", "err@4"),
    *("precision@1", "precision@4", "precision@50", "recall@1", "recall@6"),
]
# Many ties, some, none; one value only.
LEVELS = [1, 2, 5, 30, None]
Problem = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]


def draw_scores(rng: np.random.Generator, n: int, levels: int | None) -> NDArray[np.float64]:
    return rng.normal(size=n) if levels is None else rng.integers(0, levels, n) / 4.0 - 1.0


def problems(levels: int | None, sizes: tuple[int, ...] = (2, 3, 10, 200)) -> Iterator[tuple[Any, Any, Any]]:
    """Scores, relevance with both classes, grades of which not all are 0."""
    for seed, n in enumerate([n for n in sizes for _ in range(8)]):
        rng = np.random.default_rng(seed)
        relevant = rng.permutation(np.arange(n) < rng.integers(1, n))
        yield draw_scores(rng, n, levels), relevant, relevant * rng.choice([0.5, 1.0, 2.0, 3.0, 1e-3], n)


def queries(rng: np.random.Generator) -> Problem:
    """Queries of 1 to 12 samples in shuffled order: some without positives or negatives."""
    qid = rng.permutation(np.repeat(np.arange(-20, 20) * 3, rng.integers(1, 13, 40)))
    return rng.integers(0, 4, qid.size) / 2.0, rng.random(qid.size) < 0.4, qid


SCORES, RELEVANT = [0.5, 2.0, -1.0, 0.25], [True, False, True, False]
