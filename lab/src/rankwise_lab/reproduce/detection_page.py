"""The detection experiment as a part of the report: tables beside the paper's numbers, and pictures of detections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.detection.pictures import draw, encode
from rankwise_lab.detection.store import FeatureStore
from rankwise_lab.report.blocks import Block, Heading, Paragraph
from rankwise_lab.report.claims import Claim, gain_claim
from rankwise_lab.report.figure import Gallery, Picture
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import detection_results as results
from rankwise_lab.reproduce.beside import TITLES, data_tags
from rankwise_lab.reproduce.detection import LOSSES
from rankwise_lab.reproduce.thumbnails import Gain, draw_gains

_NAME = "detection"
# Pictures per class: images with the highest scores, images with the highest wrong scores, and boxes per image.
_BEST, _FAILED, _BOXES = 3, 3, 4
# Colours follow the position in a list of names: the first is orange and the sixth green.
# As many times as fast counts as faster.
_FASTER = 1.1
_VERDICTS = ("wrong", "", "", "", "", "right")


class Drawn(NamedTuple):
    """A picture. failed: its best detection is wrong. file: its file name."""

    name: str
    file: str
    failed: bool
    picture: Any
    caption: str


_WHAT = (
    "Section 4.2 of the paper: object detectors learn from labels of whole images, without the position of the object. "
    "Each image is a bag of windows, and the window of the object is a latent variable. Detectors are trained for 0-1 "
    "loss and for AP loss; everything else is the same."
)


def draw_all(
    store: FeatureStore,
    judged: Mapping[tuple[str, str], results.Judged],
    paths: Mapping[str, Path],
    classes: list[str],
    side: int | None = None,
) -> list[Drawn]:
    """Draw, for every class, test images with its best detections (AP loss) and with its worst mistakes.

    side: pixels of the longer side of a picture, as for `draw`.
    """
    found = []
    for name in classes:
        best, failed = _chosen(judged[name, "ap"])
        for number, (image, wrong) in enumerate([*((i, False) for i in best), *((i, True) for i in failed)], 1):
            found.append(_drawn(store, judged[name, "ap"], name, int(image), wrong, number, paths, side))
    return found


def _chosen(judged: results.Judged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose images by the score of their best detection: the first few, and the first few where it is wrong."""
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
    side: int | None,
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
    picture = draw(pixels, boxes, scores, labels, truth, classes=_VERDICTS, side=side)
    objects = f"{len(truth)} in the image" if len(truth) else "none in the image"
    caption = f"{store.images[i]}: {int(right.sum())} of the {right.size} best windows right, {objects}"
    plain = "".join(letter if letter.isalnum() else "-" for letter in name)
    return Drawn(name, f"{plain}-{number}.png", failed, picture, caption)


def make_part(found: dict[str, Any], drawn: list[Drawn], no_pictures: str = "") -> Part:
    """Make the part. no_pictures: why there are no pictures, if so."""
    body = [
        Heading("Beside the paper", said="means and times"),
        results.beside_table(found),
        Heading("Table 5: detection AP by class", said="eleven points as in the paper, and the area under the curve"),
        *(results.table5(found, kind) for kind in results.KINDS),
        *map(Paragraph, _about_table5(found)),
        Heading("Other measures", said="ranking of images, and windows found"),
        results.measures_table(found),
        Paragraph(
            "“Images” is the AP of ranking whole test images by their best window. “Best window” is the share of "
            "training images with the class whose best window has an IoU of at least 0.5 with an object."
        ),
        Heading("Time in inference", said="by method, while detectors are trained for AP loss"),
        results.inference_table(found),
        Paragraph(
            "Each method solves the same training problem once. All methods find a most violating ranking exactly. "
            "Where the numbers of calls differ, they chose differently among rankings of equal value."
        ),
        Heading("Detections for AP loss, test images", said="pictures: the best and the worst"),
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
        claims=claims(found),
        thumbnail=draw_gains(_NAME, [Gain("AP loss", *_gain(found))]),
        tags=data_tags(not results.PAPER_CLASSES.keys() & set(found["data"]["classes"])),
    )


def _gain(found: Mapping[str, Any]) -> tuple[float, list[float], float]:
    """The mean gain of AP loss in points of eleven-point AP, its interval, and the paper's."""
    zero_one, ap = (100.0 * found["mean"][loss]["ap_2007"] for loss in LOSSES)
    ends = [100.0 * end for end in found["difference"]["ap_2007"]["mean"]]
    return ap - zero_one, ends, results.PAPER["ap"] - results.PAPER["zero-one"]


def claims(found: Mapping[str, Any]) -> list[Claim]:
    """The paper's claims on detection, with their verdicts."""
    seconds = {method: found["inference"][method]["inference"] for method in ("yue", "quicksort")}
    faster, paper = (one["yue"] / one["quicksort"] for one in (seconds, results.PAPER))
    criterion = f"At least {_FASTER:g} times as fast. How far depends on the number of images (paper: 5,011)."
    text = "Algorithm 1 beats Yue et al. in inference"
    return [
        gain_claim("AP loss gains eleven-point detection AP over 0-1 loss", *_gain(found), "test images"),
        Claim(text, f"{faster:.2f} ×", f"{paper:.2f} ×", criterion, faster >= _FASTER),
    ]


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
    """State what the numbers say, in sentences."""
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
        else "this is within chance, so the test images do not separate the losses"
    )
    return (
        f"Detection AP, {results.KINDS[kind]}: {ap:.2f} % for AP loss and {zero_one:.2f} % for 0-1 loss. AP loss is "
        f"better in {better} of {len(found['classes'])} classes. The mean difference is {ap - zero_one:+.2f} "
        f"({low:+.2f} to {high:+.2f}): {verdict}."
    )


def _about_table5(found: Mapping[str, Any]) -> list[str]:
    draws = found["difference"]["ap_2007"]["draws"]
    return [
        "The paper's numbers are means over the 20 classes of PASCAL VOC 2007, with another network. Unless both are "
        "the same here, compare only which loss is better, not the numbers themselves.",
        "The paper uses eleven-point AP. It is coarse when few objects are found: a single right detection at the top "
        "is worth 9.1 %. The area under the curve has no such steps.",
        f"Intervals are for the difference. Test images are redrawn {draws:,} times, in the same way for both losses.",
    ]


def facts(found: Mapping[str, Any]) -> list[str]:
    """Say how it was done."""
    data, plan = found["data"], found["plan"]
    images, windows, features = data["images"], data["windows"], data["features"]
    total = sum(windows.values())
    lines = [
        "Images: " + ", ".join(f"{images[name]:,} in {name}" for name in images) + ".",
        f"Windows: {total:,}, {total / sum(images.values()):.0f} per image ({features['proposals']} search, at most "
        f"{features['max_windows']}). Features: {features['dim']} per window from {features['model']}, at "
        f"{features['crop']} × {features['crop']} pixels.",
        "C: one of "
        + ", ".join(f"{C:g}" for C in plan["Cs"])
        + ". The detector that is trained on train and ranks the "
        "images of val best decides. This uses only labels of images, no boxes. The final detector is trained on train "
        "and val.",
        f"Start: {plan['start']}. Convex problems are solved to a relative gap of {plan['tol']:g}.",
        "Windows that overlap a better one of the same image by an IoU over 0.3 are dropped; 100 per image are kept.",
    ]
    if data["left_out"]:
        lines.append(f"Left out, in fewer than {plan['least']} images of train: {', '.join(data['left_out'])}.")
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
