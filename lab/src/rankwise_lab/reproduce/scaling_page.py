"""The scaling experiment as a part of the report: curves, the law, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankwise_lab.measuring.machine import describe
from rankwise_lab.report.blocks import Heading, Paragraph, show_figures
from rankwise_lab.report.claims import Claim
from rankwise_lab.report.figure import NO_FIGURES, Drawn
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action, beside
from rankwise_lab.reproduce import scaling_results as results
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.scaling import Plan, ScalingExperiment
from rankwise_lab.reproduce.scaling_curves import OURS, QS, ROWS, TITLES, ZERO_ONE, draw
from rankwise_lab.reproduce.thumbnails import Line, draw_lines

_NAME = "scaling"
# The largest factor allowed between a time and the law, and between AP_QS or NDCG_QS and 0-1 loss.
_TARGET = 2.0
_WHAT = {"training": "all calls of inference in a training", "calls": "one call of inference"}
_ALONG = {"total": "all samples at 1:10", "negatives": "negatives", "positives": "positives"}

_ABOUT = (
    "Figures 2 and 3 of the paper: the time of loss-augmented inference as the number of all samples, of negatives or "
    "of positives grows. The paper shows curves without numbers, so only their shape can be compared."
)
_ABOUT_LAW = (
    "Work is N log P + P log N + P log P as in the paper's theorem, with logarithms to base 2 of 1 + n. N log P is its "
    "first term alone. The law has two constants: a, the cost of a call itself, and b, the cost of a unit of work. "
    "They minimise the largest factor between a time and the law, so small problems count as much as large ones. One "
    "law for all axes is the strictest test: no constant is fitted to a single axis.",
    "Where negatives grow, the number of elements that Algorithm 1 moves follows the law, but moving one takes longer "
    "the more there are, probably because of caches. Where positives grow, most time goes into sorting them, which "
    "takes less time per unit of work than dividing negatives. NDCG looks its discounts up in a table for the first "
    "65,536 places; beyond that it computes a logarithm.",
)


def make_part(
    data: ActionData, out: Path, plan: Plan, action_plan: action.Plan, say: Callable[[str], None] = lambda line: None
) -> Part:
    """Run what is not finished, and make the part. The experiment of Tables 3 and 4 chooses and keeps C."""
    chooser = action.ActionExperiment(data, out / "action", action_plan, say)
    experiment = ScalingExperiment(chooser, out / _NAME, plan, say)
    return as_part(results.document(experiment, experiment.run(), describe()))


def as_part(found: dict[str, Any]) -> Part:
    """Make the part from a document."""
    figures = draw(found)
    body = [
        beside.about_data(found["data"]["what"], found["data"]["stand_in"]),
        Heading("During training", said="as in the paper: all calls of inference in a training"),
        show_figures(figures, *_panels(found, "training")),
        *(results.training_table(found, loss) for loss in ROWS),
        Heading("One call, to larger sizes", said="beyond the paper, on random scores"),
        show_figures(figures, *_panels(found, "calls")),
        *(results.call_table(found, loss) for loss in ROWS),
        results.sort_table(found),
        Heading("The law of the theorem", said="does time grow as N log P?"),
        results.law_table(found),
        *map(Paragraph, _ABOUT_LAW),
    ]
    lines = conclusions(found) + ([] if figures else [NO_FIGURES])
    return Part(
        _NAME,
        beside.TITLES[_NAME],
        _ABOUT,
        found,
        lines,
        body,
        facts(found),
        results.as_csv(found),
        _tiles(found),
        claims=claims(found),
        thumbnail=_thumbnail(found),
        tags=beside.data_tags(found["data"]["stand_in"]),
    )


def claims(found: Mapping[str, Any]) -> list[Claim]:
    """The paper's claims on how time grows, with their verdicts."""
    made = []
    for loss, published in (("ap", "Yue et al."), ("ndcg", "Chakrabarti et al.")):
        gains = [_gains(found, "training", loss, axis)[QS] for axis in results.AXES]
        text = f"{TITLES[loss]}_QS beats {published} in training, on all three axes"
        shown = f"{min(gains):.1f} to {max(gains):.1f} ×"
        criterion = "The published method takes longer at the end of each axis."
        made.append(Claim(text, shown, "faster, in its figures", criterion, min(gains) > 1.0))
    laws = {loss: found["laws"][loss] for loss in ROWS}
    plain = [max(law["factor"] for law in one["plain"].values()) for one in laws.values()]
    every = [one["all"]["factor"] for one in laws.values()]
    told = (
        ("Time grows as N log P where negatives grow; AP_QS / NDCG_QS", plain, "a + b · N log P"),
        ("One law for all three axes; AP_QS / NDCG_QS", every, "a + b · (N log P + P log N + P log P)"),
    )
    for text, factors, law in told:
        shown = f"within {' / '.join(f'{factor:.2f}' for factor in factors)} ×"
        criterion = f"Every time of a call is within {_TARGET:g} times of {law}, with one a and b per loss."
        if factors is plain:
            criterion += " This holds for each axis alone and for both together."
        made.append(Claim(text, shown, "a theorem", criterion, max(factors) <= _TARGET))
    shares = [_share(found, loss) for loss in ROWS]
    shown = f"{' / '.join(f'{share:.2f}' for share in shares)} × its time"
    criterion = f"At most {_TARGET:g} times the time of 0-1 loss in all calls of a training, all samples at 1:10."
    text = "AP_QS / NDCG_QS take about as long as 0-1 loss"
    made.append(Claim(text, shown, "“comparable”", criterion, max(shares) <= _TARGET))
    return made


