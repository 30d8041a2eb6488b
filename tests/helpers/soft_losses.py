"""Losses to be softened, by their formulas; from these the smooth and the error-driven loss, in O(PN) loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw

LOSSES: dict[str, rw.DiscountedLoss] = {
    "ap": rw.AveragePrecision(),
    "ndcg": rw.NDCG(),
    "mrr": rw.ReciprocalRank(),
    "auc": rw.AUC(),
    "chakrabarti": rw.NDCG(discount="chakrabarti"),
    "root": rw.DiscountedLoss(discount=lambda m: m**-0.5, slope=lambda m: -0.5 * m**-1.5, name="root"),
    "table": rw.DiscountedLoss(weight=lambda k: 1.0 / k, discount=lambda m: 1.0 / (3.0 + m), name="table"),
}
Array = NDArray[Any]


def ramp(x: Array, width: float) -> Array:
    return np.clip(x / (2.0 * width) + 0.5, 0.0, 1.0)


def _on_lines(of: Any, x: Array) -> tuple[Array, Array]:
    """What is given at whole places, and its slope, by a line between each two."""
    low = np.floor(x)
    step = of(low + 1.0) - of(low)
    return of(low) + (x - low) * step, step


def discount(loss: rw.DiscountedLoss, m: Array) -> tuple[Array, Array]:
    """D and D′ at real places, each by its formula, and on a line to 0 between k and k + 1 of a cut-off."""
    name, k = loss.name.split("@")[0], np.inf if loss.k is None else loss.k
    if "chakrabarti" in repr(loss):
        name = "chakrabarti"
    m = np.asarray(m, np.float64)
    x = np.minimum(m, k)
    formulas: dict[str, Any] = {
        "ap": lambda: (1.0 / x, -1.0 / x**2),
        "mrr": lambda: (1.0 / x, -1.0 / x**2),
        "ndcg": lambda: (1.0 / np.log2(1.0 + x), -np.log(2.0) / ((1.0 + x) * np.log(1.0 + x) ** 2)),
        "chakrabarti": lambda: (
            1.0 / np.log2(np.maximum(x, 2.0)),
            np.where(x < 2.0, 0.0, -np.log(2.0) / (x * np.log(np.maximum(x, 2.0)) ** 2)),
        ),
        "precision": lambda: (np.ones_like(x), np.zeros_like(x)),
        "auc": lambda: (-x, -np.ones_like(x)),
        "root": lambda: (x**-0.5, -0.5 * x**-1.5),
        "table": lambda: _on_lines(lambda place: 1.0 / (3.0 + place), x),
    }
    value, slope = formulas[name]()
    left = k + 1.0 - m
    return value * np.clip(left, 0.0, 1.0), np.where(m <= k, slope, np.where(left > 0.0, -value, 0.0))


def weight(loss: rw.DiscountedLoss, a: Array) -> tuple[Array, Array]:
    """w and w′ at real places."""
    name = loss.name.split("@")[0]
    if name == "ap":
        return a * 1.0, np.ones_like(a)
    if name == "mrr":
        return np.clip(2.0 - a, 0.0, 1.0), np.where(a < 2.0, -1.0, 0.0)
    if name == "table":
        return _on_lines(lambda place: 1.0 / place, a)
    return np.ones_like(a, np.float64), np.zeros_like(a, np.float64)


def normaliser(loss: rw.DiscountedLoss, n_pos: int, n_neg: int) -> float:
    """C, by formula."""
    k = np.arange(1.0, n_pos + 1.0)
    return float(n_pos * n_neg) if loss.name == "auc" else float((weight(loss, k)[0] * discount(loss, k)[0]).sum())


def smooth_by_formula(s: Array, y: Array, loss: rw.DiscountedLoss, width: float) -> tuple[float, Array]:
    """O(PN): all pairs."""
    s = s.astype(np.float64)
    pos, neg = np.flatnonzero(y), np.flatnonzero(~y)
    pos = pos[np.argsort(-s[pos], kind="stable")]
    x = s[neg][None, :] - s[pos][:, None]
    k = np.arange(1.0, pos.size + 1.0)
    w = weight(loss, k)[0] / normaliser(loss, pos.size, neg.size)
    value, slope = discount(loss, k + ramp(x, width).sum(axis=1))
    a = -w * slope
    a = np.array([a[s[pos] == s[p]].mean() for p in pos])  # ties share
    near = np.abs(x) < width
    gradient = np.empty(s.size)
    gradient[pos], gradient[neg] = -a * near.sum(axis=1) / (2 * width), a @ near / (2 * width)
    return float((w * (discount(loss, k)[0] - value)).sum()), gradient


def error_driven_by_formula(
    s: Array, y: Array, loss: rw.DiscountedLoss, width: float, interpolate: bool
) -> tuple[float, Array]:
    """The published loop, one positive after the other from the lowest."""
    s = s.astype(np.float64)
    pos, neg = s[y], s[~y]
    c = normaliser(loss, pos.size, neg.size)
    value, best, of_pos, of_neg = 0.0, 0.0, np.zeros(pos.size), np.zeros(neg.size)
    for i in np.argsort(pos, kind="stable"):
        a, above = max(0.5 + ramp(pos - pos[i], width).sum(), 1.0), ramp(neg - pos[i], width)
        b = above.sum()
        ideal, found = discount(loss, np.array([a, a + b]))[0]
        if interpolate and loss.name != "auc":
            best = max(best, found / ideal)
            found = ideal * best
        error = weight(loss, np.array([min(a, pos.size)]))[0][0] / c * (ideal - found)
        value, of_pos[i] = value + error, -error
        of_neg += error * above / b if b > 0 else 0.0
    gradient = np.empty(s.size)
    gradient[y], gradient[~y] = of_pos, of_neg
    return value, gradient
