"""The experiment on ten classes as a part of the report: Tables 3 and 4, paired tests, and a figure of gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise_lab.figures import COLOURS, INK, SIZES, finish
from rankwise_lab.intervals import LEVEL
from rankwise_lab.measuring.machine import describe
from rankwise_lab.report.blocks import Block, Heading, Paragraph, show_figures
from rankwise_lab.report.claims import Claim, gain_claim
from rankwise_lab.report.figure import NO_FIGURES, Drawing, draw_each
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action_results as results
from rankwise_lab.reproduce.action import MEASURES, ActionExperiment, Plan
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.beside import LOSSES, TITLES, about_data, data_tags
from rankwise_lab.reproduce.thumbnails import Gain, draw_gains

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = "action"
# The most choices of C that a sentence names.
_NAMED = 4

_WHAT = (
    "Section 4.1 of the paper: a linear model ranks the samples of each class. It is trained for 0-1 loss and for the "
    "measure's own loss (AP or NDCG); everything else is the same."
)


def make_part(data: ActionData, out: Path, plan: Plan, say: Callable[[str], None]) -> Part:
    """Run what is not finished, and make the part. Pieces are kept in out / "action"."""
    found = results.document(ActionExperiment(data, out / _NAME, plan, say), describe())
    figures = draw(found)
    published: list[Block] = (
        []
        if results.same_classes(found)
        else [Heading("The paper's classes", said="its own numbers"), results.paper_table()]
    )
    body = [
        *_data(found),
        Heading("Tables 3 and 4: by class", said="test AP and NDCG for each loss"),
        *(results.measure_table(found, metric) for metric in results.PAPER),
        *map(Paragraph, _about(found)),
        Heading("Gains over 0-1 loss", said="by class, with intervals and paired tests"),
        show_figures(figures, ("differences", *_figure(found))),
        results.tests_table(found),
        Paragraph(
            "These tests treat classes as the sample: they ask whether another class would gain too. Wilcoxon's test "
            "assumes no distribution. The paper's own numbers go through the same tests."
        ),
        *published,
        Heading("C by cross-validation", said="the values that were chosen"),
        results.choices_table(found),
    ]
    lines = conclusions(found) + ([] if figures else [NO_FIGURES])
    return Part(
        _NAME,
        TITLES[_NAME],
        _WHAT,
        found,
        lines,
        body,
        facts(found),
        results.as_csv(found),
        _tiles(found),
        claims=claims(found),
        thumbnail=draw_gains(
            _NAME, [Gain(f"{metric.upper()} loss", *_gain(found, metric)) for metric in results.PAPER]
        ),
        tags=data_tags(found["data"]["stand_in"]),
    )


def _gain(found: Mapping[str, Any], metric: str) -> tuple[float, list[float], float]:
    """The mean gain of the measure's own loss in points, its interval, and the paper's."""
    means, theirs = found["mean"][metric], results.PAPER_MEANS[metric]
    ends = [100.0 * end for end in found["difference"][metric]["mean"]]
    return 100.0 * (means[metric] - means["zero-one"]), ends, theirs[1] - theirs[0]


def claims(found: Mapping[str, Any]) -> list[Claim]:
    """The paper's claims on test quality, with their verdicts."""
    made = []
    for metric in results.PAPER:
        text = f"{LOSSES[metric]} gains test {metric.upper()} over 0-1 loss"
        made.append(gain_claim(text, *_gain(found, metric), "test samples"))
        test, theirs = found["tests"][metric]["ours"], found["tests"][metric]["paper"]
        shown, paper = (f"{one['better']} of {one['classes']}" for one in (test, theirs))
        criterion = "Its test value is higher in more than half of the classes."
        text = f"{LOSSES[metric]} is better in most classes"
        made.append(Claim(text, shown, paper, criterion, 2 * test["better"] > test["classes"]))
    return made


def _data(found: Mapping[str, Any]) -> list[Block]:
    data = found["data"]
    other = Paragraph(
        "Samples and features differ from the paper's. Do not compare the numbers themselves with the paper's; compare "
        "which loss is better, and by how much."
    )
    return [about_data(data["what"], data["stand_in"]), *([other] if data["stand_in"] else [])]


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    tiles = []
    for metric, (first, second) in results.PAPER_MEANS.items():
        values = " | ".join(f"{100.0 * found['mean'][metric][loss]:.1f} %" for loss in ("zero-one", metric))
        what = f"mean test {metric.upper()} for 0-1 loss and {LOSSES[metric]} (paper: {first:.1f} and {second:.1f})"
        tiles.append((values, what))
    return tiles


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """State what the numbers say, in sentences."""
    lines = [_verdict(found, metric) for metric in results.PAPER]
    lines += [_tested(found, metric) for metric in results.PAPER]
    edges = [
        f"{part['class']} ({LOSSES[loss]} by {metric.upper()})"
        for part in found["classes"]
        for loss, metrics in MEASURES.items()
        for metric in metrics
        if part[loss][metric]["at_edge"]
    ]
    if edges:
        many = f"{len(edges)} of the choices, marked in the table of C"
        which = ", ".join(edges) if len(edges) <= _NAMED else many
        lines.append(f"The best C is at the end of its grid, so a better one may lie beyond, for {which}.")
    return lines


