"""The second half of the page: structured SVMs, as in the paper, with certified gaps and the time in inference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.demo.results import Demo, Model, Race, as_dict
from rankwise_lab.figures import draw
from rankwise_lab.report.blocks import Block, Heading, Paragraph, show_figures
from rankwise_lab.report.figure import Drawing, drawing
from rankwise_lab.report.part import Part
from rankwise_lab.report.table import Table

_NAME, _TITLE = "demo", "Structured SVMs, as in the paper"
_NONE = "–"
_ABOUT = (
    "For those who want the mathematics. A structured SVM (RankSVM) is trained for a loss of the whole ranking: AP or "
    "NDCG, which both ask how far up the positives are. The 0-1 loss stands beside them; it only asks whether each "
    "image is on its side of a threshold. Each step of training searches for the most violating ranking; this search "
    "is called inference, and we time several methods for it. The splits are those of above; the pixels are not scaled."
)
_TRAINING = (
    "Training minimises ½‖w‖² + C·J. J, the structured hinge, is a convex bound: it is never less than the loss on the "
    "training images. The gap, (primal − dual)/primal, proves how far at most the objective is above its minimum. "
    "Planes are the rankings that support the model in the end."
)


def structured(demo: Demo, *, figures: bool = True) -> Part:
    """Structured SVMs and the race of methods as they are shown. figures: False if only the text is wanted."""
    body: list[Block] = [
        Heading("How well they rank"),
        quality(demo),
        show_figures(_draw(demo) if figures else {}, *_told(demo)),
        Paragraph(_TRAINING),
        Heading("Time in inference"),
        *map(inference, demo.races),
    ]
    said = [*about_quality(demo), *about_inference(demo)]
    checks = demo.structured_checks
    return Part(_NAME, _TITLE, _ABOUT, as_dict(demo), said, body, facts(demo), checks=checks, command="rankwise")


def _draw(demo: Demo) -> dict[str, Drawing]:
    return {
        "curves": drawing(draw(demo.curves, {}), f"{_NAME}-curves-"),
        "gaps": drawing(draw([], demo.histories, demo.settings.tol), f"{_NAME}-gaps-"),
    }


def _told(demo: Demo) -> list[tuple[str, str, str]]:
    """Of each figure, the name, the label and the caption."""
    values = ", ".join(f"{curve.name} {curve.ap:.3f}" for curve in demo.curves)
    steps = ", ".join(f"{name} {len(history['gap'])}" for name, history in demo.histories.items())
    split = f"split {demo.comparison.shown.number + 1}"
    return [
        (
            "curves",
            f"Precision against recall of structured SVMs on the test images of {split}. AP: {values}.",
            f"Test images of {split}, which is shown above. The area under a curve is its AP.",
        ),
        (
            "gaps",
            f"Relative duality gap by iteration of the last fit on {split}. Iterations: {steps}.",
            f"The gap on {split}, at the C that was chosen. Training stops at the dashed line.",
        ),
    ]


def facts(demo: Demo) -> list[str]:
    """How C is chosen, and on what methods were timed."""
    data, settings = demo.data, demo.settings
    return [
        f"C of every structured SVM: of {settings.n_Cs} values, the one with the highest AP in {settings.folds}-fold "
        "cross-validation on the training images.",
        f"Time: the same model (same images, loss and C) is trained with each method of inference, on all {data.n:,} "
        f"images ({data.n_pos} positive, {data.n - data.n_pos:,} negative), and the fit's own clock is read: the best "
        f"of {settings.fits} fits, one thread. A call finds the most violating ranking, J and the gradient. quicksort "
        "is Algorithm 1 of Mohapatra et al. (2018); mohapatra2014, yue (2007) and chakrabarti (2008) came before it.",
    ]


def quality(demo: Demo) -> Table:
    """A row for each loss and one for the baseline: test scores, and how training ended."""
    columns = ["model", "test AP", "test NDCG", "C", "largest gap", "iterations", "planes"]
    models = [*demo.models, replace(demo.comparison.baseline, name="logistic regression")]
    return Table("Test quality, mean ± standard deviation over the splits", columns, [_row(m) for m in models])


def _row(model: Model) -> list[str]:
    ends = [_NONE, _NONE, _NONE]
    if model.certificates:
        gap = max(one.gap for one in model.certificates)
        iterations = np.mean([one.n_iter for one in model.certificates])
        planes = np.mean([one.planes for one in model.certificates])
        ends = [f"{gap:.1e}", f"{iterations:.0f}", f"{planes:.0f}"]
    Cs = model.Cs
    span = short(Cs[0]) if Cs[0] == Cs[-1] else f"{short(Cs[0])} to {short(Cs[-1])}"
    return [model.name, _spread(model.ap), _spread(model.ndcg), span, *ends]


def about_quality(demo: Demo) -> list[str]:
    """What the test scores say, and what they do not."""
    baseline, n = demo.comparison.baseline, demo.settings.splits
    differences = [(model.name, model.ap - baseline.ap) for model in demo.models]
    parts = [f"{signed(d.mean())} with {name} (ahead on {np.sum(d > 0)} of {n} splits)" for name, d in differences]
    first, *others = sorted(demo.models, key=lambda model: -float(model.ap.mean()))
    leads = int(np.sum(first.ap > np.max([model.ap for model in others], axis=0)))
    span = first.ap.mean() - others[-1].ap.mean()
    usual = np.mean([model.ap.std() for model in demo.models])
    if leads == n:
        verdict = f"{first.name} has the highest AP on every split."
    else:
        verdict = (
            f"{first.name} has the highest mean AP, but is ahead of the other losses on only {leads} of {n} splits: on "
            "this task the losses are about level."
        )
    return [
        f"Test AP against {baseline.name} on the same splits, on average: {', '.join(parts)}.",
        f"The means of the losses lie within {span:.4f} of each other; one model varies by {usual:.4f} (standard "
        f"deviation) from split to split. {verdict}",
    ]


def inference(race: Race) -> Table:
    """A row for each method: the time that one training spent in it."""
    columns = ["method", "calls", "in inference", "per call", "ratio", "whole fit", "objective"]
    rows = [
        [
            _method(one.method),
            f"{one.calls}",
            f"{1e3 * one.inference:.2f} ms",
            f"{1e6 * one.per_call:,.0f} µs",
            f"{race.ratio(one):.2f}x" if len(race.timed) > 1 else _NONE,
            f"{1e3 * one.total:.0f} ms",
            f"{one.objective:.6g}",
        ]
        for one in race.timed
    ]
    return Table(f"Time in inference: {race.name}, C = {short(race.C)}", columns, rows)


def _method(name: str) -> str:
    """As it is shown; the 0-1 loss is only ever evaluated by "auto", and finds no ranking."""
    return {"auto": "no ranking", "bucketed": "bucketed (ours)"}.get(name, name)


def about_inference(demo: Demo) -> list[str]:
    """How much longer the other methods take."""
    text = []
    for race in demo.races:
        if len(race.timed) > 1:
            ours, slowest = race.timed[0], max(race.timed[1:], key=race.ratio)
            ratios = ", ".join(f"{race.ratio(one):.1f} times for {one.method}" for one in race.timed[1:])
            text.append(
                f"{race.name}: the time in inference over that of {ours.method} is {ratios}. Inference is "
                f"{ours.inference / ours.total:.0%} of a fit with {ours.method} and "
                f"{slowest.inference / slowest.total:.0%} with {slowest.method}; the rest is products with the "
                "features and the solver's own work."
            )
        else:
            (alone,) = race.timed
            against = [
                f"{other.timed[0].per_call / alone.per_call:.1f} ({other.name})"
                for other in demo.races
                if other is not race
            ]
            text.append(
                f"{race.name}: no ranking is sought; its calls go through the same function, checks of the input "
                f"included. One call of ours takes {' and '.join(against)} times as long."
            )
    return text


def _spread(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.4f} ± {values.std():.4f}"


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
