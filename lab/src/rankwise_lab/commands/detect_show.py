"""`rankwise detect show`: draw the detections in one image."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from rankwise.cli import Voice, add_json, add_parser, check_files, file_name, is_standard, whole, write_document
from rankwise.io import write_bytes
from rankwise_lab.commands.detect_evaluate import add_suppression
from rankwise_lab.commands.options import add_option

_EPILOG = """\
Windows and features are computed with the settings that the model was trained with. With --features, those of the
folder are used if it has an image of that name, and its objects of the class are drawn with dashed lines.

examples:
  rankwise detect show photo.jpg -m scallop.rw
  rankwise detect show photo.jpg -m scallop.rw starfish.rw --top 3 -o found.png
  rankwise detect show VOCdevkit/VOC2007/JPEGImages/000012.jpg -m scallop.rw --features features/
"""


def add_command(steps: Any) -> None:
    """The step's arguments."""
    parser = add_parser(
        steps,
        "show",
        run,
        short="draw the detections in one image",
        long="Detect objects in one image, print the detections, and draw them.",
        epilog=_EPILOG,
    )
    add_option(parser, "image", file_name, None, "IMAGE", "JPEG or PNG file")
    models = "one or more models written by rankwise detect train"
    named: dict[str, Any] = {"type": file_name, "metavar": "MODEL.rw", "help": models}
    parser.add_argument("-m", "--model", nargs="+", required=True, **named)
    folder = "features folder that has the image (default: compute the features)"
    add_option(parser, "--features", file_name, None, "FEATURES", folder)
    add_option(parser, "--top", whole(1), 5, "N", "most detections to show per class (default: 5)")
    add_suppression(parser)
    to = "file to draw to (default: IMAGE-detections.png in the current folder)"
    parser.add_argument("-o", "--output", type=file_name, metavar="FILE.png", help=to)
    add_json(parser, "the detections")


def run(arguments: argparse.Namespace) -> int:
    """Detect, print and draw."""
    from rankwise_lab.detection.boxes import nms
    from rankwise_lab.detection.detector_file import read_detector
    from rankwise_lab.detection.pictures import draw, encode

    output = arguments.output or Path(f"{arguments.image.stem}-detections.png")
    inputs = {"IMAGE": arguments.image} | {f"--model {path}": path for path in arguments.model}
    check_files(inputs, {"--output": output, "--json": arguments.json})
    voice = Voice(aside=is_standard(arguments.json))
    detectors = [read_detector(path) for path in arguments.model]
    image = _pixels(arguments.image)
    boxes, features, truth = _windows(arguments, image, detectors)
    found: list[tuple[str, float, list[float]]] = []
    for detector in detectors:
        scores = detector.model.candidate_scores([features])
        best = nms(boxes, scores, arguments.nms)[: min(arguments.top, arguments.max_per_image)]
        found += [(detector.name, float(scores[k]), boxes[k].tolist()) for k in best]
    names = [detector.name for detector in detectors]
    picture = draw(
        image,
        np.array([box for _, _, box in found]),
        np.array([score for _, score, _ in found]),
        [name for name, _, _ in found],
        truth,
        classes=sorted(set(names)),
    )
    write_bytes(output, encode(picture))
    voice.say(
        f"{arguments.image}: {len(boxes)} windows",
        *(f"{name:>16} {score:9.4f}  {' '.join(f'{side:6.1f}' for side in box)}" for name, score, box in found),
        f"picture: {output}",
    )
    document = {
        "image": arguments.image,
        "windows": len(boxes),
        "detections": [{"class": name, "score": score, "box": box} for name, score, box in found],
        "picture": output,
    }
    write_document(arguments.json, "detect show", document)
    return 0


def _pixels(path: Path) -> Any:
    from PIL import Image

    try:
        with Image.open(path, formats=("JPEG", "PNG")) as picture:
            return np.array(picture.convert("RGB"))
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file; name a JPEG or PNG") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as an image ({type(error).__name__}); name a JPEG or PNG") from None


def _windows(arguments: argparse.Namespace, image: Any, detectors: list[Any]) -> tuple[Any, Any, Any]:
    """Boxes of the windows, their features, and boxes of the objects of the detectors' classes, if known."""
    if arguments.features is not None:
        from rankwise_lab.detection.store import FeatureStore

        store = FeatureStore.open(arguments.features)
        for detector in detectors:
            detector.check(store)
        if arguments.image.stem in store.images:
            i = store.images.index(arguments.image.stem)
            width, height = store.sizes[i]
            if image.shape[:2] != (height, width):
                raise ValueError(
                    f"{arguments.image} does not have the size recorded in {arguments.features}; remove --features"
                )
            names = {detector.name for detector in detectors}
            truth = np.array([thing.box for thing in store.objects(i) if thing.name in names]).reshape(-1, 4)
            return np.asarray(store.windows(i), np.float64), np.array(store.bags[i]), truth
    return *_described(image, [detector.features for detector in detectors], arguments.model), None


def _described(image: Any, settings: list[dict[str, Any]], models: list[Path]) -> tuple[Any, Any]:
    """Windows and features by the settings that the models were trained with."""
    from rankwise_lab.detection.cnn import MODELS, CropFeatures
    from rankwise_lab.detection.proposals import windows_of

    wanted = settings[0]
    for other, path in zip(settings, models, strict=True):
        if other != wanted:
            raise ValueError(f"{path} and {models[0]} were trained on different features; show them one at a time")
    if wanted["model"] not in MODELS:
        raise ValueError(f"{models[0]} needs features of {wanted['model']}, which is not available; use --features")
    network = CropFeatures(wanted["model"], crop=wanted["crop"], context=wanted["context"])
    if network.digest != wanted["weights"]:
        raise ValueError(f"{models[0]} needs other weights of {wanted['model']} than those installed; use --features")
    boxes = windows_of(image, wanted["proposals"], wanted["max_windows"], wanted["min_side"])
    return boxes, network(image, boxes)
