"""The timing of inference as a part of the report: Tables 1 and 2, speed-ups, and a figure of the time per call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rankwise_lab.figures import COLOURS, INK, SIZES, finish
from rankwise_lab.measuring.machine import describe
from rankwise_lab.report.blocks import Heading, Paragraph, show_figures
from rankwise_lab.report.claims import Claim
from rankwise_lab.report.figure import NO_FIGURES, Drawing, Drawn, draw_each
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action
from rankwise_lab.reproduce import timing_results as results
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.beside import TITLES, about_data, data_tags
from rankwise_lab.reproduce.thumbnails import SpeedUp, draw_speed_ups
from rankwise_lab.reproduce.timing import METHODS, ROUNDS, Plan, TimingExperiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = "timing"
# Letters per line of a label.
_WIDTH = 20
_NDCG = ("ndcg", "ndcg_qs")
# As many times as fast counts as faster.
_FASTER = 1.05
_COLOUR = {"zero-one": COLOURS[6], "ap": COLOURS[0], "ndcg": COLOURS[1]}

_WHAT = (
    "Section 4.1 of the paper: how long loss-augmented inference takes, by method, while a linear model is trained for "
    "0-1, AP and NDCG loss. Every method is exact, so they differ only in time."
)


def make_part(data: ActionData, out: Path, plan: Plan, action_plan: action.Plan, say: Callable[[str], None]) -> Part:
    """Run what is not finished, and make the part. Pieces are kept in out / "timing", and C in out / "action"."""
    chosen = action.ActionExperiment(data, out / "action", action_plan, say)
    found = results.document(TimingExperiment(chosen, out / _NAME, plan, say), describe())
    figures = draw(found)
    body = [
        about_data(data.what, data.stand_in),
        Heading("Tables 1 and 2", said="seconds per training and milliseconds per call, by method"),
        results.table1(found),
        results.table2(found),
        show_figures(figures, ("calls", *_FIGURE)),
        Heading("How many times faster", said="Algorithm 1 and our engine against the published methods"),
        results.faster_table(found),
        *map(Paragraph, _ABOUT),
        Heading("By class", said="the same times for every class"),
        results.classes_table(found),
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
        thumbnail=_thumbnail(found),
        tags=data_tags(data.stand_in),
    )


def claims(found: Mapping[str, Any]) -> list[Claim]:
    """The paper's claims on time in inference, with their verdicts."""
    faster = {(one.slow, one.fast): found["faster"][one.name] for one in results.QUOTIENTS}
    made = []
    for text, pair in (("AP_QS beats Yue et al.", ("ap", "ap_qs")), ("NDCG_QS beats Chakrabarti et al.", _NDCG)):
        part = faster[pair]
        for what, where in (("total", "in training"), ("replayed", "calls replayed")):
            aim = f"At least {part['least']:g} times as fast, with at least {results.PAPER_SAMPLES:,} samples."
            said = results.verdict(found, part, what)
            holds = {"reached": True, "missed": False}.get(said)
            shown = f"{part[what]:.1f} ×" + ("" if holds is not None else f", {said}")
            made.append(Claim(f"{text}, {where}", shown, f"{part['paper_total']:.1f} ×", aim, holds))
    older = faster["ap_2014", "ap_qs"]
    text, aim = "AP_QS beats Mohapatra et al. 2014, in training", f"At least {_FASTER:g} times as fast."
    made.append(Claim(text, f"{older['total']:.2f} ×", f"{older['paper_total']:.1f} ×", aim, older["total"] >= _FASTER))
    times = {key: 1e3 * found["mean"][key]["total"] for key in _BESIDE}
    theirs = {key: 1e3 * results.PAPER["total"][key] for key in _BESIDE}
    shown, paper = (" / ".join(f"{one[key]:.1f}" for key in _BESIDE) for one in (times, theirs))
    holds = times["zero_one"] > max(times["ap_qs"], times["ndcg_qs"])
    aim = "The mean time in inference per training is longer for 0-1 loss than for AP_QS and for NDCG_QS."
    made.append(
        Claim("Over a training, 0-1 loss takes longer than AP_QS / NDCG_QS", f"{shown} ms", f"{paper} ms", aim, holds)
    )
    return made


def _thumbnail(found: Mapping[str, Any]) -> Drawn | None:
    parts = {label: found["faster"][results.QUOTIENTS[k].name] for k, label in enumerate(("AP_QS", "NDCG_QS"))}
    speed_ups = [SpeedUp(label, part["total"], part["paper_total"], part["replayed"]) for label, part in parts.items()]
    return draw_speed_ups(_NAME, speed_ups)


