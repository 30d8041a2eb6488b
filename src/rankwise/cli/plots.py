"""Figures of trained rankers: precision against recall, and how the duality gap closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.reproduce.drawing import COLOURS, INK, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curve", "curve_of", "draw"]

# Inches of a panel.
_PANEL = (5.0, 3.9)
_LINES = ("-", "--", "-.", (0, (1, 1.2)))


class Curve(NamedTuple):
    """Precision and recall at falling thresholds, from the lowest up as scikit-learn has them, and the area, AP."""

    name: str
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    ap: float


def curve_of(name: str, scores: ArrayLike, relevant: ArrayLike) -> Curve:
    """The precision-recall curve of scores (n,); thresholds that find no further positive are left out."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(relevant, scores, drop_intermediate=True)
    return Curve(name, precision, recall, float(average_precision_score(relevant, scores)))


def draw(
    curves: Sequence[Curve], histories: Mapping[str, Mapping[str, NDArray[Any]]], tol: float | None = None
) -> Figure:
    """A panel of the curves and a panel of the histories' gaps by iteration; one alone if the other has nothing.

    histories: by model, as `RankSVM.history_`. tol: the gap at which training stops, drawn as a line. A name has the
    same colour in both panels.
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
    figure.set_layout_engine("none")  # laid out once: every further pass would move things a little
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
        shown = np.where(gap > 0.0, gap, np.nan)  # a gap of 0 has no place on a scale of logarithms
        axes.plot(history["iteration"], shown, label=name, **styles[name])
    axes.set_yscale("log")
    if tol is not None:
        axes.axhline(tol, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label=f"tol = {tol:g}")
    finish(axes, "Convergence", "iteration", "relative duality gap", "upper right")
