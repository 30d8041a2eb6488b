"""Results of the CIFAR-10 experiment: means over seeds, paired differences, and tables beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rankwise_lab.data.cifar10 import Cifar10
from rankwise_lab.intervals import LEVEL, student
from rankwise_lab.report.table import Table
from rankwise_lab.reproduce.beside import LOSSES, METHODS, ratio

# Section 4.3: test means over the ten classes, in %, by the loss that was trained; and hours of training.
PAPER: dict[str, Any] = {
    "ap": {"zero-one": 84.22, "ap": 85.28},
    "ndcg": {"zero-one": 95.31, "ndcg": 96.14},
    "hours": {"ap": {"yue": 1.974, "quicksort": 1.589}, "ndcg": {"chakrabarti": 2.217, "quicksort": 1.632}},
}
METRICS = {"ap": "mean AP", "ndcg": "mean NDCG", "accuracy": "accuracy"}
_STAGES = {"warm": "after warm-up", "final": "after LW-SVM"}
# The fewest seeds that have an interval.
_FEWEST = 3


def document(
    plan: Any, cifar: Cifar10, n_test: int, seeds: list[dict[str, Any]], timed: Any, machine: dict[str, Any]
) -> dict[str, Any]:
    """Return everything as plain data."""
    return {
        "experiment": "cifar",
        "data": {
            "what": cifar.what,
            "images": {"train": plan.n_train, "val": plan.n_val, "test": n_test},
            "classes": list(cifar.classes),
        },
        "plan": asdict(plan),
        "seeds": seeds,
        "mean": _means(plan.losses, seeds),
        "differences": _differences(plan.losses, seeds),
        "inference": timed,
        "paper": PAPER,
        "machine": machine,
    }


def _means(losses: Sequence[str], seeds: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and deviation over seeds: of the pre-trained network, and by loss and stage."""
    means: dict[str, Any] = {"pretrained": _spread([seed["pretrained"]["test"] for seed in seeds])}
    for loss in losses:
        tests = [seed["losses"][loss]["test"] for seed in seeds]
        means[loss] = {stage: _spread([test[stage] for test in tests]) for stage in _STAGES}
    return means


def _spread(tests: list[dict[str, float]]) -> dict[str, Any]:
    found = {}
    for metric in METRICS:
        values = np.array([test[metric] for test in tests])
        deviation = float(values.std(ddof=1)) if values.size > 1 else None
        found[metric] = {"mean": float(values.mean()), "deviation": deviation}
    return found


def _differences(losses: Sequence[str], seeds: list[dict[str, Any]]) -> dict[str, Any]:
    """AP loss minus 0-1 loss in mean AP, and NDCG loss in mean NDCG: by seed, with an interval of the mean."""
    found: dict[str, Any] = {}
    if "zero-one" not in losses:
        return found
    for loss in (loss for loss in ("ap", "ndcg") if loss in losses):
        found[loss] = {}
        for stage in _STAGES:
            values = [
                seed["losses"][loss]["test"][stage][loss] - seed["losses"]["zero-one"]["test"][stage][loss]
                for seed in seeds
            ]
            found[loss][stage] = {"values": values, **asdict(student(values, _FEWEST))}
    return found


def metric_table(found: Mapping[str, Any], metric: str) -> Table:
    """A measure on test by the loss that was trained, at every stage, beside the paper's. metric: one of METRICS."""
    paper, means = found["paper"].get(metric, {}), found["mean"]
    columns = ["trained loss", "pre-trained (softmax)", *_STAGES.values()]
    rows = []
    for loss in found["plan"]["losses"]:
        stages = [means["pretrained"], *(means[loss][stage] for stage in _STAGES)]
        row = [LOSSES[loss], *(_with_deviation(stage[metric]) for stage in stages)]
        if paper:
            theirs = paper.get(loss)
            row += ["", ""] if theirs is None else [f"{theirs:.2f}", ratio(100.0 * stages[-1][metric]["mean"], theirs)]
        rows.append(row)
    if paper:
        columns += ["paper", "ours / paper"]
    seeds = len(found["seeds"])
    what = f"mean ± deviation over {seeds} seeds" if seeds > 1 else "one seed"
    best = max(found["plan"]["losses"], key=lambda loss: means[loss]["final"][metric]["mean"])
    helped = sum(
        means[loss]["final"][metric]["mean"] > means[loss]["warm"][metric]["mean"] for loss in found["plan"]["losses"]
    )
    said = (
        f"After LW-SVM, {LOSSES[best]} has the highest {METRICS[metric]}. LW-SVM improves on the warm-up for {helped} "
        f"of {len(rows)} losses."
    )
    title = f"Test {METRICS[metric]} over the {len(found['data']['classes'])} classes, in %: {what}"
    return Table(title, columns, rows, said=said)


