"""The first half of the page: a ranker beside a classifier, in numbers, in images and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise.figures import COLOURS, INK, SIZES, draw, finish
from rankwise_lab.demo.comparison import Ranked
from rankwise_lab.demo.fits import Model
from rankwise_lab.demo.results import Demo, as_dict
from rankwise_lab.demo.words import about, an, facts, lines, signed, tiles
from rankwise_lab.report.blocks import Block, Heading, Paragraph, show_figures
from rankwise_lab.report.figure import Drawing, Gallery, Image, Sheet, draw_each, drawing, ink_png
from rankwise_lab.report.part import Part
from rankwise_lab.report.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["by_split", "front", "sheets"]

_NAME = "demo"
# How many images of the first sheet are in a row, and how many errors and late hits are shown.
_ROW, _FEW = 10, 8
_PANEL = (5.0, 3.9)


def front(demo: Demo, *, figures: bool = True) -> Part:
    """The comparison as it is shown. figures: False if only its text is wanted, which takes no time."""
    digit, (tops, errors, late) = demo.settings.digit, sheets(demo)
    body: list[Block] = [
        Heading("The ranked images"),
        Paragraph(
            f"Test images of split {demo.comparison.shown.number + 1}, the split whose gain is closest to the mean. "
            "Read row by row: the model is surest of the first image. A frame and a cross mark every image that is not "
            f"{an(digit)}, with its true digit below."
        ),
        Gallery(tops),
        Heading("The first errors", 2),
        Gallery(errors),
        Heading(f"The {digit}s found last", 2),
        Gallery(late),
        Heading("Precision, recall and every split"),
        show_figures(_draw(demo) if figures else {}, *_told(demo)),
        by_split(demo),
    ]
    return Part(
        _NAME,
        f"rankwise: finding the {digit}s among handwritten digits",
        about(demo),
        as_dict(demo),
        lines(demo),
        body,
        facts(demo),
        tiles=tiles(demo),
        checks=demo.comparison_checks,
        command="rankwise",
    )


def sheets(demo: Demo) -> tuple[list[Sheet], list[Sheet], list[Sheet]]:
    """Of both models: the top of the list, its first errors, and the images found last."""
    pairs, digit, first = demo.comparison.pairs, demo.settings.digit, demo.settings.first
    among = f"among the {demo.data.n_test:,} test images"
    return (
        [_top(model, ranked, first) for model, ranked in pairs],
        [
            Sheet(f"{model.name}: first errors", f"True digit and rank {among}.", _few(ranked, ranked.errors[:_FEW]))
            for model, ranked in pairs
        ],
        [
            Sheet(f"{model.name}: last {digit}s", f"Rank {among}.", _few(ranked, ranked.hits[-_FEW:]))
            for model, ranked in pairs
        ],
    )


def _top(model: Model, ranked: Ranked, first: int) -> Sheet:
    """The first images of a list; errors with their true digit."""
    images = [_image(ranked, rank) for rank in range(1, first + 1)]
    wrong = [rank for rank, image in enumerate(images, 1) if image.wrong]
    said = f"{len(wrong)} of them are errors; the first is at rank {wrong[0]}." if wrong else "None is an error."
    return Sheet(f"{model.name}: first {first} images", said, images, per_row=_ROW)


def _few(ranked: Ranked, ranks: NDArray[np.intp]) -> list[Image]:
    """Images with their ranks; errors with their true digit too."""
    images = [_image(ranked, rank) for rank in ranks.tolist()]
    return [
        image._replace(caption=f"{image.caption}\nrank {rank:,}".strip())
        for rank, image in zip(ranks, images, strict=True)
    ]


def _image(ranked: Ranked, rank: int) -> Image:
    digit = int(ranked.digits[rank - 1])
    wrong = digit != ranked.sought
    label, caption = f"rank {rank}: {an(digit)}", f"{digit}" if wrong else ""
    return Image(ink_png(ranked.pixels[rank - 1]), label, caption, wrong)


def _draw(demo: Demo) -> dict[str, Drawing]:
    return {
        "compared": drawing(draw(demo.comparison.shown.curves, {}), f"{_NAME}-compared-"),
        **draw_each(_NAME, _PANEL, {"splits": lambda axes: _paint_splits(axes, demo)}),
    }


def _paint_splits(axes: Axes, demo: Demo) -> None:
    """A row for each split and one for the mean: both test APs, joined by a line."""
    both = demo.comparison
    ours, baseline = (np.append(model.ap, model.ap.mean()) for model in (both.ours, both.baseline))
    places = np.append(np.arange(both.gain.size), both.gain.size + 0.4)
    axes.hlines(places, np.minimum(ours, baseline), np.maximum(ours, baseline), color="#808080", linewidth=2.0)
    for model, values, marker, colour in ((both.ours, ours, "o", 0), (both.baseline, baseline, "D", 1)):
        axes.plot(values, places, marker, color=COLOURS[colour], markersize=8.0 - colour, label=model.name)
    axes.axhline(both.gain.size - 0.3, color=INK, linewidth=0.6)
    axes.set_yticks(places, [*(f"{number}" for number in range(1, both.gain.size + 1)), "mean"])
    axes.set_ylim(places[-1] + 0.6, -0.6)
    axes.margins(x=0.08)
    finish(axes, "Test AP by split", "test AP", "split")
    axes.legend(
        frameon=False, fontsize=SIZES["tick"], labelcolor=INK, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2
    )


def _told(demo: Demo) -> list[tuple[str, str, str]]:
    """Of each figure, the name, the label and the caption."""
    both = demo.comparison
    values = ", ".join(f"{curve.name} {curve.ap:.3f}" for curve in both.shown.curves)
    gains = ", ".join(map(signed, both.gain))
    return [
        (
            "compared",
            f"Precision against recall on the test images of split {both.shown.number + 1}. AP: {values}.",
            f"Test images of split {both.shown.number + 1}. Recall is the share of the {demo.settings.digit}s that are "
            f"found so far, precision the share of {demo.settings.digit}s among the images so far. AP is the area "
            "under a curve.",
        ),
        (
            "splits",
            f"Test AP of both models on each split. Gain of {both.ours.name} by split: {gains}.",
            "The two marks of a row are the two models on the same split; the line between them is the gain or loss.",
        ),
    ]


def by_split(demo: Demo) -> Table:
    """A row for each split, then the means."""
    both = demo.comparison
    columns = ["split", "AP, ours", "AP, baseline", "gain", "errors, ours", "errors, baseline"]
    numbers = np.column_stack([both.ours.ap, both.baseline.ap, both.gain, both.ours.errors, both.baseline.errors])
    rows = [_row(f"{number}", row, 0) for number, row in enumerate(numbers, 1)]
    title = f"{both.ours.name} (ours) and {both.baseline.name} (baseline) by split"
    said = f"AP on test images, and errors among the first {demo.settings.first} of them."
    return Table(title, columns, [*rows, _row("mean", numbers.mean(axis=0), 1)], 1, said)


def _row(name: str, numbers: NDArray[np.float64], digits: int) -> list[str]:
    ours, baseline, gain, *errors = numbers.tolist()
    return [name, f"{ours:.4f}", f"{baseline:.4f}", signed(gain), *(f"{one:.{digits}f}" for one in errors)]
