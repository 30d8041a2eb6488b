"""Bags of which a positive has one candidate that stands out, and what tests of rankers of bags share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise.latent.bags import as_bags

LOSSES = ["ap", "ndcg", "mrr", "auc", "zero-one"]
ROUNDING = 1e-9
TENS = 10.0  # the column of the 0-1 loss's intercept
# Up to so many entries all candidates are used; beyond, a working set.
ROUTES = {"all candidates": 1 << 21, "working set": 0}
ZEROS = "ignore:LatentRankSVM found only coefficients of 0"  # may be a minimum: it is said, and often not the point


class Planted(NamedTuple):
    """Bags, labels, and the candidate that stands out in each positive bag."""

    bags: list[NDArray[np.float64]]
    y: NDArray[np.bool_]
    witness: NDArray[np.int64]


def planted(n: int = 60, seed: int = 0, shift: float = 5.0, width: int = 3, most: int = 6, n_pos: int = 0) -> Planted:
    """A third of the bags is positive, unless n_pos says how many."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) < (n_pos or n // 3))
    bags = [rng.normal(size=(rng.integers(2, most + 1), width)) for _ in y]
    witness = np.array([rng.integers(len(bag)) for bag in bags])
    for bag, positive, k in zip(bags, y, witness, strict=True):
        bag[k, 0] += shift * positive
    return Planted(bags, y, witness)


def as_whole(bags: list[Any]) -> rw.Bags:
    return rw.Bags(np.concatenate(bags), np.cumsum([0, *map(len, bags)]))


def objective(bags: list[Any], y: Any, loss: str, C: float, v: Any, fixed: Any = None) -> float:
    """F at v; fixed: candidates of positives, for the bound of F that they give."""
    width, starts = bags[0].shape[1], as_bags(bags).starts
    every = np.concatenate(bags) @ v[:width] + (TENS * v[width] if v.size > width else 0.0)
    scores = np.maximum.reduceat(every, starts)
    if fixed is not None:
        scores = np.where(y, every[starts + fixed], scores)
    return 0.5 * float(v @ v) + C * rw.structured_hinge(scores, y, loss).value
