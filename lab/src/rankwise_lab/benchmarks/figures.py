"""The paper's two timing figures: one call, as total, negative and positive samples grow; AP above, NDCG below."""

from __future__ import annotations

from dataclasses import dataclass

from rankwise_lab.figures import as_png, finish
from rankwise_lab.measuring import scores
from rankwise_lab.progress import Progress
from rankwise_lab.reproduce.scaling_curves import ROWS, TITLES, axes, plot, time_call


@dataclass(frozen=True)
class Panel:
    """Seconds of one call along one axis: x, and for each curve a list of the same length."""

    loss: str
    axis: str
    x: list[int]
    curves: dict[str, list[float]]


def measure(points: int, repeats: int, largest: int, progress: Progress | None = None) -> list[Panel]:
    """Time every curve of the six panels at `points` sizes each, up to `largest` samples of the kind that grows."""
    bar = Progress() if progress is None else progress
    bar.section("Timing figures", 2 * 3 * points)
    panels = []
    for loss, row in ROWS.items():
        curves = {curve.label: curve for curve in row.values() if curve.tabulated}
        for axis in axes(points, (largest, largest, largest)):
            times: dict[str, list[float]] = {label: [] for label in curves}
            for n_pos, n_neg in axis.sizes:
                bar.step(f"{TITLES[loss]}, P = {n_pos:,}, N = {n_neg:,}")
                for label, seconds in time_call(curves, scores.normal(n_pos, n_neg), repeats).items():
                    times[label].append(seconds)
            panels.append(Panel(TITLES[loss], axis.what, axis.x, times))
    bar.close()
    return panels


def draw(panels: list[Panel]) -> bytes:
    """The six panels as a PNG, with Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.2), layout="constrained")
    grid = figure.subplots(len(TITLES), 3, sharey="row")
    for number, (panel, place) in enumerate(zip(panels, grid.ravel(), strict=True)):
        plot(place, {label: (panel.x, seconds) for label, seconds in panel.curves.items()})
        if number % 3:
            finish(place, "", panel.axis, "")
        else:
            finish(place, f"{panel.loss} loss", panel.axis, "milliseconds per call", "upper left")
    figure.suptitle("One call: loss-augmented inference, value and gradient (one thread, float32 scores)")
    return as_png(figure)
