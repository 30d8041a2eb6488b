"""What the paper's Figures 2 and 3 plot: three axes along which a problem grows, and the methods that are timed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from rankwise.losses import NDCG, LossLike
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.opponents import hinge, zero_one_hinge
from rankwise_lab.measuring.timing import Task, compare

__all__ = [
    "OURS",
    "QS",
    "ROWS",
    "SORT",
    "TITLES",
    "ZERO_ONE",
    "Axis",
    "Curve",
    "axes",
    "largest_of",
    "time_call",
    "within",
]

# Positives where negatives vary, negatives where positives do, and negatives per positive where both do: the paper's.
_POSITIVES, _NEGATIVES, _RATIO = 227, 200, 10
# The first point of each axis: samples, negatives, positives.
_FIRST = (110, 100, 10)
_LOGARITHMS = NDCG(tabulate=False)


class Curve(NamedTuple):
    """A method that is timed. pairs: the most P·N it is given, as multiples of a plan's bound; none for the fast ones.

    loss: None where no ranking is inferred. tabulated: False for logarithms at every use, as was published.
    """

    label: str
    loss: str | None = None
    method: str = "auto"
    tabulated: bool = True
    pairs: float = math.inf

    def of(self) -> LossLike:
        """The loss to minimise."""
        if self.loss is None:
            return ZERO_ONE
        return self.loss if self.tabulated else _LOGARITHMS

    def task(self, sample: scores.Sample) -> Task:
        """One call."""
        if self.method == SORT:
            return partial(np.sort, sample.negatives)
        return partial(zero_one_hinge, sample) if self.loss is None else hinge(sample, self.of(), self.method)


class Axis(NamedTuple):
    """Sizes along which a problem grows: x, the count that is varied, and (P, N) at each. what: x in words."""

    name: str
    what: str
    x: list[int]
    sizes: list[tuple[int, int]]


ZERO_ONE, QS, OURS, SORT = "zero-one", "quicksort", "bucketed", "sort"
TITLES = {"ap": "AP", "ndcg": "NDCG"}
_LAST = {ZERO_ONE: Curve("0-1 (NumPy)")}
# Curves by loss and name; the first of each is the published method. Logarithms take five times as long as a table.
ROWS: dict[str, dict[str, Curve]] = {
    "ap": {
        "yue": Curve("AP (Yue et al.)", "ap", "yue", pairs=1.0),
        QS: Curve("AP_QS (Algorithm 1)", "ap", QS),
        OURS: Curve("bucketed (rankwise)", "ap", OURS),
        **_LAST,
    },
    "ndcg": {
        "published": Curve("NDCG (Chakrabarti et al.)", "ndcg", "chakrabarti", tabulated=False, pairs=0.2),
        "tabulated": Curve("NDCG, tabulated (Chakrabarti et al.)", "ndcg", "chakrabarti", pairs=1.0),
        QS: Curve("NDCG_QS (Algorithm 1)", "ndcg", QS),
        OURS: Curve("bucketed (rankwise)", "ndcg", OURS),
        **_LAST,
    },
}


def axes(points: int, largest: tuple[int, int, int], n_pos: int = _POSITIVES, n_neg: int = _NEGATIVES) -> list[Axis]:
    """The three axes, `points` sizes each at equal ratios. largest: the last total, negatives and positives.

    n_pos: positives where negatives vary; n_neg: negatives where positives do.
    """
    for first, last, what in zip(_FIRST, largest, ("samples", "negatives", "positives"), strict=True):
        if last < first:
            raise ValueError(f"the axis of {what} ends at {last:,}; it begins at {first:,}")
    total, negatives, positives = (_spread(*ends, points) for ends in zip(_FIRST, largest, strict=True))
    by_ratio = [(round(n / (1 + _RATIO)), n - round(n / (1 + _RATIO))) for n in total]
    return [
        Axis("total", f"samples, positive to negative 1:{_RATIO}", total, by_ratio),
        Axis("negatives", f"negative samples, {n_pos} positive", negatives, [(n_pos, n) for n in negatives]),
        Axis("positives", f"positive samples, {n_neg} negative", positives, [(n, n_neg) for n in positives]),
    ]


def largest_of(n_pos: int, n_neg: int, points: int) -> list[Axis]:
    """The three axes as far as n_pos positives and n_neg negatives go."""
    total = min((1 + _RATIO) * n_pos, (1 + _RATIO) * n_neg // _RATIO)
    return axes(points, (total, n_neg, n_pos), min(_POSITIVES, n_pos), min(_NEGATIVES, n_neg))


def _spread(first: int, last: int, points: int) -> list[int]:
    return list(dict.fromkeys(round(float(n)) for n in np.geomspace(first, last, points)))


def time_call(curves: Mapping[str, Curve], sample: scores.Sample, repeats: int) -> dict[str, float]:
    """Seconds of one call of each curve."""
    return compare({name: curve.task(sample) for name, curve in curves.items()}, repeats)


def within(curves: Mapping[str, Curve], pairs: int, bound: float) -> dict[str, Curve]:
    """The curves that are given that many pairs P·N under a plan's bound."""
    return {name: curve for name, curve in curves.items() if pairs <= bound * curve.pairs}