def _share(found: Mapping[str, Any], loss: str) -> float:
    """Time of Algorithm 1 in a training as a multiple of the time of 0-1 loss, all samples at 1:10."""
    curves = results.panel_of(found, "training", loss, "total")["curves"]
    return float(curves[QS]["seconds"][-1] / curves[ZERO_ONE]["seconds"][-1])


def _thumbnail(found: Mapping[str, Any]) -> Drawn | None:
    curves = results.panel_of(found, "calls", "ap", "total")["curves"]
    shown = (("yue", "Yue", 1, 0.0), (QS, "AP_QS", 0, 3.0), (OURS, "ours", 2, -3.0))
    lines = [
        Line(label, curves[name]["x"], [1e3 * one for one in curves[name]["seconds"]], colour, shift)
        for name, label, colour, shift in shown
    ]
    return draw_lines(_NAME, lines, "samples; one call, AP loss")


def _panels(found: Mapping[str, Any], part: str) -> list[tuple[str, str, str]]:
    """Return the name, the label and the caption of each panel."""
    told = []
    for loss in ROWS:
        for axis in results.AXES:
            panel = results.panel_of(found, part, loss, axis)
            label = f"{TITLES[loss]} loss: milliseconds of {_WHAT[part]} against {panel['what']}"
            told.append((f"{part}-{loss}-{axis}", label, _caption(panel)))
    return told


def _caption(panel: Mapping[str, Any]) -> str:
    last = panel["curves"][QS]["seconds"][-1]
    published = next(iter(panel["curves"].values()))
    size = published["x"][-1]
    at = panel["curves"][QS]["seconds"][len(published["x"]) - 1]
    gain = published["seconds"][-1] / at
    return (
        f"{panel['what'].capitalize()}. At {size:,}, the published method takes {gain:.1f} × as long as Algorithm 1, "
        f"whose curve ends at {results.milliseconds(last)} ms."
    )


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    worst = [max(law["factor"] for law in found["laws"][loss]["plain"].values()) for loss in ROWS]
    told = f"largest factor between times and a + b · N log P where N grows, AP_QS | NDCG_QS (aim: {_TARGET:g})"
    tiles = [(" | ".join(f"{factor:.2f}" for factor in worst), told)]
    for loss in ROWS:
        gains = _gains(found, "training", loss, "total")
        tiles.append((f"{gains[QS]:.1f} ×", f"{TITLES[loss]} over {TITLES[loss]}_QS in training, all samples"))
        gains = _gains(found, "calls", loss, "total")
        samples = next(iter(results.panel_of(found, "calls", loss, "total")["curves"].values()))["x"][-1]
        tiles.append((f"{gains[QS]:,.0f} ×", f"{TITLES[loss]} over {TITLES[loss]}_QS, one call on {samples:,} samples"))
    return tiles


def _gains(found: Mapping[str, Any], part: str, loss: str, axis: str) -> dict[str, float]:
    """How many times as long the published method takes as each other, at its last size."""
    curves = results.panel_of(found, part, loss, axis)["curves"]
    published = next(iter(curves.values()))["seconds"]
    return {name: published[-1] / curve["seconds"][len(published) - 1] for name, curve in curves.items()}


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """State what the numbers say, in sentences."""
    lines = []
    for loss in ROWS:
        lines += [_law_line(found, loss), _plain_line(found, loss), _moves_line(found, loss)]
    for loss in ROWS:
        lines.append(_gain_line(found, loss))
    lines += [_zero_one_line(found), *(_sort_line(found, axis) for axis in ("negatives", "total"))]
    return [*lines, *_busy_lines(found)]


def _busy_lines(found: Mapping[str, Any]) -> list[str]:
    """Warn if other programs used the processor."""
    load, cores = max(found["load"], default=0.0), found["machine"].get("cores")
    if cores is None or load <= cores:
        return []
    return [
        f"The machine was busy, with a load average of up to {load:.1f} on {cores} cores, so times may be too long."
    ]


def _law_line(found: Mapping[str, Any], loss: str) -> str:
    laws, name = found["laws"][loss], f"{TITLES[loss]}_QS"
    law = laws["all"]
    line = (
        f"{name}: one law, {1e6 * law['a']:.3g} µs + {1e9 * law['b']:.3g} ns · (N log P + P log N + P log P), is "
        f"within {law['factor']:.2f} × of all {law['points']} times of a call, to {found['plan']['largest']:,} samples"
    )
    if law["factor"] <= _TARGET:
        return f"{line}. This is within the limit of {_TARGET:g} ×."
    each = ", ".join(f"{_ALONG[axis]}: {one['factor']:.2f}" for axis, one in laws["axes"].items())
    return f"{line}. This is over the limit of {_TARGET:g} ×. A separate law for each axis is within: {each}."


