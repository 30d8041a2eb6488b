"""Results of the detection experiment: means, intervals, and tables beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.detection import Detections, VocAP, average_precision, detect
from rankwise_lab.intervals import LEVEL, percentile
from rankwise_lab.report.table import Table
from rankwise_lab.reproduce import beside
from rankwise_lab.reproduce.detection import LOSSES, METHODS, TRAIN, Experiment

# Mean detection AP over the 20 classes of VOC 2007, and seconds in inference, averaged over them (section 4.2).
PAPER = {"zero-one": 29.4995, "ap": 36.616, "yue": 7.623, "quicksort": 0.5214}
# Table 5: detection AP for 0-1 loss and for AP loss, by the names that VOC gives the classes.
PAPER_CLASSES = {
    "aeroplane": (46.60, 48.18),
    "bicycle": (48.53, 61.45),
    "bird": (33.31, 36.73),
    "boat": (15.23, 19.66),
    "bottle": (6.10, 1.01),
    "bus": (37.01, 49.51),
    "car": (61.28, 66.78),
    "cat": (38.12, 40.77),
    "chair": (2.71, 3.23),
    "cow": (21.06, 38.52),
    "diningtable": (14.20, 39.53),
    "dog": (33.55, 36.25),
    "horse": (46.14, 53.86),
    "motorbike": (29.97, 34.81),
    "person": (29.58, 30.41),
    "pottedplant": (21.27, 23.03),
    "sheep": (11.65, 32.20),
    "sofa": (36.66, 42.03),
    "train": (29.71, 37.10),
    "tvmonitor": (27.31, 37.26),
}
KINDS = {"ap_2007": "eleven points as in VOC 2007", "ap_area": "area under the curve"}
_MEASURES = {"ap_images": "images", "localised": "best window"}
_DRAWS, _DRAWS_AT_ONCE = 1000, 50
_ROUNDING = 1e-9


class Judged(NamedTuple):
    """The detections of a class on test, their evaluation (eleven points), and the number of objects per image."""

    name: str
    detections: Detections
    ap: VocAP
    objects: NDArray[np.int64]


def judge(experiment: Experiment) -> dict[tuple[str, str], Judged]:
    """Evaluate the trained detectors, by class and loss."""
    store, found = experiment.store, {}
    for name in experiment.classes:
        truth = store.truth(name, "test")
        objects = np.array([int((~difficult).sum()) for _, difficult in truth])
        for loss in LOSSES:
            detections = detect(experiment.model(name, loss), store, "test")
            found[name, loss] = Judged(name, detections, average_precision(detections, truth, kind="2007"), objects)
    return found


def document(
    experiment: Experiment, parts: list[dict[str, Any]], judged: dict[tuple[str, str], Judged], machine: dict[str, Any]
) -> dict[str, Any]:
    """Return everything as plain data."""
    store = experiment.store
    sets = {name: int(store.members(name).size) for name in (*TRAIN, "test")}
    windows = {name: int(store.bags[store.members(name)].n_candidates) for name in sets}
    means = {
        loss: {key: float(np.mean([part[loss][key] for part in parts])) for key in (*KINDS, *_MEASURES)}
        for loss in LOSSES
    }
    timings = [part["inference"]["methods"] for part in parts]
    totals = {
        method: {key: sum(one[method][key] for one in timings) / len(parts) for key in ("inference", "calls", "total")}
        for method in METHODS
    }
    return {
        "experiment": "detection",
        "data": {
            "images": sets,
            "windows": windows,
            "classes": experiment.classes,
            "left_out": experiment.left_out,
            "features": store.settings,
        },
        "plan": asdict(experiment.plan),
        "classes": parts,
        "mean": means,
        "difference": {kind: _difference(experiment.classes, judged, experiment.plan.seed, kind) for kind in KINDS},
        "inference": totals,
        "paper": PAPER,
        "machine": machine,
    }


def _difference(classes: list[str], judged: dict[tuple[str, str], Judged], seed: int, kind: str) -> dict[str, Any]:
    """AP loss minus 0-1 loss: intervals per class and for the mean, from test images redrawn the same way for both."""
    n_images = judged[classes[0], LOSSES[0]].objects.size
    rng = np.random.default_rng(seed)
    draws: dict[str, list[NDArray[np.float64]]] = {name: [] for name in classes}
    for _ in range(0, _DRAWS, _DRAWS_AT_ONCE):
        counts = rng.multinomial(n_images, np.full(n_images, 1.0 / n_images), size=_DRAWS_AT_ONCE)
        for name in classes:
            zero_one, ap = (redrawn(judged[name, loss], counts, kind) for loss in LOSSES)
            draws[name].append(ap - zero_one)
    by_class = {name: np.concatenate(parts) for name, parts in draws.items()}
    intervals = {name: percentile(values) for name, values in by_class.items()}
    mean = percentile(np.mean(list(by_class.values()), axis=0))
    return {"level": LEVEL, "draws": _DRAWS, "classes": intervals, "mean": mean}


def redrawn(judged: Judged, counts: NDArray[np.int64], kind: str) -> NDArray[np.float64]:
    """AP if image i occurs counts[:, i] times, (draws, images) → (draws,); nan if there is no object."""
    order = judged.ap.order
    weight = counts[:, np.asarray(judged.detections.image)[order]].astype(np.float64)
    hits = np.cumsum(weight * judged.ap.true[order], axis=1)
    seen = np.cumsum(weight * ~judged.ap.ignored[order], axis=1)
    n_positives = counts @ judged.objects
    precision = np.divide(hits, seen, out=np.zeros_like(hits), where=seen > 0.0)
    reached = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    values = np.full(len(counts), np.nan)
    for k in np.flatnonzero(n_positives):
        if kind == "ap_area":
            values[k] = np.diff(hits[k], prepend=0.0) @ reached[k] / n_positives[k]
        else:
            at = np.searchsorted(hits[k], np.arange(11) / 10.0 * n_positives[k] - _ROUNDING)
            values[k] = np.append(reached[k], 0.0)[at].mean()
    return values


def table5(found: Mapping[str, Any], kind: str = "ap_2007") -> Table:
    """The paper's Table 5: class, 0-1 loss, AP loss; kind: one of KINDS."""
    intervals, rows = found["difference"][kind], []
    for part in found["classes"]:
        values = [100.0 * part[loss][kind] for loss in LOSSES]
        rows.append([part["class"], *beside.compared(values, intervals["classes"][part["class"]], 1, ".2f")])
    means = [100.0 * found["mean"][loss][kind] for loss in LOSSES]
    rows.append(["mean", *beside.compared(means, intervals["mean"], 1, ".2f")])
    if kind == "ap_2007":
        rows.append(["paper, VOC 2007", *beside.compared([PAPER[loss] for loss in LOSSES], None, 1, ".2f")])
    columns = [
        "class",
        *(beside.LOSSES[loss] for loss in LOSSES),
        "difference",
        f"{intervals['level']:.0%} interval",
        "AP / 0-1",
    ]
    ends = list(intervals["classes"].values())
    better = sum(part["ap"][kind] > part["zero-one"][kind] for part in found["classes"])
    said = (
        f"AP loss has the higher AP in {better} of {len(ends)} classes. Look at the interval of the difference: it "
        f"lies above 0 in {sum(low > 0.0 for low, _ in ends)} classes and below 0 in "
        f"{sum(high < 0.0 for _, high in ends)}."
    )
    title = f"Detection AP on test, {KINDS[kind]}, in %"
    return Table(title, columns, rows, totals=len(rows) - len(found["classes"]), said=said)


