"""Results of timing inference: means over classes, and Tables 1 and 2 beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from rankwise_lab.measuring.timing import THREADS
from rankwise_lab.report.table import Table
from rankwise_lab.reproduce.beside import COLUMNS, beside, ratio
from rankwise_lab.reproduce.timing import METHODS, TimingExperiment

# Table 1 and the text of section 4.1: seconds per training. Table 2: milliseconds per call, and their deviation.
PAPER: dict[str, dict[str, Any]] = {
    "total": {"zero_one": 0.0694, "ap": 0.7154, "ap_qs": 0.0625, "ap_2014": 0.0985, "ndcg": 6.8019, "ndcg_qs": 0.0473},
    "per_call": {
        "zero_one": (0.48, 0.03),
        "ap": (16.29, 0.18),
        "ap_qs": (1.48, 0.39),
        "ndcg": (71.07, 1.57),
        "ndcg_qs": (0.55, 0.11),
    },
}
# Its training samples: the aims below are for this many.
PAPER_SAMPLES = 3_347


class Quotient(NamedTuple):
    """How many times faster the second method is than the first. least: the aim, or None."""

    name: str
    slow: str
    fast: str
    least: float | None = None


QUOTIENTS = (
    Quotient("AP: Yue et al. / AP_QS", "ap", "ap_qs", 10.0),
    Quotient("NDCG: Chakrabarti et al. / NDCG_QS", "ndcg", "ndcg_qs", 100.0),
    Quotient("NDCG: Chakrabarti et al., tabulated / NDCG_QS", "ndcg_tabulated", "ndcg_qs", 100.0),
    Quotient("AP: Mohapatra et al. 2014 / AP_QS", "ap_2014", "ap_qs"),
    Quotient("AP: Yue et al. / our engine", "ap", "ap_bucketed"),
    Quotient("NDCG: Chakrabarti et al. / our engine", "ndcg", "ndcg_bucketed"),
    Quotient("0-1 / AP_QS", "zero_one", "ap_qs"),
    Quotient("0-1 / NDCG_QS", "zero_one", "ndcg_qs"),
    Quotient("0-1 / our engine, AP", "zero_one", "ap_bucketed"),
    Quotient("0-1 / our engine, NDCG", "zero_one", "ndcg_bucketed"),
)


def document(experiment: TimingExperiment, machine: dict[str, Any]) -> dict[str, Any]:
    """Run what is not finished, and return everything as plain data."""
    action = experiment.action
    parts = experiment.run()
    means = {key: _mean(parts, key) for key in METHODS}
    return {
        "experiment": "timing",
        "data": action.described(),
        "plan": asdict(experiment.plan),
        "action_plan": asdict(action.plan),
        "threads": THREADS,
        "classes": parts,
        "mean": means,
        "faster": {one.name: _quotients(one, means) for one in QUOTIENTS},
        "agreement": {loss: _agreement(parts, loss) for loss in ("ap", "ndcg")},
        "paper": PAPER,
        "machine": machine,
    }


def _mean(parts: list[dict[str, Any]], key: str) -> dict[str, float]:
    """Means over classes: seconds per training, calls, milliseconds per call with their deviation; also replayed."""
    methods = [part["methods"][key] for part in parts]
    per_call = [1e3 * method["per_call"] for method in methods]
    replayed = [1e3 * method["replayed"]["seconds"] / method["replayed"]["calls"] for method in methods]
    return {
        "total": float(np.mean([method["inference"] for method in methods])),
        "calls": float(np.mean([method["calls"] for method in methods])),
        "training": float(np.mean([min(method["training"]) for method in methods])),
        "per_call": float(np.mean(per_call)),
        "deviation": _deviation(per_call),
        "replayed_total": float(np.mean([method["replayed"]["seconds"] for method in methods])),
        "replayed": float(np.mean(replayed)),
        "replayed_deviation": _deviation(replayed),
    }


def _deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _quotients(one: Quotient, means: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    slow, fast = means[one.slow], means[one.fast]
    total, calls = PAPER["total"], PAPER["per_call"]
    known = one.slow in calls and one.fast in calls
    return {
        "total": slow["total"] / fast["total"],
        "per_call": slow["per_call"] / fast["per_call"],
        "replayed": slow["replayed_total"] / fast["replayed_total"],
        "paper_total": total[one.slow] / total[one.fast] if one.slow in total and one.fast in total else None,
        "paper_per_call": calls[one.slow][0] / calls[one.fast][0] if known else None,
        "least": one.least,
    }


def _agreement(parts: list[dict[str, Any]], loss: str) -> dict[str, Any]:
    """Tell whether all exact methods reach the same minimum: the largest gap, and how far the objectives differ.

    bracketed: no method's lower bound is above another's objective, up to rounding.
    """
    gap, spread, bracketed = 0.0, 0.0, True
    for part in parts:
        methods = [part["methods"][key] for key, method in METHODS.items() if method.loss == loss]
        least, most = (end(method["objective"] for method in methods) for end in (min, max))
        gap = max(gap, *(method["gap"] for method in methods))
        spread = max(spread, (most - least) / least)
        bracketed &= max(method["dual"] for method in methods) <= least * (1.0 + 1e-9)
    return {"gap": gap, "spread": spread, "bracketed": bracketed}


def table1(found: Mapping[str, Any]) -> Table:
    """The paper's Table 1: seconds in inference per training."""
    means = found["mean"]
    rows = [(method.name, PAPER["total"].get(key), means[key]["total"]) for key, method in METHODS.items()]
    content = beside("", rows, ".4f")
    more = ([f"{means[key]['replayed_total']:.4f}", f"{means[key]['calls']:.0f}"] for key in METHODS)
    title = "Table 1: seconds in inference per training, mean over classes"
    said = (
        f"Of the methods for AP loss, “{_fastest(found, 'ap')}” takes least time here; for NDCG loss, "
        f"“{_fastest(found, 'ndcg')}”. Compare rows within a column: the paper's machine is a different one. "
        "“Replayed” repeats the same calls with nothing between them."
    )
    body = [[*row, *columns] for row, columns in zip(content.rows, more, strict=True)]
    return Table(title, ["method", *COLUMNS, "ours, replayed", "our calls"], body, said=said)


