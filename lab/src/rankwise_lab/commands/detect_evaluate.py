"""`rankwise detect evaluate`: average precision of a detector, as PASCAL VOC defines it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from rankwise.cli import (
    Voice,
    add_json,
    add_parser,
    check_files,
    counted,
    file_name,
    is_standard,
    number,
    quoted,
    real,
    whole,
    write_document,
    write_text,
)
from rankwise_lab.commands.options import add_option

_EPILOG = """\
how detections are counted:
  Every window gets a score. Within an image, a window is dropped if its overlap (intersection over union, IoU) with a
  window of higher score is above --nms. A detection is right if its IoU with an object that is not yet found is at
  least --overlap.

what is printed:
  Average precision is the area under the interpolated precision-recall curve (VOC 2010 and later), or the mean
  precision at eleven recalls (VOC 2007). Both are printed; --kind chooses which comes first. The average precision of
  images ranks whole images by their best window.

examples:
  rankwise detect evaluate scallop.rw features/
  rankwise detect evaluate scallop.rw features/ --set val --overlap 0.3 --json - --detections found.csv
"""


def add_command(steps: Any) -> None:
    """The step's arguments."""
    parser = add_parser(
        steps,
        "evaluate",
        run,
        short="measure the average precision of a detector",
        long="Measure how well a detector finds the objects in a set of images, by the rules of PASCAL VOC.",
        epilog=_EPILOG,
    )
    add_option(parser, "model", file_name, None, "MODEL.rw", "model written by rankwise detect train")
    add_option(parser, "folder", file_name, None, "FEATURES", "folder written by rankwise detect prepare")
    parser.add_argument("--set", nargs="+", default=["test"], metavar="NAME", help="image sets to use (default: test)")
    which = "class of the objects to count (default: the class of the model)"
    parser.add_argument("--class", dest="name", metavar="NAME", help=which)
    add_suppression(parser)
    add_option(parser, "--overlap", _part, 0.5, "IOU", "smallest IoU of a right detection (default: 0.5)")
    of = "kind of average precision, see below (default: area)"
    add_option(parser, "--kind", ["area", "2007"], "area", "", of)
    add_json(parser, "the result")
    add_option(parser, "--detections", file_name, None, "FILE.csv", "write all detections to a CSV file, best first")


def add_suppression(parser: argparse.ArgumentParser) -> None:
    """How many windows of an image become detections."""
    drop = "drop a window whose IoU with a better one is above this (default: 0.3)"
    add_option(parser, "--nms", _part, 0.3, "IOU", drop)
    add_option(parser, "--max-per-image", whole(1), 100, "N", "most detections per image (default: 100)")


def _part(text: str) -> float:
    number(text)  # which has an error of its own
    return real(text, lambda value: 0.0 <= value <= 1.0, "is not a number from 0 to 1")


def run(arguments: argparse.Namespace) -> int:
    """Detect, evaluate, and print the results."""
    from rankwise_lab.detection.detector import detect, image_ap
    from rankwise_lab.detection.detector_file import read_detector
    from rankwise_lab.detection.evaluation import average_precision
    from rankwise_lab.detection.store import FeatureStore

    outputs = {"--json": arguments.json, "--detections": arguments.detections}
    check_files({"MODEL": arguments.model}, outputs)
    voice = Voice(aside=is_standard(arguments.json) or is_standard(arguments.detections))
    detector, store = read_detector(arguments.model), FeatureStore.open(arguments.folder)
    detector.check(store)
    name = arguments.name or detector.name
    truth = store.truth(name, arguments.set)
    found = detect(detector.model, store, arguments.set, threshold=arguments.nms, max_per_image=arguments.max_per_image)
    by_kind = {
        kind: average_precision(found, truth, overlap=arguments.overlap, kind=kind)
        for kind in (arguments.kind, "2007" if arguments.kind == "area" else "area")
    }
    result = by_kind[arguments.kind]
    if not result.n_positives:
        raise ValueError(
            f"{arguments.folder}: no object of class {quoted(name)} in {' and '.join(arguments.set)}; "
            "use another --class or --set"
        )
    of_images = _or_none(image_ap, detector.model, store, name, arguments.set)
    best = int(result.true.sum())
    voice.say(
        f"{name} in {counted(len(truth), 'image')} of {' and '.join(arguments.set)}: "
        f"{counted(result.n_positives, 'object')}, {counted(len(result.order), 'detection')}, {best:,} right",
        *(f"average precision ({kind}): {100.0 * ap.value:.2f} %" for kind, ap in by_kind.items()),
        "average precision of images: " + ("-" if of_images is None else f"{100.0 * of_images:.2f} %"),
    )
    _write_detections(arguments.detections, store, arguments.set, found, result)
    document = {
        "model": arguments.model,
        "features": {"folder": arguments.folder, **store.settings},
        "class": name,
        "sets": arguments.set,
        "images": len(truth),
        "objects": result.n_positives,
        "detections": len(result.order),
        "right": best,
        "overlap": arguments.overlap,
        "nms": arguments.nms,
        "kind": arguments.kind,
        "average_precision": {kind: ap.value for kind, ap in by_kind.items()},
        "average_precision_of_images": of_images,
        "precision": result.precision,
        "recall": result.recall,
        "scores": result.scores,
    }
    write_document(arguments.json, "detect evaluate", document)
    return 0


def _or_none(measure: Any, *arguments: Any) -> float | None:
    """None where images with and without the class are not both there."""
    try:
        return float(measure(*arguments))
    except ValueError:
        return None


def _write_detections(path: Path | None, store: Any, sets: list[str], found: Any, result: Any) -> None:
    """One line per detection: image, score, box, and whether it is right."""
    ids = [store.images[i] for i in store.members(sets)]
    image, boxes, scores = (np.asarray(part) for part in (found.image, found.boxes, found.scores))
    lines = ["image,score,x1,y1,x2,y2,verdict"]
    for k in result.order:
        verdict = "ignored" if result.ignored[k] else "right" if result.true[k] else "wrong"
        box = ",".join(f"{side:g}" for side in boxes[k])
        lines.append(f"{ids[image[k]]},{scores[k]:.9g},{box},{verdict}")
    write_text(path, "\n".join(lines) + "\n")
