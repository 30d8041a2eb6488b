"""The timing of inference as a part of the report: Tables 1 and 2, quotients, and a figure of time by call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rankwise.figures import COLOURS, INK, SIZES, finish
from rankwise_lab.measuring.machine import describe
from rankwise_lab.report.blocks import Heading, Paragraph, show_figures
from rankwise_lab.report.figure import NO_FIGURES, Drawing, draw_each
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action
from rankwise_lab.reproduce import timing_results as results
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.beside import TITLES, about_data
from rankwise_lab.reproduce.timing import METHODS, ROUNDS, Plan, TimingExperiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["conclusions", "draw", "facts", "make_part"]

_NAME = "timing"
# Letters of a label before it goes on in the next line.
_WIDTH = 20
_COLOUR = {"zero-one": COLOURS[6], "ap": COLOURS[0], "ndcg": COLOURS[1]}

_WHAT = (
    "Section 4.1 of the paper: the time that loss-augmented inference takes while a linear model is trained "
    "for 0-1, AP and NDCG loss, by method. Every method is exact; they differ in time alone."
)


def make_part(data: ActionData, out: Path, plan: Plan, action_plan: action.Plan, say: Callable[[str], None]) -> Part:
    """Run what is not finished, and put it all together; parts are kept in out / "timing", and C in out / "action"."""
    chosen = action.ActionExperiment(data, out / "action", action_plan, say)
    found = results.document(TimingExperiment(chosen, out / _NAME, plan, say), describe())
    figures = draw(found)
    body = [
        about_data(data.what, data.stand_in),
        Heading("Tables 1 and 2"),
        results.table1(found),
        results.table2(found),
        show_figures(figures, ("calls", *_FIGURE)),
        Heading("How many times faster"),
        results.faster_table(found),
        *map(Paragraph, _ABOUT),
        Heading("By class"),
        results.classes_table(found),
    ]
    lines = conclusions(found) + ([] if figures else [NO_FIGURES])
    return Part(_NAME, TITLES[_NAME], _WHAT, found, lines, body, facts(found), results.as_csv(found), _tiles(found))


_FIGURE = (
    "Milliseconds a call of inference by method, ours as bars and the paper's as hollow diamonds",
    "Bars: ours in training, the mean over classes; dots: replayed. Diamonds: the paper's, on another machine.",
)
_ABOUT = (
    "The paper's times are of another machine and of a program that is not public; only quotients can be compared. The "
    "paper's quotients are those of its Tables 1 and 2, and of the time it names for Mohapatra et al. 2014.",
    "Between two calls, training reads all features. A call then takes longer than when it follows another, by some "
    "tenths of a millisecond for every method, be it ever so fast: cold caches are the likely cause. So quotients are "
    "lower in training. Replayed: the very scores of a training's calls, one call after the other, with nothing in "
    "between.",
    "Of Mohapatra et al. 2014 the paper says that its own method is “around 3 times faster”; its figures, 0.0985 s and "
    "0.0625 s, make that 1.6 times.",
    "Chakrabarti et al. as published: a logarithm is taken at each step of the search. Tabulated: the discounts are "
    "looked up, as in all our own methods.",
)


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    tiles = []
    for one in (results.QUOTIENTS[0], results.QUOTIENTS[1], results.QUOTIENTS[4], results.QUOTIENTS[5]):
        part = found["faster"][one.name]
        theirs = "" if part["paper_total"] is None else f" (paper: {part['paper_total']:.1f})"
        tiles.append((f"{part['total']:.1f} ×", f"{one.name}, in training{theirs}; {part['replayed']:.1f} × replayed"))
    return tiles


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """What the numbers say, whichever way they fall."""
    faster = {(one.slow, one.fast): found["faster"][one.name] for one in results.QUOTIENTS}
    return [
        _aimed("AP_QS", "Yue et al.", faster["ap", "ap_qs"], found),
        _aimed("NDCG_QS", "Chakrabarti et al. as published", faster["ndcg", "ndcg_qs"], found),
        _aimed("NDCG_QS", "Chakrabarti et al. with tabulated discounts", faster["ndcg_tabulated", "ndcg_qs"], found),
        f"AP_QS over a training: {_times(faster['ap_2014', 'ap_qs']['total'])} Mohapatra et al. 2014 (paper: 1.6 by "
        "its figures, “around 3” in its words).",
        f"Our engine over a training: {_times(faster['ap', 'ap_bucketed']['total'])} Yue et al. for AP loss, "
        f"{_times(faster['ndcg', 'ndcg_bucketed']['total'])} Chakrabarti et al. as published for NDCG loss; replayed, "
        f"{faster['ap', 'ap_bucketed']['replayed']:.1f} and {faster['ndcg', 'ndcg_bucketed']['replayed']:.1f} times.",
        _against_zero_one(found),
        *(_agreed(found, loss) for loss in ("ap", "ndcg")),
    ]


def _times(quotient: float) -> str:
    """In words, how many times faster; within 5 %, as fast."""
    if abs(quotient - 1.0) <= 0.05:
        return "as fast as"
    return f"{quotient:.1f} times faster than" if quotient > 1.0 else f"{1.0 / quotient:.1f} times slower than"


def _aimed(name: str, other: str, part: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    paper = (
        "" if part["paper_total"] is None else f" (paper: {part['paper_total']:.1f} and {part['paper_per_call']:.1f})"
    )
    aims = {what: results.verdict(found, part, what) for what in ("total", "replayed")}
    judged = (
        aims["total"] if aims["total"].startswith("for") else "{total} in training, {replayed} replayed".format(**aims)
    )
    return (
        f"{other} takes {part['total']:.1f} times as long as {name} over a training and {part['per_call']:.1f} times "
        f"by call{paper}; replayed, its calls take {part['replayed']:.1f} times as long. Aim: at least "
        f"{part['least']:g}, {judged}."
    )


def _against_zero_one(found: Mapping[str, Any]) -> str:
    means = found["mean"]
    calls = ", ".join(f"{means[key]['per_call']:.2f} ms for {what}" for key, what in _BESIDE.items())
    totals = ", ".join(f"{1e3 * means[key]['total']:.1f} ms for {what}" for key, what in _BESIDE.items())
    slower = [what for key, what in _BESIDE.items() if means[key]["total"] < means["zero_one"]["total"]]
    told = f"0-1 loss takes longer than {' and '.join(slower)}" if slower else "0-1 loss takes least"
    return f"A call takes {calls}; a training {totals}: over a training {told}."


_BESIDE = {"zero_one": "0-1 loss", "ap_qs": "AP_QS", "ndcg_qs": "NDCG_QS"}


def _agreed(found: Mapping[str, Any], loss: str) -> str:
    part, tol = found["agreement"][loss], found["plan"]["tol"]
    good = part["bracketed"] and part["gap"] <= tol
    told = "all methods end at the same minimum within it" if good else "the methods do not all end at the same minimum"
    return (
        f"{loss.upper()} loss: the largest duality gap of any method is {part['gap']:.1e} (asked for: {tol:g}) and "
        f"objectives lie at most {part['spread']:.1e} apart, relatively: {told}."
    )


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """Milliseconds a call by method, on a logarithmic axis; nothing if Matplotlib is not installed."""
    return draw_each(_NAME, (5.0, 4.9), {"calls": partial(_paint, found)})


def _paint(found: Mapping[str, Any], axes: Axes) -> None:
    names = [fill(method.name, _WIDTH) for method in METHODS.values()]
    values = [found["mean"][key]["per_call"] for key in METHODS]
    colours = [_COLOUR[method.loss] for method in METHODS.values()]
    axes.barh(range(len(names)), values, color=colours, height=0.62, label="ours")
    replayed = [found["mean"][key]["replayed"] for key in METHODS]
    axes.plot(replayed, range(len(names)), "o", markersize=5, color=INK, label="ours, replayed")
    known = [(pair[0], row) for row, key in enumerate(METHODS) if (pair := results.PAPER["per_call"].get(key))]
    axes.plot(*zip(*known, strict=True), "D", markersize=8, markerfacecolor="none", markeredgecolor=INK, label="paper")
    axes.set_xscale("log")
    axes.set_xlim(0.6 * min(replayed), 2.0 * max(*values, *(value for value, _ in known)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    finish(axes, "Time of a call", "milliseconds", "", "lower right")
    axes.tick_params(axis="y", labelsize=SIZES["tick"] - 1.0, length=0)


def facts(found: Mapping[str, Any]) -> list[str]:
    """How it was done."""
    data, plan = found["data"], found["plan"]
    threads, repeats = found["threads"], plan["repeats"]
    lines = [
        f"{data['samples']['train']:,} samples of {data['features']:,} features, {len(data['classes'])} classes; C of "
        "each class and loss is the one that the experiment of Tables 3 and 4 chose (0-1 loss: by AP)",
        f"a training with each method in turn, {repeats} {'time' if repeats == 1 else 'times'}, after a call of each; "
        "the least time in inference counts; deviations are over classes",
        f"replayed: the least of {ROUNDS} rounds in which methods take turns",
        f"threads: {threads} for inference, {threads} for products of matrices",
        "a call is all that training asks of inference: from scores to the loss and its gradient, sorting included",
        f"trained to a relative duality gap of {plan['tol']:g}",
    ]
    if data["left_out"]:
        lines.append(f"left out, fewer positives or negatives than folds: {', '.join(data['left_out'])}")
    return lines