_FIGURE = (
    "Milliseconds per call of inference by method, ours as bars and the paper's as hollow diamonds",
    "Shorter is faster. Bars: ours in training, mean over classes. Dots: ours, replayed. Diamonds: the paper's, on "
    "another machine.",
)
_ABOUT = (
    "The paper's times come from another machine and from a program that is not public, so only ratios can be "
    "compared. The paper's ratios are computed from its Tables 1 and 2, and from the time it gives for Mohapatra et "
    "al. 2014.",
    "Between two calls, training reads all features. Every method then takes some tenths of a millisecond longer per "
    "call, probably because the caches are cold. This makes the ratios smaller in training. “Replayed” means that the "
    "calls of a training are repeated with the same scores, one after the other, with nothing in between.",
    "The paper says that its method is “around 3 times faster” than Mohapatra et al. 2014. Its figures, 0.0985 s and "
    "0.0625 s, give 1.6 times.",
    "Chakrabarti et al. as published takes a logarithm at each step of the search. “Tabulated” looks the discounts up "
    "in a table, as all our own methods do.",
)


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    tiles = []
    for one in (results.QUOTIENTS[0], results.QUOTIENTS[1], results.QUOTIENTS[4], results.QUOTIENTS[5]):
        part = found["faster"][one.name]
        theirs = "" if part["paper_total"] is None else f" (paper: {part['paper_total']:.1f})"
        tiles.append((f"{part['total']:.1f} ×", f"{one.name}, in training{theirs}; {part['replayed']:.1f} × replayed"))
    return tiles


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """State what the numbers say, in sentences."""
    faster = {(one.slow, one.fast): found["faster"][one.name] for one in results.QUOTIENTS}
    return [
        _aimed("AP_QS", "Yue et al.", faster["ap", "ap_qs"], found),
        _aimed("NDCG_QS", "Chakrabarti et al. as published", faster["ndcg", "ndcg_qs"], found),
        _aimed("NDCG_QS", "Chakrabarti et al. with tabulated discounts", faster["ndcg_tabulated", "ndcg_qs"], found),
        f"Per training, AP_QS is {_times(faster['ap_2014', 'ap_qs']['total'])} Mohapatra et al. 2014 (paper: 1.6 by "
        "its figures, “around 3” in its words).",
        f"Per training, our engine is {_times(faster['ap', 'ap_bucketed']['total'])} Yue et al. for AP loss, "
        f"{_times(faster['ndcg', 'ndcg_bucketed']['total'])} Chakrabarti et al. as published for NDCG loss; replayed, "
        f"{faster['ap', 'ap_bucketed']['replayed']:.1f} and {faster['ndcg', 'ndcg_bucketed']['replayed']:.1f} times.",
        _against_zero_one(found),
        *(_agreed(found, loss) for loss in ("ap", "ndcg")),
    ]


def _times(quotient: float) -> str:
    """Say how many times faster; within 5 %, as fast."""
    if abs(quotient - 1.0) <= 0.05:
        return "as fast as"
    return f"{quotient:.1f} times faster than" if quotient > 1.0 else f"{1.0 / quotient:.1f} times slower than"


def _aimed(name: str, other: str, part: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    paper = (
        "" if part["paper_total"] is None else f" (paper: {part['paper_total']:.1f} and {part['paper_per_call']:.1f})"
    )
    aims = {what: results.verdict(found, part, what) for what in ("total", "replayed")}
    judged = (
        f"for {results.PAPER_SAMPLES:,} samples, more than there are here"
        if aims["total"] not in ("reached", "missed")
        else "{total} in training, {replayed} replayed".format(**aims)
    )
    return (
        f"{other} takes {part['total']:.1f} times as long as {name} per training and {part['per_call']:.1f} times "
        f"as long per call{paper}. Replayed, its calls take {part['replayed']:.1f} times as long. Aim: at least "
        f"{part['least']:g}, {judged}."
    )


def _against_zero_one(found: Mapping[str, Any]) -> str:
    means = found["mean"]
    calls = ", ".join(f"{means[key]['per_call']:.2f} ms for {what}" for key, what in _BESIDE.items())
    totals = ", ".join(f"{1e3 * means[key]['total']:.1f} ms for {what}" for key, what in _BESIDE.items())
    slower = [what for key, what in _BESIDE.items() if means[key]["total"] < means["zero_one"]["total"]]
    told = f"0-1 loss takes longer than {' and '.join(slower)}" if slower else "0-1 loss takes the least time"
    return f"A call takes {calls}. All calls of a training take {totals}. Over a training, {told}."


_BESIDE = {"zero_one": "0-1 loss", "ap_qs": "AP_QS", "ndcg_qs": "NDCG_QS"}


def _agreed(found: Mapping[str, Any], loss: str) -> str:
    part, tol = found["agreement"][loss], found["plan"]["tol"]
    good = part["bracketed"] and part["gap"] <= tol
    told = "all methods end at the same minimum" if good else "the methods do not all end at the same minimum"
    return (
        f"{loss.upper()} loss: the largest duality gap of any method is {part['gap']:.1e} (limit: {tol:g}), and the "
        f"objectives differ by at most {part['spread']:.1e} of their value: {told}."
    )


def draw(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """Draw milliseconds per call by method, on a logarithmic axis; nothing if Matplotlib is not installed."""
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
    finish(axes, "Time per call", "milliseconds", "", "lower right")
    axes.tick_params(axis="y", labelsize=SIZES["tick"] - 1.0, length=0)


def facts(found: Mapping[str, Any]) -> list[str]:
    """Say how it was done."""
    data, plan = found["data"], found["plan"]
    threads, repeats = found["threads"], plan["repeats"]
    lines = [
        f"Data: {data['samples']['train']:,} samples with {data['features']:,} features, {len(data['classes'])} "
        "classes. The experiment of Tables 3 and 4 chose C for each class and loss (for 0-1 loss, by AP).",
        f"Each method trains in turn, {repeats} {'time' if repeats == 1 else 'times'}, after one call to warm up. The "
        "shortest time in inference counts. Deviations are over classes.",
        f"Replayed: the shortest of {ROUNDS} rounds in which the methods take turns.",
        f"Threads: {threads} for inference, {threads} for products of matrices.",
        "A call covers everything that training asks of inference: from scores to the loss and its gradient, including "
        "sorting.",
        f"Models are trained to a relative duality gap of {plan['tol']:g}.",
    ]
    if data["left_out"]:
        lines.append(f"Left out, with fewer positives or negatives than folds: {', '.join(data['left_out'])}.")
    return lines
