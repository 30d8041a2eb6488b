"""Graded losses by their definitions: rankings one after the other, pairs of samples in O(n²)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from soft_losses import discount, normaliser, ramp, weight

import rankwise as rw

Array = NDArray[Any]
_BY_FORMULA = ("ap", "ndcg", "mrr", "auc", "precision")
GAINS: dict[str, Any] = {"exp2": lambda y: 2.0**y - 1.0, "linear": lambda y: 1.0 * y}


def levels(grades: Array, loss: Any) -> list[tuple[Array, float, float]]:
    """(positives, ΔG, C) of every grade that is worth something, the lowest, too."""
    gain = loss.gain if callable(loss.gain) else GAINS[loss.gain]
    found, before = [], 0.0
    for grade in np.unique(grades):
        positives, worth = grades >= grade, float(gain(grade))
        sizes = int(positives.sum()), int((~positives).sum())
        norm = normaliser(loss, *sizes) if loss.name.split("@")[0] in _BY_FORMULA else loss.normaliser(*sizes)
        found.append((positives, worth - before, norm))
        before = worth
    return found


def by_levels(grades: Array, loss: rw.Loss, binary: Any) -> Any:
    """Σ_l α_l·binary(positives of l)."""
    parts = levels(grades, loss)
    whole = sum(step * norm for _, step, norm in parts)
    return sum(step * norm / whole * binary(positives) for positives, step, norm in parts if not positives.all())


def graded_ndcg(ranked: Array, k: int | None, gain: str) -> float:
    """One minus DCG/ideal of grades from the top to the bottom."""
    worth = GAINS[gain](ranked)
    d = 1.0 / np.log2(np.arange(ranked.size) + 2.0)
    d[ranked.size if k is None else k :] = 0.0
    return 1.0 - float(worth @ d) / float(np.sort(worth)[::-1] @ d)


def graded_ap(ranked: Array) -> float:
    """One minus Robertson's graded AP with linear gains: over places, the gains up to min(y_d, y_e) of those above."""
    above = np.tril(np.minimum(ranked[:, None], ranked[None, :])).sum(axis=1)
    return 1.0 - float((above / (np.arange(ranked.size) + 1.0)).sum() / ranked.sum())


def graded_maximum(s: Array, grades: Array, loss: rw.DiscountedLoss, scale: float = 1.0) -> float:
    """max over all rankings of Σ_l α_l (scale·Δ_l(R) + F_l(R) − F_l(R*))."""

    parts = levels(grades, loss)
    whole = sum(step * norm for _, step, norm in parts)
    parts = [part for part in parts if not part[0].all()]

    def objective(order: tuple[int, ...]) -> float:
        total = 0.0
        for positives, step, norm in parts:
            ranked, best = positives[list(order)], s[list(order)]
            above = np.cumsum(~ranked)[ranked]
            # Of a positive at place p: over the negatives above it, the sum of s_y − s_x.
            ahead = np.cumsum(np.where(ranked, 0.0, best))[ranked] - above * best[ranked]
            n_neg = s.size - above.size
            margin = 2.0 * ahead.sum() / (above.size * n_neg)
            total += step * norm / whole * (scale * float(loss.of_counts(above, n_neg)) + float(margin))
        return total

    return max(objective(order) for order in permutations(range(s.size)))


def smooth_by_pairs(s: Array, grades: Array, loss: rw.DiscountedLoss, width: float) -> tuple[float, Array]:
    """The smooth loss of grades and its gradient, by soft ranks in O(n²)."""
    s = s.astype(np.float64)
    x = s[None, :] - s[:, None]  # x[d, e] = s_e − s_d
    h, near = ramp(x, width), (np.abs(x) < width) / (2.0 * width)
    parts = levels(grades, loss)
    norm = sum(step * c for _, step, c in parts)
    rank = np.maximum(0.5 + h.sum(axis=1), 1.0)
    value, slope = discount(loss, rank)
    worth, best, rates = np.zeros(s.size), 0.0, np.zeros((s.size, s.size))
    for positives, step, _ in parts:
        place = np.maximum(0.5 + h[:, positives].sum(axis=1), 1.0)
        w, w_slope = (step * positives * part for part in weight(loss, place))
        worth += w
        i = np.arange(1.0, positives.sum() + 1.0)
        best += step * float((weight(loss, i)[0] * discount(loss, i)[0]).sum())
        rates -= (value * w_slope)[:, None] * positives[None, :]  # of a comparison of d with e
    rates -= (slope * worth)[:, None]
    rates *= near / norm
    return (best - float(value @ worth)) / norm, rates.sum(axis=0) - rates.sum(axis=1)
