"""How the objective falls while LW-SVM trains: F against seconds, a figure a loss, a line a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankwise.figures import COLOURS, finish
from rankwise_lab.report.figure import Drawing, drawing, have_matplotlib
from rankwise_lab.reproduce.names import LOSSES

__all__ = ["draw"]

# Inches of a figure.
_SIZE = (5.0, 3.9)


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """A figure a loss, by its name as a file; nothing if Matplotlib is not installed."""
    if not have_matplotlib():
        return {}
    return {f"objective-{loss}": _drawn(found, loss) for loss in found["plan"]["losses"]}


def _drawn(found: Mapping[str, Any], loss: str) -> Drawing:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    for k, seed in enumerate(found["seeds"]):
        seconds, values = zip(*seed["losses"][loss]["curve"], strict=True)
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(seconds, values, color=colour, marker="o", markersize=3, linewidth=1.6, label=f"seed {seed['seed']}")
    finish(axes, f"Training objective, {LOSSES[loss]}", "seconds of LW-SVM", "F", "upper right")
    return drawing(figure, f"cifar-{loss}-")
