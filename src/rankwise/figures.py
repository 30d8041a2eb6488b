"""Figures of rankers: precision and recall, convergence, and two rankers compared; the style of all figures."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "INK",
    "SIZES",
    "Curve",
    "as_png",
    "as_svg",
    "curve_of",
    "draw",
    "draw_differences",
    "finish",
]

# Font sizes in points: readable when a panel of 5 inches is as wide as a phone.
SIZES = {"title": 13.0, "label": 12.0, "tick": 11.0}
# The colour of text and axes (in an SVG, the reader's text colour), and the colour-blind-safe colours of Okabe and Ito.
# The blue is a little lighter, so that all show on white and on black.
INK = "#1b1c1d"
COLOURS = ("#1a80c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
Corner = Literal["best", "upper left", "upper right", "lower left", "lower right", "center right"]

# Sizes in inches, of a panel and of the figure of two rankers.
_PANEL, _WIDE = (5.0, 3.9), (7.5, 4.4)
_LINES = ("-", "--", "-.", (0, (1, 1.2)))
# Number of last characters of a ranker's name that are shown.
_NAME = 26


class Curve(NamedTuple):
    """Precision and recall at thresholds from the lowest up, as in scikit-learn, and the area under the curve, AP."""

    name: str
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    ap: float


def curve_of(name: str, scores: ArrayLike, relevant: ArrayLike) -> Curve:
    """Return the precision-recall curve of scores (n,), without thresholds that find no further positive."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(relevant, scores, drop_intermediate=True)
    return Curve(name, precision, recall, float(average_precision_score(relevant, scores)))


def draw(
    curves: Sequence[Curve], histories: Mapping[str, Mapping[str, NDArray[Any]]], tol: float | None = None
) -> Figure:
    """Draw a panel of the curves and a panel of the gaps by iteration, or one panel if the other would be empty.

    histories: for each model, as in `RankSVM.history_`. tol: the gap at which training stops, drawn as a line. A name
    has the same colour in both panels.
    """
    from matplotlib.figure import Figure

    names = list(dict.fromkeys([*(curve.name for curve in curves), *histories]))
    styles = {
        name: {"color": COLOURS[i % len(COLOURS)], "linestyle": _LINES[i % len(_LINES)], "linewidth": 1.8}
        for i, name in enumerate(names)
    }
    n_panels = max(1, bool(curves) + bool(histories))
    figure = Figure(figsize=(n_panels * _PANEL[0], _PANEL[1]), layout="constrained")
    panels = list(figure.subplots(1, n_panels, squeeze=False)[0])
    if curves or not histories:
        _draw_curves(panels[0], curves, styles)
    if histories:
        _draw_gaps(panels[-1], histories, styles, tol)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once: every further pass would move things slightly
    return figure


def _draw_curves(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, Any]) -> None:
    for curve in curves:
        label = f"{curve.name}: AP {curve.ap:.3f}"
        # AP is the area under these steps, not under lines between the points.
        axes.plot(curve.recall, curve.precision, drawstyle="steps-post", label=label, **styles[curve.name])
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03))
    finish(axes, "Precision and recall", "recall", "precision", "lower left")


def _draw_gaps(
    axes: Axes, histories: Mapping[str, Mapping[str, NDArray[Any]]], styles: Mapping[str, Any], tol: float | None
) -> None:
    for name, history in histories.items():
        gap = np.asarray(history["gap"], np.float64)
        shown = np.where(gap > 0.0, gap, np.nan)  # a gap of 0 cannot be shown on a logarithmic scale
        axes.plot(history["iteration"], shown, label=name, **styles[name])
    axes.set_yscale("log")
    if tol is not None:
        axes.axhline(tol, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label=f"tol = {tol:g}")
    finish(axes, "Convergence", "iteration", "relative duality gap", "upper right")


