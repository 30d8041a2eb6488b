"""The paper's two timing figures: one call, as total, negative and positive samples grow; AP above, NDCG below."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.benchmarks.plan import SMALL
from rankwise.measuring import opponents, scores
from rankwise.measuring.timing import Progress, Task, compare

__all__ = ["Panel", "draw", "measure"]

# Negatives in the panels where positives vary, and negatives per positive where the total does.
_FEW_NEGATIVES = 200
_RATIO = 10
# Curves of each row of panels: label → (loss, method); None is the 0-1 hinge.
CURVES: dict[str, dict[str, tuple[str, str] | None]] = {
    "AP": {
        "AP (Yue et al.)": ("ap", "yue"),
        "AP_QS (Algorithm 1)": ("ap", "quicksort"),
        "bucketed (rankwise)": ("ap", "bucketed"),
        "0-1 (NumPy)": None,
    },
    "NDCG": {
        "NDCG (Chakrabarti et al.)": ("ndcg", "chakrabarti"),
        "NDCG_QS (Algorithm 1)": ("ndcg", "quicksort"),
        "bucketed (rankwise)": ("ndcg", "bucketed"),
        "0-1 (NumPy)": None,
    },
}


@dataclass(frozen=True)
class Panel:
    """Seconds of one call along one axis: x, and for each curve a list as long."""

    loss: str
    axis: str
    x: list[int]
    curves: dict[str, list[float]]

    def as_dict(self) -> dict[str, Any]:
        """The panel as plain data."""
        return {"loss": self.loss, "axis": self.axis, "x": self.x, "curves": self.curves}


def measure(points: int, repeats: int, largest: int, progress: Progress | None = None) -> list[Panel]:
    """Time every curve of the six panels at `points` sizes each, up to `largest` samples of the kind that grows."""
    bar = Progress() if progress is None else progress
    bar.section("Timing figures", 2 * 3 * points)
    panels = []
    for loss, curves in CURVES.items():
        for axis, x, sizes in _axes(points, largest):
            times: dict[str, list[float]] = {label: [] for label in curves}
            for n_pos, n_neg in sizes:
                bar.step(f"{loss}, P = {n_pos:,}, N = {n_neg:,}")
                sample = scores.normal(n_pos, n_neg)
                for label, seconds in compare(_tasks(curves, sample), repeats).items():
                    times[label].append(seconds)
            panels.append(Panel(loss, axis, x, times))
    bar.clear()
    return panels


def _axes(points: int, largest: int) -> list[tuple[str, list[int], list[tuple[int, int]]]]:
    """For each column of panels: the name of its axis, the values on it, and (P, N) at each."""
    total = _spread(110, largest, points)
    negatives = _spread(100, largest, points)
    positives = _spread(10, largest, points)
    by_ratio = [(round(n / (1 + _RATIO)), n - round(n / (1 + _RATIO))) for n in total]
    return [
        (f"samples, positive to negative 1:{_RATIO}", total, by_ratio),
        (f"negative samples, {SMALL[0]} positive", negatives, [(SMALL[0], n) for n in negatives]),
        (f"positive samples, {_FEW_NEGATIVES} negative", positives, [(n, _FEW_NEGATIVES) for n in positives]),
    ]


def _spread(first: int, last: int, points: int) -> list[int]:
    return [round(float(n)) for n in np.geomspace(first, last, points)]


def _tasks(curves: dict[str, tuple[str, str] | None], sample: scores.Sample) -> dict[str, Task]:
    return {
        label: opponents.zero_one(sample) if curve is None else opponents.hinge(sample, *curve)
        for label, curve in curves.items()
    }


def draw(panels: list[Panel]) -> bytes:
    """The six panels as a PNG, with Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.2), layout="constrained")
    styles = [("#b2182b", "s", "-"), ("#2166ac", "o", "-"), ("#1b7837", "D", "-"), ("#666666", None, "--")]
    grid = figure.subplots(len(CURVES), 3, sharey="row")
    for panel, axes in zip(panels, grid.ravel(), strict=True):
        for (label, seconds), (colour, marker, line) in zip(panel.curves.items(), styles, strict=True):
            milliseconds = [1e3 * s for s in seconds]
            axes.loglog(panel.x, milliseconds, color=colour, marker=marker, markersize=4, linestyle=line, label=label)
        axes.set_xlabel(panel.axis)
        axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    for row, loss in zip(grid, CURVES, strict=True):
        row[0].set_ylabel("milliseconds per call")
        row[0].set_title(f"{loss} loss", loc="left", fontweight="bold")
        row[0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle("One call: loss-augmented inference, value and gradient (one thread, float32 scores)")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()