def _verdict(found: Mapping[str, Any], metric: str) -> str:
    """State the mean difference, with its uncertainty over test samples."""
    low, high = (100.0 * end for end in found["difference"][metric]["mean"])
    zero_one, own = (100.0 * found["mean"][metric][loss] for loss in ("zero-one", metric))
    test, name = found["tests"][metric]["ours"], LOSSES[metric]
    theirs = results.PAPER_MEANS[metric][1] - results.PAPER_MEANS[metric][0]
    verdict = (
        f"{name} is better beyond chance, as in the paper"
        if low > 0.0
        else "0-1 loss is better beyond chance, unlike in the paper"
        if high < 0.0
        else "this is within chance, so the test samples do not separate the losses"
    )
    return (
        f"Mean test {metric.upper()}: {own:.2f} % for {name} and {zero_one:.2f} % for 0-1 loss. {name} is better in "
        f"{test['better']} of {test['classes']} classes. The mean difference is {own - zero_one:+.2f} ({low:+.2f} "
        f"to {high:+.2f}; paper: {theirs:+.2f}): {verdict}."
    )


def _tested(found: Mapping[str, Any], metric: str) -> str:
    """State the paired tests over classes."""
    both = found["tests"][metric]
    name = metric.upper()
    if both["ours"]["p_t"] is None:
        return f"{name}, tested over classes: there are too few classes, or all differ by the same amount."
    said = {}
    for whose, test in both.items():
        passed = [test[key] < results.SIGNIFICANT for key in ("p_t", "p_w")]
        verdict = (
            "beyond chance" if all(passed) else "beyond chance by one test only" if any(passed) else "within chance"
        )
        said[whose] = f"p = {test['p_t']:.2g} (Student) and {test['p_w']:.2g} (Wilcoxon), {verdict}"
    return f"{name}, tested over classes: {said['ours']}; the paper's own numbers: {said['paper']}."


def _about(found: Mapping[str, Any]) -> list[str]:
    return [
        f"Intervals are for the difference. Test samples are redrawn {found['difference']['draws']:,} times, in the "
        "same way for both losses and all classes.",
        "The caption of the paper's Table 4 says that its numbers are means over five validation folds; the text says "
        "test. Ours are on test. The means of the folds are in the table of C.",
    ]


def _figure(found: Mapping[str, Any]) -> tuple[str, str]:
    """Return its label and its caption."""
    label = "Points by which AP loss and NDCG loss are better than 0-1 loss, by class, with intervals"
    caption = (
        f"Right of 0, the measure's own loss is better than 0-1 loss. Lines are {found['difference']['level']:.0%} "
        "intervals over test samples. Hollow: the mean of the paper's classes."
    )
    return label, caption


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """Draw the gains by class, with intervals; nothing if Matplotlib is not installed."""
    inches = 5.0, 1.5 + 0.42 * (len(found["data"]["classes"]) + 2)
    return draw_each(_NAME, inches, {"differences": partial(_paint, found)})


def _paint(found: Mapping[str, Any], axes: Axes) -> None:
    classes = found["data"]["classes"]
    names = [*classes, "mean", "paper, mean"]
    axes.axvline(0.0, color=INK, linewidth=1.0)
    axes.axhline(len(classes) - 0.5, color="#888888", linewidth=0.8)
    for metric, colour, shift, marker in zip(results.PAPER, COLOURS, (-0.16, 0.16), ("o", "s"), strict=False):
        means, intervals = found["mean"][metric], found["difference"][metric]
        values = [part[metric][metric]["test"] - part["zero-one"][metric]["test"] for part in found["classes"]]
        values = [100.0 * value for value in (*values, means[metric] - means["zero-one"])]
        ends = [[100.0 * end for end in pair] for pair in (*intervals["classes"].values(), intervals["mean"])]
        places = [row + shift for row in range(len(names))]
        axes.hlines(places[:-1], *zip(*ends, strict=True), color=colour, linewidth=1.8)
        axes.plot(values, places[:-1], marker, color=colour, markersize=6, label=metric.upper())
        theirs = results.PAPER_MEANS[metric][1] - results.PAPER_MEANS[metric][0]
        axes.plot([theirs], places[-1:], marker, markersize=7, markerfacecolor="none", markeredgecolor=colour)
    axes.set_yticks(range(len(names)), names, parse_math=False)  # a name may have a $
    axes.invert_yaxis()
    finish(axes, "Gain over 0-1 loss", "points of the measure, on test", "")
    axes.figure.legend(frameon=False, fontsize=SIZES["tick"], labelcolor=INK, ncols=2, loc="outside lower center")


def facts(found: Mapping[str, Any]) -> list[str]:
    """Say how it was done."""
    data, plan = found["data"], found["plan"]
    samples = data["samples"]
    ends = ["between 10^{:g} and 10^{:g}".format(*plan[key]) for key in ("ends", "ends_zero_one")]
    lines = [
        f"Data: {samples['train']:,} training and {samples['test']:,} test samples, {data['features']:,} features, "
        f"{len(data['classes'])} classes.",
        f"C: one of {plan['Cs']} values {ends[0]} (0-1 loss: {ends[1]}) times the natural C. The value with the "
        f"highest mean over {plan['folds']} folds of the training samples is chosen, by the measure that is then "
        "reported. The natural C, 1/‖slope of the risk at 0‖², follows the scale of the features.",
        f"All problems are solved to a relative duality gap of {plan['tol']:g}. 0-1 loss learns an intercept, which "
        "does not change any ranking.",
        f"Intervals: {LEVEL:.0%}, percentiles of the bootstrap.",
    ]
    gaps = [part[loss][metric]["gap"] for part in found["classes"] for loss, ms in MEASURES.items() for metric in ms]
    lines.append(f"The largest gap of a model that was tested: {max(gaps):.1e}.")
    if data["left_out"]:
        lines.append(f"Left out, with fewer positives or negatives than folds: {', '.join(data['left_out'])}.")
    return lines
