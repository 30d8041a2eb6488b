"""Figures of rankers: precision and recall, and convergence; the style of all figures."""

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

# Font sizes in points: readable when a panel of 5 inches is as wide as a phone.
SIZES = {"title": 13.0, "label": 12.0, "tick": 11.0}
# The colour of text and axes (in an SVG, the reader's text colour), and the colour-blind-safe colours of Okabe and Ito.
# The blue is a little lighter, so that all show on white and on black.
INK = "#1b1c1d"
COLOURS = ("#1a80c4", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
Corner = Literal["best", "upper left", "upper right", "lower left", "lower right", "center right"]

_PANEL = (5.0, 3.9)  # size in inches
_LINES = ("-", "--", "-.", (0, (1, 1.2)))


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
