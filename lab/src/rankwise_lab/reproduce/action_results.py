"""Results of the experiment on ten classes: means, paired tests, and Tables 3 and 4 beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rankwise_lab.intervals import LEVEL, paired_tests
from rankwise_lab.report.table import Table
from rankwise_lab.reproduce.action import MEASURES, ActionExperiment
from rankwise_lab.reproduce.beside import LOSSES, compared, ratio

# Supplement, Tables 3 and 4: by class of VOC 2011 action, in %, for 0-1 loss and for the measure's own.
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "ap": {
        "Jumping": (52.580, 55.230),
        "Phoning": (32.090, 32.630),
        "Playing instrument": (35.210, 41.180),
        "Reading": (27.410, 26.600),
        "Riding bike": (72.240, 81.060),
        "Running": (73.090, 76.850),
        "Taking photo": (21.880, 25.980),
        "Using computer": (30.620, 32.050),
        "Walking": (54.400, 57.090),
        "Riding horse": (79.820, 83.290),
    },
    "ndcg": {
        "Jumping": (86.409, 87.895),
        "Phoning": (73.134, 76.733),
        "Playing instrument": (81.533, 83.666),
        "Reading": (74.528, 75.588),
        "Riding bike": (94.928, 95.958),
        "Running": (93.766, 93.776),
        "Taking photo": (74.058, 76.701),
        "Using computer": (79.518, 78.276),
        "Walking": (89.789, 89.742),
        "Riding horse": (96.160, 96.875),
    },
}
# Their means, as section 4.1 has them.
PAPER_MEANS = {"ap": (47.934, 51.196), "ndcg": (84.3823, 85.521)}
_NUMBERS = {"ap": 3, "ndcg": 4}
SIGNIFICANT = 0.05


def document(experiment: ActionExperiment, machine: dict[str, Any]) -> dict[str, Any]:
    """Run what is not finished, and return everything as plain data."""
    parts = experiment.run()
    difference = experiment.difference()
    return {
        "experiment": "action",
        "data": experiment.described(),
        "plan": asdict(experiment.plan),
        "classes": parts,
        "mean": {
            metric: {loss: float(np.mean([part[loss][metric]["test"] for part in parts])) for loss in _losses(metric)}
            for metric in PAPER
        },
        "difference": difference,
        "tests": {
            metric: {"ours": paired_tests(_pairs(parts, metric)), "paper": paired_tests(list(PAPER[metric].values()))}
            for metric in PAPER
        },
        "paper": {"classes": PAPER, "mean": PAPER_MEANS},
        "machine": machine,
    }


def _losses(metric: str) -> tuple[str, str]:
    return "zero-one", metric


def _pairs(parts: Sequence[Mapping[str, Any]], metric: str) -> list[tuple[float, float]]:
    """In %, by class: 0-1 loss, and the measure's own."""
    return [(100.0 * part["zero-one"][metric]["test"], 100.0 * part[metric][metric]["test"]) for part in parts]


def same_classes(found: Mapping[str, Any]) -> bool:
    """Whether the classes are the paper's own."""
    return {_plain(name) for name in found["data"]["classes"]} <= {_plain(name) for name in PAPER["ap"]}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def measure_table(found: Mapping[str, Any], metric: str) -> Table:
    """The paper's Table 3 (AP) or 4 (NDCG); its own classes beside ours where they are the same."""
    intervals, same = found["difference"][metric], same_classes(found)
    known = {_plain(name): pair for name, pair in PAPER[metric].items()}
    rows = []
    for part, pair in zip(found["classes"], _pairs(found["classes"], metric), strict=True):
        theirs = _beside(pair, known[_plain(part["class"])]) if same else []
        rows.append([part["class"], *compared(pair, intervals["classes"][part["class"]], 2, ".3f"), *theirs])
    n_classes, means = len(rows), tuple(100.0 * found["mean"][metric][loss] for loss in _losses(metric))
    published = PAPER_MEANS[metric]
    if same:  # the mean over the classes that are here
        theirs = np.mean([known[_plain(part["class"])] for part in found["classes"]], axis=0)
        published = (float(theirs[0]), float(theirs[1]))
    none = [""] * 4 if same else []
    rows.append(["mean", *compared(means, intervals["mean"], 2, ".3f"), *(_beside(means, published) if same else [])])
    rows.append(["paper, mean", *compared(published, None, 2, ".3f"), *none])
    ours = [ratio(mine, theirs, ".3f") for mine, theirs in zip(means, published, strict=True)]
    rows.append(["ours / paper", *ours, ratio(means[1] - means[0], published[1] - published[0]), "", "", *none])
    losses = [LOSSES[loss] for loss in _losses(metric)]
    name = metric.upper()
    columns = ["class", *losses, "difference", f"{LEVEL:.0%} interval", f"{name} / 0-1"]
    columns += [f"{what}, {loss}" for what in ("paper", "ours / paper") for loss in losses] if same else []
    title = f"Table {_NUMBERS[metric]}: test {name}, in %"
    ends = list(intervals["classes"].values())
    said = (
        f"{LOSSES[metric]} has the higher test {name} in {found['tests'][metric]['ours']['better']} of {n_classes} "
        f"classes. Look at the {LEVEL:.0%} interval of the difference: it lies above 0 in "
        f"{sum(low > 0.0 for low, _ in ends)} classes and below 0 in {sum(high < 0.0 for _, high in ends)}."
    )
    return Table(title, columns, rows, totals=len(rows) - n_classes, said=said)


