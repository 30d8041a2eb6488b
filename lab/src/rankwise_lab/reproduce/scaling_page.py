"""The scaling experiment as a part of the report: curves, the law, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rankwise_lab.measuring.machine import describe
from rankwise_lab.report.blocks import Heading, Paragraph, show_figures
from rankwise_lab.report.figure import NO_FIGURES
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action, beside
from rankwise_lab.reproduce import scaling_results as results
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.scaling import Plan, ScalingExperiment
from rankwise_lab.reproduce.scaling_curves import OURS, QS, ROWS, TITLES, ZERO_ONE, draw

__all__ = ["as_part", "conclusions", "facts", "make_part"]

_NAME = "scaling"
# How far a curve may be from the law.
_TARGET = 2.0
_WHAT = {"training": "all calls of inference in a training", "calls": "one call of inference"}
_ALONG = {"total": "all samples at 1:10", "negatives": "negatives", "positives": "positives"}

_ABOUT = (
    "Figures 2 and 3 of the paper: the time of loss-augmented inference as the number of all, of negative and "
    "of positive samples is varied. The paper gives curves without numbers, so none of its numbers stand "
    "beside ours."
)
_ABOUT_LAW = (
    "Work is N log P + P log N + P log P as in the paper's theorem, logarithms to base 2 of 1 + n; N log P is its "
    "first term alone. a, the cost of a call itself, and b, that of a unit of work, are those that make the "
    "largest factor between a time and the law least: small problems count as much as large ones. One law for all "
    "axes is the strictest test: no constant is fitted to an axis.",
    "Where negatives grow, the elements that Algorithm 1 moves, counted, keep to the law, but to move one takes "
    "longer the more there are: caches are the likely cause. Where positives grow, most time goes to sorting "
    "them, a unit of which takes less time than one of dividing negatives. NDCG has its discounts in a table only "
    "up to 65,536 places; beyond that each is a logarithm.",
)


def make_part(
    data: ActionData, out: Path, plan: Plan, action_plan: action.Plan, say: Callable[[str], None] = lambda line: None
) -> Part:
    """Run what is left to run, and make the part; C is chosen, and kept, by the experiment of Tables 3 and 4."""
    chooser = action.ActionExperiment(data, out / "action", action_plan, say)
    experiment = ScalingExperiment(chooser, out / _NAME, plan, say)
    return as_part(results.document(experiment, experiment.run(), describe()))


def as_part(found: dict[str, Any]) -> Part:
    """The part of a document."""
    figures = draw(found)
    body = [
        beside.about_data(found["data"]["what"], found["data"]["stand_in"]),
        Heading("During training"),
        show_figures(figures, *_panels(found, "training")),
        *(results.training_table(found, loss) for loss in ROWS),
        Heading("One call, to larger sizes"),
        show_figures(figures, *_panels(found, "calls")),
        *(results.call_table(found, loss) for loss in ROWS),
        results.sort_table(found),
        Heading("The law of the theorem"),
        results.law_table(found),
        *map(Paragraph, _ABOUT_LAW),
    ]
    lines = conclusions(found) + ([] if figures else [NO_FIGURES])
    return Part(
        _NAME, beside.TITLES[_NAME], _ABOUT, found, lines, body, facts(found), results.as_csv(found), _tiles(found)
    )


def _panels(found: Mapping[str, Any], part: str) -> list[tuple[str, str, str]]:
    """Of each panel, the name, the label and the caption."""
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
        f"{panel['what'].capitalize()}: at {size:,} the published method takes {gain:.1f} × the time of Algorithm 1, "
        f"which ends at {results.milliseconds(last)} ms."
    )


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    worst = [max(law["factor"] for law in found["laws"][loss]["plain"].values()) for loss in ROWS]
    told = f"largest factor between times and a + b · N log P where N grows, AP_QS and NDCG_QS (aim: {_TARGET:g})"
    tiles = [(" | ".join(f"{factor:.2f}" for factor in worst), told)]
    for loss in ROWS:
        gains = _gains(found, "training", loss, "total")
        tiles.append((f"{gains[QS]:.1f} ×", f"{TITLES[loss]} over {TITLES[loss]}_QS in training, all samples"))
        gains = _gains(found, "calls", loss, "total")
        samples = next(iter(results.panel_of(found, "calls", loss, "total")["curves"].values()))["x"][-1]
        tiles.append((f"{gains[QS]:,.0f} ×", f"{TITLES[loss]} over {TITLES[loss]}_QS, one call on {samples:,} samples"))
    return tiles


def _gains(found: Mapping[str, Any], part: str, loss: str, axis: str) -> dict[str, float]:
    """How many times as long as others the published method takes, where it was timed last."""
    curves = results.panel_of(found, part, loss, axis)["curves"]
    published = next(iter(curves.values()))["seconds"]
    return {name: published[-1] / curve["seconds"][len(published) - 1] for name, curve in curves.items()}


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """What the numbers say, whichever way they fall."""
    lines = []
    for loss in ROWS:
        lines += [_law_line(found, loss), _plain_line(found, loss), _moves_line(found, loss)]
    for loss in ROWS:
        lines.append(_gain_line(found, loss))
    lines += [_zero_one_line(found), *(_sort_line(found, axis) for axis in ("negatives", "total"))]
    return [*lines, *_busy_lines(found)]


def _busy_lines(found: Mapping[str, Any]) -> list[str]:
    """A warning, if others used the processor."""
    load, cores = max(found["load"], default=0.0), found["machine"].get("cores")
    if cores is None or load <= cores:
        return []
    return [f"The machine was busy, with a load average of up to {load:.1f} on {cores} cores: times suffer from it."]


def _law_line(found: Mapping[str, Any], loss: str) -> str:
    laws, name = found["laws"][loss], f"{TITLES[loss]}_QS"
    law = laws["all"]
    line = (
        f"{name}: one law, {1e6 * law['a']:.3g} µs + {1e9 * law['b']:.3g} ns · (N log P + P log N + P log P), is "
        f"within {law['factor']:.2f} × of all {law['points']} times of a call, to {found['plan']['largest']:,} samples"
    )
    if law["factor"] <= _TARGET:
        return f"{line}: at most {_TARGET:g} ×, as asked for."
    each = ", ".join(f"{_ALONG[axis]}: {one['factor']:.2f}" for axis, one in laws["axes"].items())
    return f"{line}: more than the {_TARGET:g} × asked for. A law for each axis is within: {each}."


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
        f"negatives grow and N ≥ P: a factor of {high / low:.2f}, whatever the machine."
    )


def _gain_line(found: Mapping[str, Any], loss: str) -> str:
    gains = {axis: _gains(found, "training", loss, axis) for axis in results.AXES}
    each = ", ".join(f"{_ALONG[axis]}: {one[QS]:.1f} × ({one[OURS]:.1f} × over ours)" for axis, one in gains.items())
    least = min(one[QS] for one in gains.values())
    verdict = (
        "Algorithm 1 is the faster on each, as in the paper" if least > 1.0 else "Algorithm 1 is not always faster"
    )
    return f"{TITLES[loss]} over {TITLES[loss]}_QS in a training, at the end of each axis: {each}. {verdict}."


def _zero_one_line(found: Mapping[str, Any]) -> str:
    shares = []
    for loss in ROWS:
        curves = results.panel_of(found, "training", loss, "total")["curves"]
        qs, zero_one = (curves[name] for name in (QS, ZERO_ONE))
        total = qs["seconds"][-1] / zero_one["seconds"][-1]
        each = total * zero_one["calls"][-1] / qs["calls"][-1]
        shares.append(f"{TITLES[loss]}_QS {total:.2f} × in all calls of a training and {each:.1f} × in each")
    return f"Against 0-1 loss, all samples of the class at 1:10: {'; '.join(shares)}. The paper calls them comparable."


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
    """How it was done."""
    data, plan, Cs = found["data"], found["plan"], found["Cs"]
    chosen = "; ".join(
        f"by {TITLES[loss]}: " + ", ".join(f"{C:.3g} for {TITLES.get(name, '0-1')} loss" for name, C in row.items())
        for loss, row in Cs.items()
    )
    lines = [
        f"training: class “{data['class']}”, {data['positives']:,} positives and {data['negatives']:,} negatives, of "
        f"which smaller sets are drawn, each within the next; C chosen on the whole class, the same at all sizes, "
        f"{chosen}; to a relative gap of {plan['tol']:g}",
        "calls: standard normal scores, those of positives higher by 1; value and gradient, float32",
        f"one thread; methods take turns, {plan['training_repeats']} × in training and {plan['repeats']} × in each of "
        f"{plan['rounds']} rounds of calls, and the least time of each counts; nothing is compiled while it is timed",
        *_stop_lines(found),
        "NDCG takes a logarithm at each step, as published; tabulated, it looks discounts up",
    ]
    if found["load"]:
        lines.append(f"load average while timing: {min(found['load']):.1f} to {max(found['load']):.1f}")
    slow = [
        panel for panel in found["panels"] if not all(all(c.get("converged", [])) for c in panel["curves"].values())
    ]
    if slow:
        lines.append(f"{len(slow)} panels of training have models that stopped short of the gap")
    return lines


def _stop_lines(found: Mapping[str, Any]) -> list[str]:
    lines = []
    for (loss, name), ends in results.stops(found).items():
        curve = ROWS[loss][name]
        where = ", ".join(f"{n_pos:,} × {n_neg:,} ({_ALONG[axis]})" for axis, (n_pos, n_neg) in ends.items())
        bound = found["plan"]["pairs"] * curve.pairs
        lines.append(
            f"{curve.label} stops at P × N = {where}: its time grows as P·N, and a call is given at most {bound:,.0f} "
            "of it"
        )
    return lines