def _with_deviation(spread: Mapping[str, Any]) -> str:
    deviation = "" if spread["deviation"] is None else f" ± {100.0 * spread['deviation']:.2f}"
    return f"{100.0 * spread['mean']:.2f}{deviation}"


def differences_table(found: Mapping[str, Any]) -> Table:
    """Gains of the measure's own loss over 0-1 loss: by seed, their mean and its interval, and the paper's."""
    seeds = [f"seed {seed['seed']}" for seed in found["seeds"]]
    rows = []
    for loss, stages in found["differences"].items():
        for stage, one in stages.items():
            ends = "-" if one["low"] is None else f"{100.0 * one['low']:+.2f} to {100.0 * one['high']:+.2f}"
            theirs = found["paper"][loss][loss] - found["paper"][loss]["zero-one"] if stage == "final" else None
            mean = 100.0 * one["mean"]
            rows.append(
                [
                    f"{METRICS[loss]}, {LOSSES[loss]}, {_STAGES[stage]}",
                    *(f"{100.0 * value:+.2f}" for value in one["values"]),
                    f"{mean:+.2f}",
                    ends,
                    *(["", ""] if theirs is None else [f"{theirs:+.2f}", ratio(mean, theirs)]),
                ]
            )
    columns = ["", *seeds, "mean", f"{LEVEL:.0%} interval", "paper", "ours / paper"]
    final = {loss: stages["final"]["values"] for loss, stages in found["differences"].items()}
    ahead = "; ".join(
        f"{LOSSES[loss]} in {sum(value > 0.0 for value in values)} of {len(values)} seeds"
        for loss, values in final.items()
    )
    said = f"Above 0, the measure's own loss is better than 0-1 loss. After LW-SVM this is so for {ahead}."
    title = "Gain over 0-1 loss on the test images, in percentage points, paired by seed"
    return Table(title, columns, rows, said=said)


def time_table(found: Mapping[str, Any]) -> Table:
    """Seconds of one pass of LW-SVM by method of inference and block size, and the paper's hours."""
    rows = []
    for loss, sizes in found["inference"].items():
        for k, size in enumerate(sizes):
            # The paper does not state its block size; its hours are beside the first one.
            rows += _time_rows(loss, size, found["paper"]["hours"][loss] if k == 0 else {})
    columns = ["", "inference, s", "all else, s", "whole, s", "calls", "ratio of inference", "ratio of the whole"]
    share = max(
        one["inference"] / one["total"]
        for sizes in found["inference"].values()
        for size in sizes
        for one in size["methods"].values()
    )
    said = (
        f"Inference is at most {share:.0%} of a pass, so a faster method saves little of the whole. Ratios say how "
        "many times as long the published method takes; compare “ratio of inference” with “ratio of the whole”."
        if share < 0.5
        else f"Inference is up to {share:.0%} of a pass. Ratios say how many times as long the published method takes."
    )
    title = "Seconds of one pass of LW-SVM"
    return Table(title, [*columns, "paper, hours of training", "paper, ratio"], rows, said=said)


def _time_rows(loss: str, size: Mapping[str, Any], hours: Mapping[str, float]) -> list[list[str]]:
    published, rows = next(iter(size["methods"])), []
    for method, one in size["methods"].items():
        first = size["methods"][published]
        row = [
            f"{LOSSES[loss]}, blocks of {size['block_size']:,}: {METHODS[method]}",
            f"{one['inference']:.2f}",
            f"{one['total'] - one['inference']:.1f}",
            f"{one['total']:.1f}",
            f"{one['calls']:,}",
            ratio(first["inference"], one["inference"]),
            ratio(first["total"], one["total"]),
        ]
        known = method in hours
        rows.append([*row, *([f"{hours[method]:.3f}", ratio(hours[published], hours[method])] if known else ["", ""])])
    return rows


def as_csv(found: Mapping[str, Any]) -> str:
    """One line per seed, loss and stage: measures as fractions, the choice, and seconds of the stage."""
    rows: list[list[Any]] = []
    for seed in found["seeds"]:
        start = seed["pretrained"]
        tests = [start["test"][metric] for metric in METRICS]
        rows.append([seed["seed"], "softmax", "pretrained", *tests, "", "", "", start["seconds"]])
        for loss, one in seed["losses"].items():
            for stage in _STAGES:
                ends = ("", one["warm_seconds"]) if stage == "warm" else (one["objective"], one["timing"]["total"])
                tests = [one["test"][stage][metric] for metric in METRICS]
                rows.append([seed["seed"], loss, stage, *tests, one["lam"], one["mu"], *ends])
    return Table("", ["seed", "loss", "stage", *METRICS, "lam", "mu", "objective", "seconds"], rows).as_csv()
