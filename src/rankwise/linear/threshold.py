"""The threshold that cuts a ranking into two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def best_f1_threshold(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """Return the threshold t with the highest F1 = 2 TP/(2 TP + FP + FN), where scores > t are predicted positive.

    It lies midway between two scores, so it is robust to rounding. Of several best thresholds, the highest is returned.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[:-1] > ranked[1:], True))  # a cut does not separate equal scores
    true = np.cumsum(relevant[order])[last]
    f1 = 2.0 * true / (last + 1.0 + relevant.sum())
    cut = int(last[np.argmax(f1)])
    return between(float(ranked[cut]), float(ranked[cut + 1]) if cut + 1 < ranked.size else -np.inf)


def between(above: float, below: float) -> float:
    """Return a threshold between two neighbouring scores; below: −∞ if there is none."""
    if below == -np.inf:
        return float(np.nextafter(above, -np.inf))
    middle = 0.5 * above + 0.5 * below
    return middle if middle < above else below  # adjacent floating-point numbers have no middle