def _fastest(found: Mapping[str, Any], loss: str) -> str:
    """The method for a loss that takes the least time in inference."""
    keys = [key for key, method in METHODS.items() if method.loss == loss]
    return METHODS[min(keys, key=lambda key: found["mean"][key]["total"])].name


def table2(found: Mapping[str, Any]) -> Table:
    """The paper's Table 2: milliseconds per call."""
    rows = []
    for key, method in METHODS.items():
        ours, theirs = found["mean"][key], PAPER["per_call"].get(key)
        published = "-" if theirs is None else f"{theirs[0]:.2f} ± {theirs[1]:.2f}"
        quotient = ratio(ours["per_call"], None if theirs is None else theirs[0], ".3f")
        rows.append(
            [
                method.name,
                published,
                f"{ours['per_call']:.3f} ± {ours['deviation']:.3f}",
                quotient,
                f"{ours['replayed']:.3f} ± {ours['replayed_deviation']:.3f}",
            ]
        )
    title = "Table 2: milliseconds per call of inference, mean ± deviation over classes"
    mean = found["mean"]
    said = (
        f"A call of AP_QS takes {mean['ap_qs']['per_call']:.2f} ms in training and {mean['ap_qs']['replayed']:.2f} ms "
        f"replayed; a call for 0-1 loss, {mean['zero_one']['per_call']:.2f} and {mean['zero_one']['replayed']:.2f} ms. "
        "Look at how much every method gains by being replayed."
    )
    return Table(title, ["method", *COLUMNS, "ours, replayed"], rows, said=said)


