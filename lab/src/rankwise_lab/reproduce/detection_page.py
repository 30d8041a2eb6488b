"""The detection experiment as a page: tables beside the paper's numbers, and pictures of what was found and missed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.detection import FeatureStore, draw, encode
from rankwise_lab.report.blocks import Block, Heading, Paragraph
from rankwise_lab.report.figure import Gallery, Picture
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import detection_results as results
from rankwise_lab.reproduce.beside import TITLES
from rankwise_lab.reproduce.detection import LOSSES

__all__ = ["Drawn", "conclusions", "draw_all", "facts", "make_part"]

_NAME = "detection"
# Pictures of a class: images of the highest scores, and images of the highest scores that are wrong.
_BEST, _FAILED, _BOXES = 3, 3, 4
# Colours go by the place in a list of names: the first is orange and the sixth green.
_VERDICTS = ("wrong", "", "", "", "", "right")


class Drawn(NamedTuple):
    """A picture: whether its best detection is right, its name as a file, its content, and what is said below it."""

    name: str
    file: str
    failed: bool
    picture: Any
    caption: str


_WHAT = (
    "Section 4.2 of the paper: object detectors are learnt from images that are only said to have a class, not "
    "where. Each image is a bag of windows, and the window of an object is a latent variable. Detectors are "
    "trained for 0-1 loss and for AP loss, everything else alike."
)


def draw_all(
    store: FeatureStore, judged: Mapping[tuple[str, str], results.Judged], paths: Mapping[str, Path], classes: list[str]
) -> list[Drawn]:
    """Of every class, test images with its best detections (AP loss), and with its worst mistakes."""
    found = []
    for name in classes:
        best, failed = _chosen(judged[name, "ap"])
        for number, (image, wrong) in enumerate([*((i, False) for i in best), *((i, True) for i in failed)], 1):
            found.append(_drawn(store, judged[name, "ap"], name, int(image), wrong, number, paths))
    return found


def _chosen(judged: results.Judged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Images by the score of their best detection: the first few, and then the first few where it is wrong."""
    image = np.asarray(judged.detections.image)[judged.ap.order]
    _, first = np.unique(image, return_index=True)
    first = np.sort(first)
    wrong = ~(judged.ap.true | judged.ap.ignored)[judged.ap.order[first]]
    best = image[first[:_BEST]]
    failed = image[first[wrong]]
    return best, failed[~np.isin(failed, best)][:_FAILED]


def _drawn(
    store: FeatureStore,
    judged: results.Judged,
    name: str,
    image: int,
    failed: bool,
    number: int,
    paths: Mapping[str, Path],
) -> Drawn:
    from PIL import Image

    i = int(store.members("test")[image])
    order = judged.ap.order[np.asarray(judged.detections.image)[judged.ap.order] == image][:_BOXES]
    right = (judged.ap.true | judged.ap.ignored)[order]
    truth = np.array([thing.box for thing in store.objects(i) if thing.name == name]).reshape(-1, 4)
    with Image.open(paths[store.images[i]]) as opened:
        pixels = opened.convert("RGB")
    boxes, scores = np.asarray(judged.detections.boxes)[order], np.asarray(judged.detections.scores)[order]
    labels = ["right" if good else "wrong" for good in right]
    picture = draw(pixels, boxes, scores, labels, truth, classes=_VERDICTS)
    objects = f"{len(truth)} to be found" if len(truth) else "none in the image"
    caption = f"{store.images[i]}: {int(right.sum())} of the {right.size} best windows right, {objects}"
    plain = "".join(letter if letter.isalnum() else "-" for letter in name)
    return Drawn(name, f"{plain}-{number}.png", failed, picture, caption)


def make_part(found: dict[str, Any], drawn: list[Drawn], no_pictures: str = "") -> Part:
    """The experiment as a part of the report. no_pictures: why there are none, if so."""
    body = [
        results.beside_table(found),
        Heading("Table 5: detection AP by class"),
        *(results.table5(found, kind) for kind in results.KINDS),
        *map(Paragraph, _about_table5(found)),
        Heading("Other measures"),
        results.measures_table(found),
        Paragraph(
            "Images: AP of the ranking of whole test images, by their best window. Best window: the share of training "
            "images with the class whose best window has an IoU of at least 0.5 with an object."
        ),
        Heading("Time in inference"),
        results.inference_table(found),
        Paragraph(
            "The same training problem, once with each method: all of them find a most violating ranking exactly. "
            "Where the numbers of calls differ, rankings of equal value were told apart otherwise."
        ),
        Heading("Detections for AP loss, test images"),
        *_pictures(found, drawn, no_pictures),
    ]
    return Part(
        _NAME,
        TITLES[_NAME],
        _WHAT,
        found,
        conclusions(found),
        body,
        facts(found),
        results.as_csv(found),
        _tiles(found),
        pictures={f"pictures/{one.file}": encode(one.picture) for one in drawn},
    )


