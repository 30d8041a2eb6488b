"""Graded losses by their definitions: rankings one after the other, pairs of samples in O(n²)."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from soft_losses import ramp

import rankwise as rw

Array = NDArray[Any]
GAINS: dict[str, Any] = {"exp2": lambda y: 2.0**y - 1.0, "linear": lambda y: 1.0 * y}


def discount(loss: rw.DiscountedLoss, m: Array) -> tuple[Array, Array]:
    """D and D′ at real places: by formula, and on a line to 0 between k and k + 1."""
    name, k = loss.name.split("@")[0], np.inf if loss.k is None else loss.k
    x = np.minimum(m, k)
    formulas: dict[str, Any] = {
        "ndcg": lambda: (1.0 / np.log2(1.0 + x), -np.log(2.0) / ((1.0 + x) * np.log(1.0 + x) ** 2)),
        "precision": lambda: (np.ones_like(x), np.zeros_like(x)),
        "auc": lambda: (-x, -np.ones_like(x)),
    }
    value, slope = formulas.get(name, lambda: (1.0 / x, -1.0 / x**2))()
    left = k + 1.0 - m
    return value * np.clip(left, 0.0, 1.0), np.where(m <= k, slope, np.where(left > 0.0, -value, 0.0))


def weight(loss: rw.DiscountedLoss, a: Array) -> tuple[Array, Array]:
    """w and w′ at real places."""
    name = loss.name.split("@")[0]
    if name == "ap":
        return a * 1.0, np.ones_like(a)
    if name == "mrr":
        return np.clip(2.0 - a, 0.0, 1.0), np.where(a < 2.0, -1.0, 0.0)
    return np.ones_like(a), np.zeros_like(a)


def normaliser(loss: Any, n_pos: int, n_neg: int) -> float:
    if loss.name.split("@")[0] not in ("ap", "ndcg", "mrr", "auc", "precision"):
        return float(loss.normaliser(n_pos, n_neg))
    i = np.arange(1.0, n_pos + 1.0)
    return float(n_pos * n_neg) if loss.name == "auc" else float((weight(loss, i)[0] * discount(loss, i)[0]).sum())


def levels(grades: Array, loss: rw.Loss) -> list[tuple[Array, float, float]]:
    """(positives, ΔG, C) of every grade that is worth something, the lowest, too."""
    gain = loss.gain if callable(loss.gain) else GAINS[loss.gain]
    found, before = [], 0.0
    for grade in np.unique(grades):
        positives, worth = grades >= grade, float(gain(grade))
        n_pos = int(positives.sum())
        found.append((positives, worth - before, normaliser(loss, n_pos, grades.size - n_pos)))
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