def beside_table(found: Mapping[str, Any]) -> Table:
    """The paper's numbers, ours and the ratio: classes that the paper has, the means, and seconds."""
    rows: list[tuple[str, float | None, float | None]] = []
    for part in found["classes"]:
        for loss, theirs in zip(LOSSES, PAPER_CLASSES.get(part["class"], ()), strict=False):
            rows.append((f"AP of {part['class']}, {beside.LOSSES[loss]}, %", theirs, 100.0 * part[loss]["ap_2007"]))
    means = {loss: 100.0 * found["mean"][loss]["ap_2007"] for loss in LOSSES}
    seconds = {method: found["inference"][method]["inference"] for method in METHODS}
    rows += [(f"mean AP, {beside.LOSSES[loss]}, %", PAPER[loss], means[loss]) for loss in LOSSES]
    rows += [
        ("gain of AP loss, points", PAPER["ap"] - PAPER["zero-one"], means["ap"] - means["zero-one"]),
        *((f"inference, {beside.METHODS[method]}, s", PAPER.get(method), seconds[method]) for method in METHODS),
        ("Yue / Algorithm 1", PAPER["yue"] / PAPER["quicksort"], seconds["yue"] / seconds["quicksort"]),
        ("Yue / ours", None, seconds["yue"] / seconds["auto"]),
    ]
    said = (
        f"AP loss gains {means['ap'] - means['zero-one']:+.2f} points here and {PAPER['ap'] - PAPER['zero-one']:+.2f} "
        f"in the paper. Algorithm 1 is {seconds['yue'] / seconds['quicksort']:.1f} times as fast as Yue et al. here "
        f"and {PAPER['yue'] / PAPER['quicksort']:.1f} times in the paper."
    )
    return beside.beside("Eleven-point AP and seconds in inference (paper: VOC 2007)", rows, said=said)


