"""What the paper's Figures 2 and 3 plot: three axes along which a problem grows, the methods timed, and the panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankwise.metrics import LossLike
from rankwise_lab.figures import COLOURS, INK, finish
from rankwise_lab.measuring import scores
from rankwise_lab.measuring.opponents import LogarithmicNDCG, hinge, zero_one_hinge
from rankwise_lab.measuring.timing import Task, compare
from rankwise_lab.report.figure import Drawing, draw_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Positives where negatives vary, negatives where positives do, and negatives per positive where both do: the paper's.
_POSITIVES, _NEGATIVES, _RATIO = 227, 200, 10
# The first point of each axis: samples, negatives, positives.
_FIRST = (110, 100, 10)
_LOGARITHMS = LogarithmicNDCG()


class Curve(NamedTuple):
    """A method that is timed. pairs: the most P·N it is given, as multiples of a plan's bound; none for the fast ones.

    loss: None if no ranking is inferred. tabulated: False for a logarithm at every use, as published.
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

# Height that a line of the legend, above the curves, adds.
_LEGEND = 0.075
# A scale shorter than this has ticks at 2 and 5 as well as at powers of ten.
_SHORT = 300.0
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_BLUE, _ORANGE, _GREEN, _, _YELLOW, _, _GREY = COLOURS
# Colour, marker and line by the name of a curve.
_STYLES: dict[str, tuple[str, str, str]] = {
    "yue": (_ORANGE, "s", "-"),
    "published": (_ORANGE, "s", "-"),
    "tabulated": (_YELLOW, "^", "-"),
    QS: (_BLUE, "o", "-"),
    OURS: (_GREEN, "D", "-"),
    ZERO_ONE: (_GREY, "", "--"),
}
_BY_LABEL = {curve.label: _STYLES[name] for row in ROWS.values() for name, curve in row.items()}


def axes(points: int, largest: tuple[int, int, int], n_pos: int = _POSITIVES, n_neg: int = _NEGATIVES) -> list[Axis]:
    """The three axes, `points` sizes each at equal ratios. largest: the last total, negatives and positives.

    n_pos: positives where negatives vary; n_neg: negatives where positives do.
    """
    for first, last, what in zip(_FIRST, largest, ("samples", "negatives", "positives"), strict=True):
        if last < first:
            raise ValueError(f"the axis of {what} ends at {last:,}, before it begins at {first:,}")
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


def plot(axes: Axes, curves: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> None:
    """Draw curves, by label (sizes, seconds), as milliseconds on two logarithmic scales."""
    for label, (x, seconds) in curves.items():
        colour, marker, line = _BY_LABEL[label]
        milliseconds = [1e3 * s for s in seconds]
        axes.loglog(x, milliseconds, color=colour, marker=marker, markersize=4, linestyle=line, label=label)


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """A figure for each part, loss and axis, by its name as a file; nothing if Matplotlib is not installed."""
    named = {f"{panel['part']}-{panel['loss']}-{panel['axis']}": panel for panel in found["panels"]}
    return draw_each("scaling", (5.0, 4.6), {name: partial(_paint, panel) for name, panel in named.items()})


def _paint(panel: Mapping[str, Any], axes: Axes) -> None:
    row = ROWS[panel["loss"]]
    plot(axes, {row[name].label: (curve["x"], curve["seconds"]) for name, curve in panel["curves"].items()})
    if panel["law"] is not None:
        milliseconds = [1e3 * s for s in panel["law"]]
        axes.loglog(panel["x"], milliseconds, color=INK, linewidth=1.2, linestyle=":", label="law of the theorem")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** (_LEGEND * len(axes.get_lines())))
    for one, (first, last) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        _set_ticks(one, first, last)
    each = "all calls of a training" if panel["part"] == "training" else "one call"
    finish(axes, f"{TITLES[panel['loss']]} loss, {each}", panel["what"], "milliseconds", "upper left")


def _set_ticks(axis: Any, first: float, last: float) -> None:
    """Set legible ticks: few, and plain numbers or powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    short = last < _SHORT * first
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if short else _power(value)))


def _power(value: float) -> str:
    return "10" + str(round(math.log10(value))).translate(_RAISED)
