"""The law of the paper's theorem, fitted to times: t = a + b·(N log P + P log N + P log P), log n being log2(1 + n).

Small and large problems count alike: the fit minimises the largest factor between a time and the law, above or below,
that is, the largest |log(t / law)| (Chebyshev's criterion, on logarithms). Least squares would fit only the largest
problem, and least squares of logarithms would say nothing about the worst point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Law(NamedTuple):
    """t = a + b·work. factor: the largest between law and time. slowest, fastest: points furthest above and below."""

    a: float
    b: float
    factor: float
    slowest: int
    fastest: int

    def __call__(self, work: float) -> float:
        return self.a + self.b * work

    def as_dict(self, sizes: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """The law as plain data; sizes: (P, N) of the points it was fitted to."""
        where = {"slowest": list(sizes[self.slowest]), "fastest": list(sizes[self.fastest])}
        return {"a": self.a, "b": self.b, "factor": self.factor, "points": len(sizes), **where}


def theorem(n_pos: int, n_neg: int) -> float:
    """N log P + P log N + P log P."""
    p, n = math.log2(1 + n_pos), math.log2(1 + n_neg)
    return n_neg * p + n_pos * n + n_pos * p


def plain(n_pos: int, n_neg: int) -> float:
    """N log P, what is left of it where N > P."""
    return n_neg * math.log2(1 + n_pos)


def fit(sizes: Sequence[tuple[int, int]], seconds: Iterable[float], work: Callable[[int, int], float]) -> Law:
    """a ≥ 0 and b ≥ 0 that make max |log(t / (a + b·work))| least.

    For c = a / b the best b puts the least and the greatest t / (c + work) at equal factors from the law. Which c: if
    the point furthest above has more work than the one furthest below, the law is to be steeper, c less; else greater.
    The factor as a function of c has but one minimum, as {(a, b): t/f ≤ a + b·work ≤ f·t} is convex: c is bisected.
    """
    w = np.array([work(*size) for size in sizes], np.float64)
    t = np.fromiter(seconds, np.float64)
    if t.size < 2 or t.shape != w.shape or not ((t > 0.0) & (w > 0.0) & np.isfinite(t)).all():
        raise ValueError("a law needs at least two times, all above 0, each with its size")
    low, high = 0.0, 1.0  # of c / (c + the greatest work)
    if not _too_flat(t, w, 0.0):
        while low < (middle := 0.5 * (low + high)) < high:  # times that do not grow at all end just below 1
            low, high = (low, middle) if _too_flat(t, w, _ratio(middle, w)) else (middle, high)
    c = _ratio(low, w)
    above, below = _extremes(t, w, c)
    b = math.sqrt(float(t[above] / (c + w[above]) * t[below] / (c + w[below])))
    return Law(b * c, b, float(t[above] / (b * (c + w[above]))), above, below)


def _ratio(share: float, w: NDArray[np.float64]) -> float:
    return float(w.max()) * share / (1.0 - share)


def _extremes(t: NDArray[np.float64], w: NDArray[np.float64], c: float) -> tuple[int, int]:
    quotient = t / (c + w)
    return int(np.argmax(quotient)), int(np.argmin(quotient))


def _too_flat(t: NDArray[np.float64], w: NDArray[np.float64], c: float) -> bool:
    """Whether the factor would grow with c."""
    above, below = _extremes(t, w, c)
    return bool(w[above] >= w[below])
