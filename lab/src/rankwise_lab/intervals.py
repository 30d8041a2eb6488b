"""Confidence intervals and paired tests: all that the laboratory reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and the ends of its interval, None if there are too few numbers."""

    mean: float
    low: float | None
    high: float | None


def student(values: ArrayLike, fewest: int = 2) -> Interval:
    """Return Student's interval, mean ± t·s/√n. fewest: how many values it needs.

    >>> student([1.0, 2.0, 3.0]).low.__round__(3)
    -0.484
    """
    numbers = np.asarray(values, np.float64)
    return _t_interval(numbers, 1 / numbers.size, fewest)


def corrected(values: ArrayLike, folds: int) -> Interval:
    """Return Nadeau and Bengio's interval of J overlapping folds: variance (1/J + n_test/n_train)·s²."""
    numbers = np.asarray(values, np.float64)
    return _t_interval(numbers, 1 / numbers.size + 1 / (folds - 1), 2)


def _t_interval(values: NDArray[np.float64], factor: float, fewest: int) -> Interval:
    mean = float(values.mean())
    if values.size < max(fewest, 2):
        return Interval(mean, None, None)
    half = float(stdtrit(values.size - 1, 0.5 + LEVEL / 2)) * math.sqrt(factor * float(values.var(ddof=1)))
    return Interval(mean, mean - half, mean + half)


def percentile(drawn: ArrayLike) -> list[float]:
    """Return the ends between which `LEVEL` of the draws lie, without NaN."""
    ends: list[float] = np.nanquantile(np.asarray(drawn), (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)).tolist()
    return ends


def bootstrap(values: NDArray[np.float64], draws: int, seed: int = 0) -> list[float]:
    """Return the percentile bootstrap interval of the mean."""
    rng = np.random.default_rng(seed)
    return percentile(values[rng.integers(0, values.size, (draws, values.size))].mean(axis=1))


def paired_tests(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Test second minus first by Student's t and Wilcoxon's signed ranks; None if pairs are too few or all alike."""
    from scipy import stats

    first, second = np.array(pairs).T
    difference = second - first
    found: dict[str, Any] = {
        "classes": difference.size,
        "better": int((difference > 0.0).sum()),
        "mean": float(difference.mean()),
        **dict.fromkeys(("interval", "t", "p_t", "w", "p_w")),
    }
    if difference.size > 1 and np.ptp(difference) > 0.0:
        interval, t, w = student(difference), stats.ttest_rel(second, first), stats.wilcoxon(difference)
        found |= {"interval": [interval.low, interval.high], "t": float(t.statistic), "p_t": float(t.pvalue)}
        found |= {"w": float(w.statistic), "p_w": float(w.pvalue)}
    return found


def interval_cells(interval: Mapping[str, float | None] | None, digits: int = 4) -> list[str]:
    """Return a mean and the ends of its interval, plain data, as two cells; empty if they are None.

    >>> interval_cells({"mean": 0.5, "low": 0.25, "high": 0.75}, 2)
    ['+0.50', '[+0.25, +0.75]']
    """
    if interval is None:
        return ["", ""]
    low, high = interval["low"], interval["high"]
    return [f"{interval['mean']:+.{digits}f}", "" if low is None else f"[{low:+.{digits}f}, {high:+.{digits}f}]"]
