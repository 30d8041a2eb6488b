"""Calls of many queries whose sets of grades differ, and losses whose formulas depend on grades or sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw

# Its discount is negative from place 11 on: only queries with few positives have precisions.
FALLING = rw.DiscountedLoss(discount=lambda m: 1.0 / m - 0.095, weight=lambda k: 1.0 / k, name="falling")
# Grades 0 and 1 are worth nothing, all others the same.
ONE_GAIN = rw.NDCG(gain=lambda y: (np.asarray(y) >= 2.0) * 1.0)
# Sets of grades, among them binary ones, single ones, and pairs whose lower grade is worth something.
SETS = ([0, 1], [0, 2], [0, 1, 2, 3, 4], [1, 2], [3], [0], [1], [0, 1, 3], [0, 0.5], [2, 3, 4], [0, 1])


def mixed_queries(rng: np.random.Generator, whole: bool = True) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Scores, grades and queries, whose samples come in any order."""
    sizes = rng.integers(5, 30, len(SETS))
    sizes[-1] = 1
    parts = [rng.choice(grades, size) for grades, size in zip(SETS, sizes, strict=True)]
    for part, grades in zip(parts, SETS, strict=True):
        part[: len(grades)] = grades[: part.size]
    grades, qid = np.concatenate(parts) * 1.0, np.repeat(np.arange(len(SETS)), sizes)
    order = rng.permutation(qid.size)
    return rng.normal(size=qid.size), (grades if whole else 0.75 * grades)[order], qid[order]
