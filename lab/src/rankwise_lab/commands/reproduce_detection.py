"""`rankwise reproduce detection`: Table 5 of the paper, from images to a report."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from rankwise.cli import Voice, file_name, whole
from rankwise_lab.commands.options import add_option

_WINDOWS, _QUICK_WINDOWS = 500, 60
_QUICK_IMAGES = {"train": 40, "val": 20, "test": 20}
# Pixels of the longer side of a picture.
_QUICK_SIDE = 480
_EPILOG = """\
Images are in the VOC folder --devkit, or else in VOCdevkit or underwater-voc.tar.xz in --data or in the folder named by
RANKWISE_DATA. Their features are computed once, in the cache (RANKWISE_CACHE_DIR) or in --features.

If a run is stopped, the same command resumes it: finished images and detectors are kept.

examples:
  rankwise reproduce detection
  rankwise reproduce detection --devkit VOCdevkit --out report/ --workers 4
  rankwise reproduce detection --quick
"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--devkit", type=file_name, metavar="VOCDEVKIT", help="folder of images and annotations")
    parser.add_argument("--year", metavar="YEAR", help="year of the images, such as 2007, if VOCDEVKIT has several")
    add_option(parser, "--features", file_name, None, "DIR", "features folder, created if it does not exist")
    windows = f"windows per image (default: {_WINDOWS}; quick: {_QUICK_WINDOWS})"
    add_option(parser, "--max-windows", whole(1), None, "N", windows)
    at_once = "images processed at a time, and training threads (default: -1, one per processor)"
    add_option(parser, "--workers", whole(1, or_all=True), -1, "N", at_once)


# Help, description, epilog and options.
TOLD = (
    "Table 5: weakly supervised detection",
    "Section 4.2: train detectors from labels of whole images, for 0-1 loss and for AP loss (Table 5).",
    _EPILOG,
    _add_options,
)


def run(arguments: argparse.Namespace, voice: Voice) -> Any:
    """Run Table 5, and return its part of the report."""
    from rankwise_lab.measuring.machine import describe
    from rankwise_lab.reproduce.detection import Experiment, Plan
    from rankwise_lab.reproduce.detection_page import draw_all, make_part
    from rankwise_lab.reproduce.detection_results import document, judge

    store, paths, why_not = _store(arguments, voice)
    plan = Plan.sized(arguments.quick)
    experiment = Experiment(store, arguments.out / "detection", plan, n_threads=_workers(arguments), say=voice.progress)
    parts = experiment.run()
    judged = judge(experiment)
    found = document(experiment, parts, judged, describe())
    side = _QUICK_SIDE if arguments.quick else None
    drawn = draw_all(store, judged, paths, experiment.classes, side) if paths else []
    return make_part(found, drawn, why_not)


def _workers(arguments: argparse.Namespace) -> int:
    return os.cpu_count() or 1 if arguments.workers == -1 else int(arguments.workers)


def _store(arguments: argparse.Namespace, voice: Voice) -> tuple[Any, dict[str, Path], str]:
    """Return the features, the image files by id, and why there are no files, if so."""
    from rankwise_lab.detection.store import FeatureStore
    from rankwise_lab.detection.voc import read_voc
    from rankwise_lab.progress import Progress
    from rankwise_lab.reproduce.detection_data import SETS, default_year, featured, find_devkit, smaller

    given = arguments.features
    if given is not None and FeatureStore.is_finished(given):
        store = FeatureStore.open(given)
        return store, *_pictured(store, arguments)
    devkit = find_devkit(arguments.devkit, arguments.data)
    year = arguments.year or default_year(devkit)
    import torch

    torch.set_num_threads(1)
    if arguments.quick:
        devkit = smaller(devkit, year, _QUICK_IMAGES)
    windows = arguments.max_windows or (_QUICK_WINDOWS if arguments.quick else _WINDOWS)
    voice.progress(f"images: {devkit}")
    bar = Progress()

    def progress(done: int, total: int) -> None:
        if bar.total != total:
            bar.section("computing windows of images and their features", total)
        bar.at(done, f"{done} of {total} images")

    year = None if arguments.quick else year
    store = featured(devkit, year, given, workers=_workers(arguments), progress=progress, max_windows=windows)
    bar.close()
    return store, {image.image_id: image.path for image in read_voc(devkit, year, SETS).images}, ""


def _pictured(store: Any, arguments: argparse.Namespace) -> tuple[dict[str, Path], str]:
    """Return the image files of a features folder if they are available; if not, why there are no pictures."""
    from rankwise_lab.detection.voc import read_voc
    from rankwise_lab.reproduce.detection_data import SETS, default_year, find_devkit

    try:
        devkit = find_devkit(arguments.devkit, arguments.data)
        images = read_voc(devkit, arguments.year or default_year(devkit), SETS).images
    except (OSError, ValueError):
        if arguments.devkit is not None:
            raise
        images = ()
    paths = {image.image_id: image.path for image in images}
    if all(store.images[i] in paths for i in store.members("test")):
        return paths, ""
    return {}, "No pictures: the images of these features were not found; name their folder with --devkit."
