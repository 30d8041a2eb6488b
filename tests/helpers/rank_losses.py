"""Losses to be exact for, and tiny queries with room for rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import rankwise as rw

TOL = 1e-9  # of max(1, |J|)

NAMED: dict[str, rw.DiscountedLoss] = {
    "ap": rw.AveragePrecision(),
    "ndcg": rw.NDCG(),
    "mrr": rw.ReciprocalRank(),
    "auc": rw.AUC(),
}
OWN = rw.DiscountedLoss(lambda k: 1 / (1 + k), lambda m: 0.7**m + 0.1 / m, name="own")
ODD = rw.DiscountedLoss(lambda k: k % 2, lambda m: 1 / m**0.5, name="odd")


class Query(NamedTuple):
    scores: np.ndarray
    relevant: np.ndarray
    scale: float


def slack(value: float) -> float:
    return TOL * max(1.0, abs(value))