def _plain_line(found: Mapping[str, Any], loss: str) -> str:
    laws = found["laws"][loss]["plain"]
    each = ", ".join(f"{_ALONG.get(axis, 'both at once')}: {law['factor']:.2f} ×" for axis, law in laws.items())
    worst = max(law["factor"] for law in laws.values())
    verdict = f"within {_TARGET:g} ×" if worst <= _TARGET else f"not all within {_TARGET:g} ×"
    return f"{TITLES[loss]}_QS against a + b · N log P, where negatives grow: {each}; {verdict}."


def _moves_line(found: Mapping[str, Any], loss: str) -> str:
    low, high = results.moves(found, loss)
    return (
        f"Counted instead of timed, {TITLES[loss]}_QS moves {low:.2f} to {high:.2f} elements per N log P where "
        f"negatives grow and N ≥ P: a factor of {high / low:.2f} on any machine."
    )


def _gain_line(found: Mapping[str, Any], loss: str) -> str:
    gains = {axis: _gains(found, "training", loss, axis) for axis in results.AXES}
    each = ", ".join(f"{_ALONG[axis]}: {one[QS]:.1f} × ({one[OURS]:.1f} × over ours)" for axis, one in gains.items())
    least = min(one[QS] for one in gains.values())
    verdict = "Algorithm 1 is faster on each, as in the paper" if least > 1.0 else "Algorithm 1 is not always faster"
    return f"{TITLES[loss]} over {TITLES[loss]}_QS in a training, at the end of each axis: {each}. {verdict}."


def _zero_one_line(found: Mapping[str, Any]) -> str:
    shares = []
    for loss in ROWS:
        curves = results.panel_of(found, "training", loss, "total")["curves"]
        qs, zero_one = (curves[name] for name in (QS, ZERO_ONE))
        total = _share(found, loss)
        each = total * zero_one["calls"][-1] / qs["calls"][-1]
        shares.append(f"{TITLES[loss]}_QS {total:.2f} × in all calls of a training and {each:.1f} × in each")
    return (
        f"As multiples of the time of 0-1 loss, all samples of the class at 1:10: {'; '.join(shares)}. The paper calls "
        "them comparable."
    )


def _sort_line(found: Mapping[str, Any], axis: str) -> str:
    panel = results.panel_of(found, "calls", "ap", axis)
    sort = next(point["seconds"] for point in reversed(found["sort"]) if point["axis"] == axis)
    qs, ours = (panel["curves"][name]["seconds"][-1] for name in (QS, OURS))
    n_pos, n_neg = panel["sizes"][-1]
    return (
        f"At {n_pos:,} positives and {n_neg:,} negatives a call takes {1e3 * qs:,.4g} ms with AP_QS and "
        f"{1e3 * ours:,.4g} ms with our engine; np.sort of the negatives alone takes {1e3 * sort:,.4g} ms."
    )


def facts(found: Mapping[str, Any]) -> list[str]:
    """Say how it was done."""
    data, plan, Cs = found["data"], found["plan"], found["Cs"]
    chosen = "; ".join(
        f"by {TITLES[loss]}: " + ", ".join(f"{C:.3g} for {TITLES.get(name, '0-1')} loss" for name, C in row.items())
        for loss, row in Cs.items()
    )
    lines = [
        f"Training: class “{data['class']}”, {data['positives']:,} positives and {data['negatives']:,} negatives. "
        "Smaller sets are drawn from it, each contained in the next. C is chosen on the whole class and is the same at "
        f"all sizes ({chosen}). Models are trained to a relative gap of {plan['tol']:g}.",
        "Calls: scores are standard normal, those of positives higher by 1. A call computes value and gradient, in "
        "float32.",
        f"One thread. Methods take turns, {plan['training_repeats']} × in training and {plan['repeats']} × in each of "
        f"{plan['rounds']} rounds of calls. The shortest time of each counts. Nothing is compiled while it is timed.",
        *_stop_lines(found),
        "NDCG as published takes a logarithm at each step; “tabulated” looks discounts up in a table.",
    ]
    if found["load"]:
        lines.append(f"Load average while timing: {min(found['load']):.1f} to {max(found['load']):.1f}.")
    slow = [
        panel for panel in found["panels"] if not all(all(c.get("converged", [])) for c in panel["curves"].values())
    ]
    if slow:
        lines.append(f"{len(slow)} panels have models whose training stopped before it reached the gap.")
    return lines


def _stop_lines(found: Mapping[str, Any]) -> list[str]:
    lines = []
    for (loss, name), ends in results.stops(found).items():
        curve = ROWS[loss][name]
        where = ", ".join(f"{n_pos:,} × {n_neg:,} ({_ALONG[axis]})" for axis, (n_pos, n_neg) in ends.items())
        bound = found["plan"]["pairs"] * curve.pairs
        lines.append(
            f"{curve.label} stops at P × N = {where}: its time grows as P·N, and calls are limited to a P·N of "
            f"{bound:,.0f}."
        )
    return lines
