"""Small figures for the overview, one per experiment: drawn separately, not scaled down, so that they stay legible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rankwise_lab.figures import COLOURS, INK
from rankwise_lab.report.figure import Drawn, draw_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (2.3, 1.08)
_TEXT = 8.0
_GRID = "#888888"
_BLUE, _ORANGE, _GREEN = COLOURS[:3]


class Gain(NamedTuple):
    """Points that a loss gains over 0-1 loss. ends: of the interval, None if there is none."""

    label: str
    mean: float
    ends: Sequence[float] | None
    paper: float


class SpeedUp(NamedTuple):
    """How many times faster a method is; also: a second measurement of the same, if any."""

    label: str
    ours: float
    paper: float
    also: float | None = None


class Line(NamedTuple):
    """Milliseconds against sizes. colour: its place in the list of colours. shift: of the label, in points upwards."""

    label: str
    x: Sequence[int]
    milliseconds: Sequence[float]
    colour: int
    shift: float = 0.0


def draw_gains(part: str, gains: Sequence[Gain]) -> Drawn | None:
    """Gains with their intervals, and the paper's as hollow diamonds; None if Matplotlib is not installed."""
    told = ", ".join(f"{gain.label} {gain.mean:+.2f} (paper {gain.paper:+.2f})" for gain in gains)
    label = f"Gain over 0-1 loss in points: {told}"
    return _draw(part, partial(_paint_gains, gains), label)


def draw_speed_ups(part: str, speed_ups: Sequence[SpeedUp]) -> Drawn | None:
    """Speed-ups as bars on a logarithmic axis, and the paper's as hollow diamonds."""
    told = ", ".join(f"{one.label} {one.ours:.1f} (paper {one.paper:.1f})" for one in speed_ups)
    return _draw(part, partial(_paint_speed_ups, speed_ups), f"How many times faster: {told}")


def draw_lines(part: str, lines: Sequence[Line], x: str) -> Drawn | None:
    """Milliseconds on two logarithmic axes; x: what grows."""
    told = ", ".join(line.label for line in lines)
    return _draw(part, partial(_paint_lines, lines, x), f"Milliseconds of one call against {x}: {told}")


def _draw(part: str, paint: Callable[[Axes], None], label: str) -> Drawn | None:
    figures = draw_each(part, _INCHES, {"thumbnail": paint})
    return Drawn("thumbnail", figures["thumbnail"], label, "") if figures else None


def _paint_gains(gains: Sequence[Gain], axes: Axes) -> None:
    axes.axvline(0.0, color=INK, linewidth=0.8)
    for row, (gain, colour) in enumerate(zip(gains, (_BLUE, _ORANGE), strict=False)):
        if gain.ends is not None:
            low, high = gain.ends
            axes.hlines(row, low, high, color=colour, linewidth=2.0)
        axes.plot([gain.mean], [row], "o", color=colour, markersize=5)
        axes.plot([gain.paper], [row], "D", markersize=5, markerfacecolor="none", markeredgecolor=INK)
    axes.set_yticks(range(len(gains)), [gain.label for gain in gains])
    axes.set_ylim(len(gains) - 0.4, -0.6)
    _finish(axes, "points gained; ◇ paper")


def _paint_speed_ups(speed_ups: Sequence[SpeedUp], axes: Axes) -> None:
    rows = range(len(speed_ups))
    axes.barh(rows, [one.ours for one in speed_ups], color=[_BLUE, _ORANGE][: len(speed_ups)], height=0.5)
    axes.plot([one.paper for one in speed_ups], rows, "D", markersize=5, markerfacecolor="none", markeredgecolor=INK)
    also = [(one.also, row) for row, one in enumerate(speed_ups) if one.also is not None]
    for value, row in also:
        axes.plot([value], [row], "o", markersize=4, color=INK)
    axes.set_xscale("log")
    axes.set_xlim(1.0, 1.6 * max(value for one in speed_ups for value in (one.ours, one.paper, one.also or 1.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(rows, [one.label for one in speed_ups])
    axes.set_ylim(len(speed_ups) - 0.4, -0.6)
    _finish(axes, "× faster; ● replayed, ◇ paper" if also else "× faster; ◇ paper")


def _paint_lines(lines: Sequence[Line], x: str, axes: Axes) -> None:
    for line in lines:
        axes.loglog(line.x, line.milliseconds, color=COLOURS[line.colour], linewidth=1.8)
        axes.annotate(
            line.label,
            (line.x[-1], line.milliseconds[-1]),
            xytext=(3, line.shift),
            textcoords="offset points",
            fontsize=_TEXT,
            color=INK,
            va="center",
        )
    axes.set_ylabel("ms", fontsize=_TEXT, color=INK)
    axes.minorticks_off()
    _finish(axes, x)


def _finish(axes: Axes, x: str) -> None:
    axes.set_xlabel(x, fontsize=_TEXT, color=INK)
    axes.tick_params(labelsize=_TEXT, color=INK, labelcolor=INK, which="both", length=2, pad=2)
    axes.grid(True, axis="x", color=_GRID, alpha=0.35, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
