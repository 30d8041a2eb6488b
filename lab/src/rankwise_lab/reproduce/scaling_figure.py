"""The panels of the paper's Figures 2 and 3: time against size, a line a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankwise.figures import COLOURS, INK, finish
from rankwise_lab.report.figure import Drawing, drawing, have_matplotlib
from rankwise_lab.reproduce.scaling_curves import OURS, QS, ROWS, TITLES, ZERO_ONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "plot"]

# Inches of a figure.
_SIZE = (5.0, 4.6)
# What a line of the legend, which is above the curves, adds to the height of these.
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


def plot(axes: Axes, curves: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> None:
    """Draw curves, by label (sizes, seconds), as milliseconds on two logarithmic scales."""
    for label, (x, seconds) in curves.items():
        colour, marker, line = _BY_LABEL[label]
        milliseconds = [1e3 * s for s in seconds]
        axes.loglog(x, milliseconds, color=colour, marker=marker, markersize=4, linestyle=line, label=label)


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """A figure for each part, loss and axis, by its name as a file; nothing if Matplotlib is not installed."""
    if not have_matplotlib():
        return {}
    return {f"{panel['part']}-{panel['loss']}-{panel['axis']}": _drawn(panel) for panel in found["panels"]}


def _drawn(panel: Mapping[str, Any]) -> Drawing:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
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
    title = f"{TITLES[panel['loss']]} loss, {each}"
    finish(axes, title, panel["what"], "milliseconds", "upper left")
    return drawing(figure, f"scaling-{panel['part']}-{panel['loss']}-{panel['axis']}-")


def _set_ticks(axis: Any, first: float, last: float) -> None:
    """Ticks that can be read: few, and plain numbers or powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    short = last < _SHORT * first
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if short else _power(value)))


def _power(value: float) -> str:
    return "10" + str(round(math.log10(value))).translate(_RAISED)
