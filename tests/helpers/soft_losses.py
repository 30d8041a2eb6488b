"""Losses to be softened, and the smooth and the error-driven loss by their formulas, in O(PN) loops."""

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


def continued(loss: rw.DiscountedLoss, m: Array) -> tuple[Array, Array]:
    """D and D′ at real places, each by its formula."""
    m = np.asarray(m, dtype=np.float64)
    if loss.name in ("ap", "mrr"):
        return 1.0 / m, -1.0 / m**2
    if loss.name == "auc":
        return -m, -np.ones_like(m)
    if loss.name == "root":
        return m**-0.5, -0.5 * m**-1.5
    if loss.name == "table":
        low = np.floor(m)
        step = 1.0 / (4.0 + low) - 1.0 / (3.0 + low)
        return 1.0 / (3.0 + low) + (m - low) * step, step
    shift = 0.0 if "chakrabarti" in repr(loss) else 1.0
    x = np.maximum(m + shift, 2.0) if shift == 0.0 else m + 1.0
    slope = -np.log(2.0) / (x * np.log(x) ** 2)
    return 1.0 / np.log2(x), np.where((shift == 0.0) & (m < 2.0), 0.0, slope)


def weight(loss: rw.DiscountedLoss, k: Array) -> Array:
    if loss.name == "ap":
        return k * 1.0
    if loss.name == "mrr":
        return np.clip(2.0 - k, 0.0, 1.0)
    if loss.name == "table":
        low = np.floor(k)
        return 1.0 / low + (k - low) * (1.0 / (low + 1.0) - 1.0 / low)
    return np.ones_like(k, dtype=np.float64)


def normaliser(loss: rw.DiscountedLoss, n_pos: int, n_neg: int) -> float:
    k = np.arange(1.0, n_pos + 1.0)
    return float(n_pos * n_neg) if loss.name == "auc" else float((weight(loss, k) * continued(loss, k)[0]).sum())


def smooth_by_formula(s: Array, y: Array, loss: rw.DiscountedLoss, width: float) -> tuple[float, Array]:
    """O(PN): all pairs."""
    s = s.astype(np.float64)
    pos, neg = np.flatnonzero(y), np.flatnonzero(~y)
    pos = pos[np.argsort(-s[pos], kind="stable")]
    x = s[neg][None, :] - s[pos][:, None]
    k = np.arange(1.0, pos.size + 1.0)
    w = weight(loss, k) / normaliser(loss, pos.size, neg.size)
    value, slope = continued(loss, k + ramp(x, width).sum(axis=1))
    a = -w * slope
    a = np.array([a[s[pos] == s[p]].mean() for p in pos])  # ties share
    near = np.abs(x) < width
    gradient = np.empty(s.size)
    gradient[pos], gradient[neg] = -a * near.sum(axis=1) / (2 * width), a @ near / (2 * width)
    return float((w * (continued(loss, k)[0] - value)).sum()), gradient


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
        ideal, found = continued(loss, np.array([a, a + b]))[0]
        if interpolate and loss.name != "auc":
            best = max(best, found / ideal)
            found = ideal * best
        error = weight(loss, np.array([min(a, pos.size)]))[0] / c * (ideal - found)
        value, of_pos[i] = value + error, -error
        of_neg += error * above / b if b > 0 else 0.0
    gradient = np.empty(s.size)
    gradient[y], gradient[~y] = of_pos, of_neg
    return value, gradient