def faster_table(found: Mapping[str, Any]) -> Table:
    """How many times faster, per training and per call."""
    rows = []
    for name, part in found["faster"].items():
        aims = [""] * 3
        if part["least"] is not None:
            aims = [f"≥ {part['least']:g}", *(verdict(found, part, what) for what in ("total", "replayed"))]
        paper, by_call = part["paper_total"], part["paper_per_call"]
        rows.append(
            [
                name,
                *("-" if paper is None else f"{paper:.2f}", f"{part['total']:.2f}", ratio(part["total"], paper)),
                *("-" if by_call is None else f"{by_call:.2f}", f"{part['per_call']:.2f}"),
                ratio(part["per_call"], by_call),
                f"{part['replayed']:.2f}",
                *aims,
            ]
        )
    columns = ["", *(f"{what}, {of}" for of in ("training", "per call") for what in COLUMNS)]
    columns += ["ours, replayed", "aim", "in training", "replayed"]
    title = "How many times faster: the first method's time divided by the second's"
    aimed = [part for part in found["faster"].values() if part["least"] is not None]
    reached = {what: sum(part[what] >= part["least"] for part in aimed) for what in ("total", "replayed")}
    said = (
        f"Above 1, the second method is faster. The speed-up reaches its aim in {reached['total']} of {len(aimed)} "
        f"comparisons in training, and in {reached['replayed']} of {len(aimed)} replayed."
        + ("" if _enough(found) else f" The aims are for {PAPER_SAMPLES:,} samples, more than there are here.")
    )
    return Table(title, columns, rows, said=said)


def _enough(found: Mapping[str, Any]) -> bool:
    """Whether there are as many training samples as in the paper."""
    return bool(found["data"]["samples"]["train"] >= PAPER_SAMPLES)


def verdict(found: Mapping[str, Any], part: Mapping[str, Any], what: str) -> str:
    """Tell whether an aim is reached in training ("total") or "replayed"; aims are for as many samples as the paper."""
    if not _enough(found):
        return "too few samples"
    return "reached" if part[what] >= part["least"] else "missed"


def classes_table(found: Mapping[str, Any]) -> Table:
    """Milliseconds in inference and calls, by class and method."""
    rows = [
        [
            part["class"],
            f"{part['positives']:,} / {part['negatives']:,}",
            *(f"{1e3 * part['methods'][key]['inference']:.1f} ({part['methods'][key]['calls']})" for key in METHODS),
        ]
        for part in found["classes"]
    ]
    columns = ["class", "positives / negatives", *(method.name for method in METHODS.values())]
    methods = [part["methods"] for part in found["classes"]]
    ahead = {
        pair: sum(one[pair[1]]["inference"] < one[pair[0]]["inference"] for one in methods)
        for pair in (("ap", "ap_qs"), ("ndcg", "ndcg_qs"))
    }
    said = (
        f"AP_QS is faster than Yue et al. in {ahead['ap', 'ap_qs']} of {len(methods)} classes, and NDCG_QS faster than "
        f"Chakrabarti et al. in {ahead['ndcg', 'ndcg_qs']}. The number of calls is in brackets."
    )
    return Table("Milliseconds in inference per training, and calls", columns, rows, said=said)


def as_csv(found: Mapping[str, Any]) -> str:
    """One line per class and method: seconds and milliseconds of the fastest repeat; then the means."""
    head = ["class", "method", "loss", "inference", "C", "calls", "seconds", "per_call_ms", "replayed_ms"]
    head += ["objective", "gap"]
    rows: list[list[Any]] = []
    for part in found["classes"]:
        for key, method in METHODS.items():
            one = part["methods"][key]
            replayed = one["replayed"]["seconds"] / one["replayed"]["calls"]
            numbers = [one["C"], one["calls"], one["inference"], 1e3 * one["per_call"], 1e3 * replayed]
            numbers += [one["objective"], one["gap"]]
            rows.append([part["class"], key, method.loss, method.how, *numbers])
    for key, method in METHODS.items():
        mean = found["mean"][key]
        numbers = [mean[name] for name in ("calls", "total", "per_call", "replayed")]
        rows.append(["mean", key, method.loss, method.how, "", *numbers, "", ""])
    return Table("", head, rows).as_csv()
