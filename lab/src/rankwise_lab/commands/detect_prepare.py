"""`rankwise detect prepare`: compute windows of images and their features from a VOC folder."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from typing import Any, TextIO

from rankwise.cli import INTERRUPTED, Voice, add_parser, add_quiet, file_name, real, whole
from rankwise_lab.commands.options import add_option

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
    report = Report(arguments.quiet)
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
            progress=report,
        )
    except KeyboardInterrupt:
        report.close()
        voice.note(
            f"interrupted: {report.done} of {report.total} images are in {arguments.folder}; "
            "run the same command to continue"
        )
        return INTERRUPTED
    except BaseException:
        report.close()
        raise
    report.close()
    rows, dim = store.features.shape
    voice.say(
        f"{arguments.folder}: {len(store)} images, {rows} windows, {dim} features each",
        f"classes: {', '.join(store.classes)}",
        f"sets: {', '.join(f'{name} {len(members)}' for name, members in store.sets.items())}",
    )
    return 0


class Report:
    """Prints progress: on a terminal it updates one line, elsewhere it prints a line every few seconds."""

    def __init__(self, quiet: bool, stream: TextIO | None = None) -> None:
        self._quiet, self._stream = quiet, sys.stderr if stream is None else stream
        self._drawing = self._stream.isatty()
        self._every = 0.2 if self._drawing else 5.0
        self._start = self._last = time.perf_counter()
        self._before: int | None = None
        self._written = -1
        self.done = self.total = 0

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` images are finished; the first call says how many were there before."""
        self.done, self.total = done, total
        now = time.perf_counter()
        if self._before is None:
            self._before, self._start = done, now
        if now - self._last >= self._every or done == self._before:
            self._last = now
            self._write("" if self._drawing else "\n")

    def close(self) -> None:
        """Leave the last line standing."""
        if self._before is not None and (self._drawing or self._written != self.done):
            self._write("\n")

    def _write(self, end: str) -> None:
        if self._quiet:
            return
        assert self._before is not None
        new, seconds = self.done - self._before, time.perf_counter() - self._start
        text = f"prepare: {self.done} of {self.total} images"
        if new:
            rate = new / max(seconds, 1e-9)
            text += f", {rate:.2f} images/s, {_clock((self.total - self.done) / rate)} left"
        elif self._before:
            text += " already done"
        self._stream.write(("\r\x1b[K" if self._drawing else "") + text + end)
        self._stream.flush()
        self._written = self.done


def _clock(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"
