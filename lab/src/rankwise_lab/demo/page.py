"""The page of the demonstration: first what every reader wants, in numbers, images and words, then the mathematics.

Every number in the words is computed, and so is the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.demo.experiment import REPEATS
from rankwise_lab.demo.results import Comparison, Demo, Model, Ranked, as_dict
from rankwise_lab.demo.structured import short, signed, structured
from rankwise_lab.figures import COLOURS, INK, SIZES, draw, finish
from rankwise_lab.report.blocks import Block, Heading, Paragraph, Section, show_figures
from rankwise_lab.report.figure import Drawing, Gallery, Picture, Sheet, draw_each, drawing, ink_png
from rankwise_lab.report.page import page
from rankwise_lab.report.part import Part
from rankwise_lab.report.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_NAME = "demo"
# How many images of the first sheet are in a row, and how many errors and late hits are shown.
_ROW, _FEW = 10, 8
_PANEL = (5.0, 3.9)
# How many errors are told.
_TOLD = 3
# Means that differ by less are the same as they are shown.
_SAME = 5e-5


def as_page(demo: Demo) -> str:
    """Return the whole page: the comparison, then a section about structured SVMs."""
    first, second = front(demo), structured(demo)
    *blocks, _ = first.as_blocks()  # the small print comes once, at the end
    return page(first.title, [*blocks, Section("structured-svms", second.title, second.as_blocks())])


def as_lines(demo: Demo, width: int | None = None) -> list[str]:
    """Return both halves as lines for a terminal. width: at which to wrap sentences."""
    first, second = front(demo, figures=False), structured(demo, figures=False)
    return [*first.as_lines(width), "", second.title, "=" * len(second.title), "", *second.as_lines(width)]


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


def _few(ranked: Ranked, ranks: NDArray[np.intp]) -> list[Picture]:
    """Images with their ranks; errors with their true digit too."""
    images = [_image(ranked, rank) for rank in ranks.tolist()]
    return [
        image._replace(caption=f"{image.caption}\nrank {rank:,}".strip())
        for rank, image in zip(ranks, images, strict=True)
    ]


def _image(ranked: Ranked, rank: int) -> Picture:
    digit = int(ranked.digits[rank - 1])
    wrong = digit != ranked.sought
    label, caption = f"rank {rank}: {an(digit)}", f"{digit}" if wrong else ""
    return Picture(ink_png(ranked.pixels[rank - 1]), label, caption, wrong)


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


def about(demo: Demo) -> str:
    """The task, the models and the metric."""
    ours, baseline, digit = demo.comparison.ours.name, demo.comparison.baseline.name, demo.settings.digit
    return (
        f"The task: find the images of {an(digit)}. A model gives every image a score, and the images are sorted by "
        f"it; the {digit}s should come first. We compare {ours}, which rankwise trains for the order of the list, with "
        f"scikit-learn's {baseline}, which learns each image on its own. Both learn from the same images and are tuned "
        f"alike. Average precision (AP) is the mean precision at each {digit} as you read the list from the top; 1 is "
        "perfect."
    )


def tiles(demo: Demo) -> list[tuple[str, str]]:
    """The most important numbers."""
    both, n = demo.comparison, demo.settings.splits
    ours, baseline, interval = both.ours, both.baseline, both.interval
    between = "one split has no interval"
    if interval.low is not None and interval.high is not None:
        between = f"95 % interval over splits: {signed(interval.low)} to {signed(interval.high)}"
    return [
        (f"{ours.ap.mean():.4f}", f"test AP of {ours.name}, mean of {_splits(n)}"),
        (f"{baseline.ap.mean():.4f}", f"test AP of {baseline.name}, tuned alike"),
        (signed(interval.mean), f"mean gain in AP; {between}"),
        (f"{np.sum(both.gain > 0.0)} of {n}", f"splits on which {ours.name} is ahead"),
        (
            f"{ours.errors.mean():.1f} | {baseline.errors.mean():.1f}",
            f"errors among the first {demo.settings.first} images: {ours.name} | {baseline.name}, means",
        ),
    ]


def lines(demo: Demo) -> list[str]:
    """What the numbers say, and what they do not."""
    both = demo.comparison
    ours, baseline, shown = both.ours, both.baseline, both.shown.number
    first, second = (_first_errors(model, ranked) for model, ranked in both.pairs)
    return [
        _verdict(both),
        f"Not tuned, with C = 1, {baseline.name} has a mean test AP of {both.untuned.ap.mean():.4f}. {ours.name} is "
        f"ahead of that on {np.sum(ours.ap > both.untuned.ap)} of {_splits(demo.settings.splits)} without any tuning.",
        f"The interval tells where the mean gain over all random splits of these {demo.data.n:,} images may lie. The "
        "splits share images, so it does not tell how the models compare on new images: that is less certain.",
        f"Among the first {demo.settings.first} test images, {ours.name} has {ours.errors.mean():.1f} errors and "
        f"{baseline.name} {baseline.errors.mean():.1f}, on average over the splits. An error is an image that is not "
        f"{an(demo.settings.digit)}.",
        f"On split {shown + 1}, whose gain ({signed(both.gain[shown])}) is closest to the mean, the first errors of "
        f"{first}, and those of {second}.",
    ]


def _verdict(both: Comparison) -> str:
    """Who is ahead, if the interval says so."""
    ours, baseline, interval = both.ours.name, both.baseline.name, both.interval
    means = f"{both.ours.ap.mean():.4f} against {both.baseline.ap.mean():.4f}"
    if abs(interval.mean) < _SAME:
        so, joint = f"Both have the same mean test AP ({means})", "and"
    else:
        more = "higher" if interval.mean > 0.0 else "lower"
        so = f"The mean test AP of {ours} is {abs(interval.mean):.4f} {more} than that of {baseline} ({means})"
        joint = "but"
    ahead, behind = int(np.sum(both.gain > 0.0)), int(np.sum(both.gain < 0.0))
    count = f"{ours} is ahead on {ahead} and behind on {behind} of {_splits(both.gain.size)}."
    if interval.low is None or interval.high is None:
        return f"Undecided: one split cannot tell a difference from chance. {so}."
    ends = f"the 95 % interval of the gain, {signed(interval.low)} to {signed(interval.high)},"
    if interval.low > 0.0:
        return f"{ours} ranks better here. {so}, and {ends} lies above 0. {count}"
    if interval.high < 0.0:
        return f"{baseline} ranks better here. {so}, and {ends} lies below 0. {count}"
    return f"The two are level here. {so}, {joint} {ends} contains 0. {count}"


def _first_errors(model: Model, ranked: Ranked) -> str:
    """The ranks of the first errors, and what they show."""
    *others, last = (f"{rank} ({an(int(ranked.digits[rank - 1]))})" for rank in ranked.errors[:_TOLD])
    return f"{model.name} are at ranks {', '.join(others)} and {last}"


def facts(demo: Demo) -> list[str]:
    """The data, the splits, and how both models are tuned."""
    data, settings, both = demo.data, demo.settings, demo.comparison
    Cs = both.baseline.Cs
    return [
        f"Data: scikit-learn's digits, {data.n:,} images of {data.n_features} pixels, of which {data.n_pos} show "
        f"{an(settings.digit)}.",
        f"Splits: {settings.splits} at random. Each trains on {data.n_train:,} images ({data.n_train_pos} of them "
        f"{settings.digit}s) and tests on the other {data.n_test:,} ({data.n_test_pos}).",
        f'{both.ours.name}("ap", cv={settings.folds}) scales the features and tunes itself on the training images. '
        f"For so few it draws its {settings.folds} folds {REPEATS} times.",
        f"{both.baseline.name} follows a StandardScaler. Of {settings.n_baseline_Cs} values of C, it takes the one "
        f"with the highest AP on the training images, by {settings.folds} folds drawn {REPEATS} times too; these C are "
        f"{short(Cs[0])} to {short(Cs[-1])}.",
        "Images are shown smoothly; the models see their pixels. Other tasks gain more or less: docs/training.md tells "
        "what to expect.",
    ]


def an(digit: int) -> str:
    """A digit with its article.

    >>> an(8), an(1)
    ('an 8', 'a 1')
    """
    return f"{'an' if digit == 8 else 'a'} {digit}"


def _splits(n: int) -> str:
    return f"{n} split{'' if n == 1 else 's'}"