def draw_differences(
    differences: ArrayLike,
    interval: tuple[float, float] | None,
    *,
    metric: str,
    names: tuple[str, str] = ("A", "B"),
    level: float = 0.95,
) -> Figure:
    """Draw one bar per query, sorted: how much better (blue) or worse the second ranker is; the mean with its interval.

    differences: (q,) values of the second ranker minus those of the first, at least one. interval: interval of their
    mean at that level, if there is one.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    bars = np.sort(np.asarray(differences, np.float64))
    first, second = (name if len(name) <= _NAME else f"…{name[1 - _NAME :]}" for name in names)
    figure = Figure(figsize=_WIDE, layout="constrained")
    axes = figure.subplots()
    worse, better = int((bars < 0.0).sum()), int((bars > 0.0).sum())
    # One outline a side, so that thousands of bars make a small file.
    for colour, start, stop in ((COLOURS[1], 0, worse), (COLOURS[0], bars.size - better, bars.size)):
        if start < stop:
            edges = np.arange(start, stop + 1) + 0.5
            axes.stairs(bars[start:stop], edges, fill=True, color=colour, linewidth=0.0)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    between, drawn = "", np.array([bars[0], bars[-1], 0.0])
    if interval is not None and np.isfinite(interval).all():
        axes.axhspan(*interval, color="#808080", alpha=0.3, linewidth=0.0, zorder=0.5)
        between = f" ({100 * level:g} %: {_signed(interval[0])} to {_signed(interval[1])})"
        drawn = np.append(drawn, interval)
    margin = max(0.06 * np.ptp(drawn), 0.005)
    axes.set_ylim(drawn.min() - margin, drawn.max() + margin)
    axes.set_xlim(0.5 - 0.01 * bars.size, bars.size + 0.5 + 0.01 * bars.size)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    mean = float(bars.mean())
    handles = [
        Patch(color=COLOURS[0], label=f"{second} better: {_queries(better)}"),
        Patch(color=COLOURS[1], label=f"{first} better: {_queries(worse)}"),
        axes.axhline(mean, color=INK, linewidth=1.4, linestyle=(0, (5, 3)), label=f"mean {_signed(mean)}{between}"),
    ]
    equal = bars.size - better - worse
    among = f" ({equal:,} of them equal)" if equal else ""
    finish(axes, f"{metric} by query", f"{_queries(bars.size)}{among}, sorted", f"difference of {metric}")
    columns = 2 if len(first) + len(second) <= _NAME else 1
    style: dict[str, Any] = {"frameon": False, "fontsize": SIZES["tick"], "labelcolor": INK, "handlelength": 1.8}
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, **style)
    return figure


def _queries(n: int) -> str:
    return f"{n:,} quer{'y' if n == 1 else 'ies'}"


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def finish(axes: Axes, title: str, x: str, y: str, legend: Corner | None = None) -> None:
    """Set the titles, grid and colours of a panel; legend: its corner, None for no legend."""
    axes.set_title(title, loc="left", fontsize=SIZES["title"], fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=SIZES["label"], color=INK)
    axes.set_ylabel(y, fontsize=SIZES["label"], color=INK)
    axes.tick_params(labelsize=SIZES["tick"], color=INK, labelcolor=INK, which="both")
    axes.grid(True, which="major", color="#888888", alpha=0.35, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    if legend is not None and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=SIZES["tick"], labelcolor=INK, handlelength=2.6, loc=legend)


def as_png(figure: Figure) -> bytes:
    """Return the figure as a PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def as_svg(figure: Figure, prefix: str = "", *, page: bool = True) -> str:
    """Return the figure as an SVG file or, if page, as an <svg> element.

    The element is transparent, with text and axes in the page's text colour. The same figure gives the same string.
    prefix: added to every id, so that the figures of one page do not clash.
    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.hashsalt": "rankwise", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=page, metadata=nothing)
    text = buffer.getvalue()
    if not page:
        return text
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)  # not needed inside a page
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text).strip()
