"""What the ranker and the baseline are found to do, in words: every number is computed, and so is the verdict."""

from __future__ import annotations

import numpy as np

from rankwise_lab.demo.comparison import Comparison, Ranked
from rankwise_lab.demo.contenders import REPEATS
from rankwise_lab.demo.fits import Model
from rankwise_lab.demo.results import Demo

__all__ = ["about", "an", "facts", "lines", "short", "signed", "tiles"]

# How many errors are told.
_TOLD = 3
# Means that differ by less are the same as they are shown.
_SAME = 5e-5


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


def signed(value: float) -> str:
    """A difference, with a sign as wide as a digit.

    >>> signed(-0.01234)
    '−0.0123'
    """
    return f"{value:+.4f}".replace("-", "−")


def short(value: float) -> str:
    """A number of any size, to two digits.

    >>> short(12345.6), short(0.0631)
    ('12,346', '0.063')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _splits(n: int) -> str:
    return f"{n} split{'' if n == 1 else 's'}"