def _tiles(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    means, seconds = found["mean"], found["inference"]
    ratio = seconds["yue"]["inference"] / seconds["auto"]["inference"]
    what = "mean detection AP for 0-1 loss and AP loss"
    return [
        (_both(means, "ap_2007"), f"{what}, eleven points (paper, on VOC 2007: 29.5 and 36.6)"),
        (_both(means, "ap_area"), f"{what}, area under the curve"),
        (_both(means, "ap_images"), "AP of the ranking of images for 0-1 loss and AP loss"),
        (f"{ratio:.1f} ×", "faster inference than Yue et al. (paper, on 5,011 images: 14.6)"),
    ]


def _both(means: Mapping[str, Any], key: str) -> str:
    return " | ".join(f"{100.0 * means[loss][key]:.1f} %" for loss in LOSSES)


def conclusions(found: Mapping[str, Any]) -> list[str]:
    """What the numbers say, whichever way they fall."""
    lines = [_verdict(found, kind) for kind in results.KINDS]
    images = {loss: 100.0 * found["mean"][loss]["ap_images"] for loss in LOSSES}
    lines.append(
        f"Ranking of test images: {images['ap']:.2f} % for AP loss and {images['zero-one']:.2f} % for 0-1 loss."
    )
    return lines


def _verdict(found: Mapping[str, Any], kind: str) -> str:
    low, high = (100.0 * end for end in found["difference"][kind]["mean"])
    zero_one, ap = (100.0 * found["mean"][loss][kind] for loss in LOSSES)
    better = sum(part["ap"][kind] > part["zero-one"][kind] for part in found["classes"])
    verdict = (
        "AP loss is better beyond chance, as in the paper"
        if low > 0.0
        else "0-1 loss is better beyond chance, unlike in the paper"
        if high < 0.0
        else "that is within chance, this test set does not tell them apart"
    )
    return (
        f"Detection AP, {results.KINDS[kind]}: {ap:.2f} % for AP loss and {zero_one:.2f} % for 0-1 loss, AP loss the "
        f"better in {better} of {len(found['classes'])} classes; the mean difference is {ap - zero_one:+.2f} "
        f"({low:+.2f} to {high:+.2f}): {verdict}."
    )


def _about_table5(found: Mapping[str, Any]) -> list[str]:
    draws = found["difference"]["ap_2007"]["draws"]
    return [
        "The paper's numbers are means over the 20 classes of PASCAL VOC 2007, with another network; neither is to be "
        "had here. Not their height, only the order of the two losses can be compared.",
        "Eleven points are what the paper's data are judged by. They are coarse where few objects are found: if the "
        "single best detection is right, that alone is 9.1 %. The area has no such steps.",
        f"Intervals are of the difference, test images redrawn {draws:,} times, the same for both losses.",
    ]


def facts(found: Mapping[str, Any]) -> list[str]:
    """How it was done."""
    data, plan = found["data"], found["plan"]
    images, windows, features = data["images"], data["windows"], data["features"]
    total = sum(windows.values())
    lines = [
        ", ".join(f"{name}: {images[name]:,} images" for name in images)
        + f"; {total:,} windows, {total / sum(images.values()):.0f} an image "
        f"({features['proposals']} search, at most {features['max_windows']}); {features['dim']} features of "
        f"{features['model']}, which sees {features['crop']} pixels a side",
        "C: of " + ", ".join(f"{C:g}" for C in plan["Cs"]) + ", the one whose detector, trained on train, ranks the "
        "images of val best. Labels of images decide it; no box was looked at. Then trained on train and val",
        f"start: {' and '.join(plan['starts'])}"
        + ("" if plan["self_paced"] is None else f"; self-paced from {plan['self_paced']:g} of the positives")
        + f"; convex problems solved to a relative gap of {plan['tol']:g}",
        "windows of an image that overlap a better one by an IoU over 0.3 are dropped; 100 an image are kept",
    ]
    if data["left_out"]:
        lines.append(f"left out, in fewer than {plan['least']} images of train: {', '.join(data['left_out'])}")
    return lines


def _pictures(found: Mapping[str, Any], drawn: list[Drawn], no_pictures: str) -> list[Block]:
    if not drawn:
        return [Paragraph(no_pictures)]
    parts: list[Block] = [
        Paragraph("Green: right, an IoU of at least 0.5 with an object. Orange: wrong. Dashed: the objects.")
    ]
    for name in found["data"]["classes"]:
        for failed, title in ((False, "highest scores"), (True, "highest scores that are wrong")):
            these = [one for one in drawn if one.name == name and one.failed == failed]
            if these:
                label = f"{name}, detections and objects"
                pictures = [
                    Picture(encode(one.picture, "jpeg"), f"{label}: {one.caption}", one.caption) for one in these
                ]
                parts += [Heading(f"{name}: {title}", 2), Gallery(pictures)]
    return parts
