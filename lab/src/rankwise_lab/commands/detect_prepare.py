"""`rankwise detect prepare`: compute windows of images and their features from a VOC folder."""

from __future__ import annotations

import argparse
import io
import math
import os
from typing import Any

from rankwise.cli import INTERRUPTED, Voice, add_parser, add_quiet, file_name, real, whole
from rankwise_lab.commands.options import add_option
from rankwise_lab.progress import Progress

_EPILOG = """\
VOCDEVKIT has the layout of PASCAL VOC: it contains VOC2007 with JPEGImages, Annotations and ImageSets/Main. You can
also name the folder VOC2007 itself.

The features folder is written image by image. After Ctrl-C, a crash or a power cut, run the same command again: it
continues with the next image and ends with the same files. For other settings, use another folder.

examples:
  rankwise detect prepare VOCdevkit features/
  rankwise detect prepare VOCdevkit features/ --year 2007 --sets trainval test --workers 4
  rankwise detect prepare VOCdevkit features/ --proposals quality --max-windows 1000 --crop 96
"""


def add_command(steps: Any) -> None:
    """The step's arguments."""
    parser = add_parser(
        steps,
        "prepare",
        run,
        short="find windows in images and compute their features",
        long="Find windows that may contain an object, and compute features of each with a convolutional network.",
        epilog=_EPILOG,
    )
    add_option(parser, "devkit", file_name, None, "VOCDEVKIT", "folder of images and annotations")
    to_write = "folder to write: a new one, or one that is not finished"
    add_option(parser, "folder", file_name, None, "FEATURES", to_write)
    images = parser.add_argument_group("images")
    which = "year to use if VOCDEVKIT has several, for example 2007 (default: the only one)"
    add_option(images, "--year", str, None, "YEAR", which)
    images.add_argument("--sets", nargs="+", metavar="NAME", help="use only the images of these sets (default: all)")
    windows = parser.add_argument_group("windows")
    how = "how windows are found: selective search (fast or quality) or a regular grid (sliding; default: fast)"
    add_option(windows, "--proposals", ["fast", "quality", "sliding"], "fast", "", how)
    most = "most windows per image, including the whole image (default: 500)"
    add_option(windows, "--max-windows", whole(1), 500, "N", most)
    add_option(windows, "--min-side", whole(1), 12, "N", "smallest side in pixels (default: 12)")
    features = parser.add_argument_group("features")
    network = "efficientnet-lite0"
    add_option(features, "--model", [network], network, "", f"network (default: {network})")
    add_option(features, "--crop", whole(8), 64, "N", "side of its input in pixels (default: 64)")
    border = "border around a window, as a fraction of its sides (default: 0)"
    add_option(features, "--context", _part, 0.0, "F", border)
    running = parser.add_argument_group("running")
    at_once = "images to process in parallel; the result does not depend on it (default: -1, one per processor)"
    add_option(running, "--workers", whole(1, or_all=True), -1, "N", at_once)
    add_option(running, "--threads", whole(1), 1, "N", "threads of each worker (default: 1)")
    add_quiet(running)


def _part(text: str) -> float:
    return real(text, lambda value: 0.0 <= value < math.inf, "is not 0 or a positive number")


def run(arguments: argparse.Namespace) -> int:
    """Prepare, and print a summary; 130 if interrupted."""
    import torch

    from rankwise_lab.detection.preparing import prepare

    voice = Voice(quiet=arguments.quiet)
    torch.set_num_threads(arguments.threads)
    progress = Progress(io.StringIO() if arguments.quiet else None)

    def told(done: int, total: int) -> None:
        if not progress.total:
            progress.section(f"Preparing {total} images", total, done)
        progress.at(done, "images")

    try:
        store = prepare(
            arguments.devkit,
            arguments.folder,
            year=arguments.year,
            sets=arguments.sets,
            proposals=arguments.proposals,
            max_windows=arguments.max_windows,
            min_side=arguments.min_side,
            model=arguments.model,
            crop=arguments.crop,
            context=arguments.context,
            workers=os.cpu_count() or 1 if arguments.workers == -1 else arguments.workers,
            progress=told,
        )
    except KeyboardInterrupt:
        progress.close()
        there = f"{progress.done} of {progress.total} images are in {arguments.folder}"
        voice.note(f"interrupted: {there}; run the same command to continue")
        return INTERRUPTED
    finally:
        progress.close()
    rows, dim = store.features.shape
    voice.say(
        f"{arguments.folder}: {len(store)} images, {rows} windows, {dim} features each",
        f"classes: {', '.join(store.classes)}",
        f"sets: {', '.join(f'{name} {len(members)}' for name, members in store.sets.items())}",
    )
    return 0
