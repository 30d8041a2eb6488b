"""`rankwise detect prepare`: windows of images and their features, from a VOC folder to a features folder."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from rankwise.cli.output import INTERRUPTED, Voice
from rankwise.cli.parsing import add_parser, add_quiet, real, whole

_EPILOG = """\
VOCDEVKIT is a folder as PASCAL VOC has it: VOC2007/JPEGImages, Annotations and ImageSets/Main; or its VOC2007.

The features folder is written image by image. Ctrl-C, a crash or a power cut loses none that is finished: the same
command goes on from there, and ends with the same files. Other settings want another folder.

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
        short="windows of images and their features",
        long="Find windows that may hold an object, and describe each by a convolutional network.",
        epilog=_EPILOG,
    )
    parser.add_argument("devkit", type=Path, metavar="VOCDEVKIT", help="the folder of images and annotations")
    parser.add_argument("folder", type=Path, metavar="FEATURES", help="the folder to write; a new one, or one begun")
    images = parser.add_argument_group("images")
    images.add_argument("--year", metavar="YEAR", help="such as 2007, where VOCDEVKIT has several")
    images.add_argument("--sets", nargs="+", metavar="NAME", help="only images of these sets (default: all)")
    windows = parser.add_argument_group("windows")
    windows.add_argument(
        "--proposals",
        choices=["fast", "quality", "sliding"],
        default="fast",
        help="selective search, fast or thorough, or a grid (default: fast)",
    )
    windows.add_argument(
        "--max-windows",
        type=whole(1),
        default=500,
        metavar="N",
        help="an image, the whole one among them (default: 500)",
    )
    windows.add_argument("--min-side", type=whole(1), default=12, metavar="N", help="pixels (default: 12)")
    features = parser.add_argument_group("features")
    features.add_argument(
        "--model", choices=["efficientnet-lite0"], default="efficientnet-lite0", help="(default: efficientnet-lite0)"
    )
    features.add_argument("--crop", type=whole(8), default=64, metavar="N", help="pixels a side it sees (default: 64)")
    features.add_argument(
        "--context", type=_part, default=0.0, metavar="F", help="seen around a window, of its sides (default: 0)"
    )
    running = parser.add_argument_group("running")
    running.add_argument(
        "--workers",
        type=whole(1, or_all=True),
        default=-1,
        metavar="N",
        help="images at a time; the files are the same with any number (default: -1, one a processor)",
    )
    running.add_argument("--threads", type=whole(1), default=1, metavar="N", help="of each worker (default: 1)")
    add_quiet(running)


def _part(text: str) -> float:
    return real(text, lambda value: 0.0 <= value < math.inf, "is not 0 or a positive number")


def run(arguments: argparse.Namespace) -> int:
    """Prepare, and say what came of it; 130 if interrupted."""
    import torch

    from rankwise.detection.preparing import prepare

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
            f"interrupted: {report.done} of {report.total} images are in {arguments.folder}; the same command goes on"
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
    """Writes how far it has come: on a terminal over the same line, elsewhere every few seconds."""

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
            text += " were there"
        self._stream.write(("\r\x1b[K" if self._drawing else "") + text + end)
        self._stream.flush()
        self._written = self.done


def _clock(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"