def _beside(ours: Sequence[float], theirs: Sequence[float]) -> list[str]:
    ratios = [ratio(mine, other, ".3f") for mine, other in zip(ours, theirs, strict=True)]
    return [*(f"{value:.2f}" for value in theirs), *ratios]


def paper_table() -> Table:
    """The paper's own classes, by measure."""
    pairs = {name: [PAPER[metric][name] for metric in PAPER] for name in PAPER["ap"]}
    pairs["mean"] = list(PAPER_MEANS.values())
    rows = [[name, *(cell for pair in of for cell in compared(pair, None, 2, "")[:3])] for name, of in pairs.items()]
    columns = [f"{m.upper()}, {what}" for m in PAPER for what in (*map(LOSSES.get, _losses(m)), "difference")]
    better = [sum(own > zero_one for zero_one, own in PAPER[metric].values()) for metric in PAPER]
    said = (
        f"In the paper, AP loss is better in {better[0]} of {len(rows) - 1} classes and NDCG loss in {better[1]}. Look "
        "at the columns of differences."
    )
    title = "The paper's own classes, VOC 2011 action, in %"
    return Table(title, ["class", *columns], rows, totals=1, said=said)


def tests_table(found: Mapping[str, Any]) -> Table:
    """Paired tests over classes, ours and of the paper's own numbers."""
    rows = []
    for metric, both in found["tests"].items():
        for whose, test in both.items():
            interval = test["interval"]
            rows.append(
                [
                    f"{metric.upper()}, {whose}",
                    f"{test['mean']:+.2f}",
                    "-" if interval is None else f"{interval[0]:+.2f} to {interval[1]:+.2f}",
                    f"{test['better']} of {test['classes']}",
                    *("-" if test[key] is None else f"{test[key]:.3g}" for key in ("t", "p_t", "w", "p_w")),
                ]
            )
    columns = ["", "mean difference", f"{LEVEL:.0%} interval", "classes better"]
    columns += ["Student's t", "p of t", "Wilcoxon's W", "p of W"]
    tests = {(metric, whose): test for metric, both in found["tests"].items() for whose, test in both.items()}
    low = [
        f"{metric.upper()}, {whose}"
        for (metric, whose), test in tests.items()
        if all(test[key] is not None and test[key] < SIGNIFICANT for key in ("p_t", "p_w"))
    ]
    said = f"A p below {SIGNIFICANT:g} means that chance alone is unlikely. Both tests are below it for: " + (
        f"{'; '.join(low)}." if low else "none."
    )
    return Table("Gain over 0-1 loss in points: paired tests over classes", columns, rows, said=said)


def choices_table(found: Mapping[str, Any]) -> Table:
    """The chosen C by class, loss and measure, and the mean of the folds there."""
    pairs = [(loss, metric) for metric in PAPER for loss in _losses(metric)]
    rows = [
        [
            part["class"],
            *(cell for loss, metric in pairs for cell in _choice(part[loss][metric])),
        ]
        for part in found["classes"]
    ]
    columns = [text for loss, m in pairs for text in (f"C, {LOSSES[loss]} by {m.upper()}", f"{m.upper()} in folds")]
    edges = sum(part[loss][metric]["at_edge"] for part in found["classes"] for loss, metric in pairs)
    said = (
        f"“edge” marks a C at the end of its grid, where a better one may lie beyond: {edges} of "
        f"{len(pairs) * len(rows)} choices."
    )
    return Table("The chosen C, and the mean of the folds in %", ["class", *columns], rows, said=said)


def _choice(part: Mapping[str, Any]) -> list[str]:
    return [f"{part['C']:.3g}" + (" (edge)" if part["at_edge"] else ""), f"{100.0 * part['cv']:.2f}"]


def as_csv(found: Mapping[str, Any]) -> str:
    """One line per class, loss and measure; values as fractions."""
    keys = ("C", "at_edge", "cv", "test", "objective", "gap", "converged", "calls")
    rows = [
        [part["class"], loss, metric, *(part[loss][metric][key] for key in keys)]
        for part in found["classes"]
        for loss, metrics in MEASURES.items()
        for metric in metrics
    ]
    rows += [
        ["mean", loss, metric, *(value if key == "test" else "" for key in keys)]
        for metric, means in found["mean"].items()
        for loss, value in means.items()
    ]
    return Table("", ["class", "loss", "metric", *keys], rows).as_csv()