def measures_table(found: Mapping[str, Any]) -> Table:
    """Other measures, by class and loss, and the chosen C."""
    columns = ["class", *(f"{what}, {beside.LOSSES[loss]}" for what in _MEASURES.values() for loss in LOSSES)]
    columns += [f"C, {beside.LOSSES[loss]}" for loss in LOSSES]
    rows = [
        [
            part["class"],
            *(f"{100.0 * part[loss][key]:.2f}" for key in _MEASURES for loss in LOSSES),
            *(f"{part[loss]['C']:g}" for loss in LOSSES),
        ]
        for part in found["classes"]
    ]
    means = [f"{100.0 * found['mean'][loss][key]:.2f}" for key in _MEASURES for loss in LOSSES]
    rows.append(["mean", *means, *[""] * len(LOSSES)])
    ahead = [sum(part["ap"][key] > part["zero-one"][key] for part in found["classes"]) for key in _MEASURES]
    said = (
        f"AP loss ranks images better in {ahead[0]} of {len(found['classes'])} classes and picks the right window more "
        f"often in {ahead[1]}."
    )
    return Table("Other measures, in %, and the chosen C", columns, rows, totals=1, said=said)


def inference_table(found: Mapping[str, Any]) -> Table:
    """Seconds in inference per training for AP loss, by method."""
    rows = []
    for part in found["classes"]:
        timings = part["inference"]["methods"]
        seconds = {method: timings[method]["inference"] for method in METHODS}
        calls = "/".join(dict.fromkeys(str(timings[method]["calls"]) for method in METHODS))
        rows.append([part["class"], *_times(seconds), calls, f"{timings['auto']['total']:.1f}"])
    totals = found["inference"]
    seconds = {method: totals[method]["inference"] for method in METHODS}
    rows.append(["mean", *_times(seconds), f"{totals['auto']['calls']:.0f}", f"{totals['auto']['total']:.1f}"])
    paper = {"yue": PAPER["yue"], "quicksort": PAPER["quicksort"], "auto": None}
    rows.append(["paper, VOC 2007", *_times(paper), "", ""])
    columns = ["class", *(beside.METHODS[method] for method in METHODS), "Yue / Algorithm 1", "Yue / ours", "calls"]
    title = "Seconds in inference per training for AP loss, at the chosen C"
    share = totals["auto"]["inference"] / totals["auto"]["total"]
    said = (
        f"Algorithm 1 is {totals['yue']['inference'] / totals['quicksort']['inference']:.1f} times as fast as Yue et "
        f"al. on average. With our own choice, inference is {share:.0%} of the whole training."
    )
    return Table(title, [*columns, "whole training"], rows, totals=2, said=said)


def _times(seconds: dict[str, Any]) -> list[str]:
    ratios = [seconds["yue"] / seconds[method] if seconds[method] else None for method in METHODS[1:]]
    shown = ["" if seconds[method] is None else f"{seconds[method]:.4f}" for method in METHODS]
    return [*shown, *("" if ratio is None else f"{ratio:.1f}" for ratio in ratios)]


def as_csv(found: Mapping[str, Any]) -> str:
    """One line per class and one for the mean: AP as a fraction, and seconds in inference."""
    keys = (*KINDS, *_MEASURES, "C")
    head = ["class", *(f"{loss}:{key}" for loss in LOSSES for key in keys), *(f"{m}:seconds" for m in METHODS)]
    rows = []
    for part in found["classes"]:
        values = [part[loss][key] for loss in LOSSES for key in keys]
        seconds = [part["inference"]["methods"][method]["inference"] for method in METHODS]
        rows.append([part["class"], *values, *seconds])
    means = [found["mean"][loss].get(key, "") for loss in LOSSES for key in keys]
    rows.append(["mean", *means, *(found["inference"][method]["inference"] for method in METHODS)])
    return Table("", head, rows).as_csv()
