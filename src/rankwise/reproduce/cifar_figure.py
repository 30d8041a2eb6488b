"""How the objective falls while LW-SVM trains: F against seconds, a figure a loss, a line a seed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from rankwise.reproduce.cifar_results import SHOWN

__all__ = ["FORMATS", "draw"]

FORMATS = ("png", "svg")
# Inches of a figure and points of its text: legible when it is as wide as a phone.
_SIZE = (5.0, 3.9)
_SIZES = {"title": 13.0, "label": 12.0, "tick": 11.0}
# Okabe and Ito's colours, for any kind of sight.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_NOTHING = {"png": {"Software": None}, "svg": dict.fromkeys(("Creator", "Date", "Format", "Type"))}


def draw(found: Mapping[str, Any]) -> dict[str, dict[str, bytes]]:
    """By loss, the figure in every format; nothing if Matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError:
        return {}
    return {loss: _drawn(found, loss) for loss in found["plan"]["losses"]}


def _drawn(found: Mapping[str, Any], loss: str) -> dict[str, bytes]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    for k, seed in enumerate(found["seeds"]):
        seconds, values = zip(*seed["losses"][loss]["curve"], strict=True)
        colour = _COLOURS[k % len(_COLOURS)]
        axes.plot(seconds, values, color=colour, marker="o", markersize=3, linewidth=1.6, label=f"seed {seed['seed']}")
    axes.set_title(f"Training objective, {SHOWN[loss]}", loc="left", fontsize=_SIZES["title"], fontweight="bold")
    axes.set_xlabel("seconds of LW-SVM", fontsize=_SIZES["label"])
    axes.set_ylabel("F", fontsize=_SIZES["label"])
    axes.tick_params(labelsize=_SIZES["tick"])
    axes.grid(True, color="#888888", alpha=0.35, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=_SIZES["tick"], loc="upper right")
    images = {}
    for form in FORMATS:
        buffer = io.BytesIO()
        with rc_context({"svg.hashsalt": "rankwise", "svg.fonttype": "path"}):
            figure.savefig(buffer, format=form, dpi=150, metadata=_NOTHING[form])
        images[form] = buffer.getvalue()
    return images
