"""`rankwise reproduce cifar`: section 4.3 of the paper, from images to a report."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankwise.cli.inputs import whole
from rankwise.cli.output import Voice, table_lines
from rankwise.io import write_bytes

__all__ = ["add_command"]

_EPILOG = """\
Images are cifar10-jpeg.tar.xz, --data; else in the folder that RANKWISE_DATA names. They are CIFAR-10 as JPEG files, so
slightly lossy.

Killed at any moment, the same command goes on: neither a finished seed and loss nor a finished layer is done twice.

examples:
  rankwise reproduce cifar
  rankwise reproduce cifar --quick
  rankwise reproduce cifar --full --seeds 1 --out full/
"""


def add_command(experiments: Any) -> None:
    """Add `cifar` to the experiments."""
    parser = experiments.add_parser(
        "cifar",
        help="section 4.3: a network for CIFAR-10, trained by LW-SVM",
        description="Section 4.3: piecewise-linear networks for CIFAR-10, trained for 0-1, AP and NDCG loss by LW-SVM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_cifar)
    parser.add_argument("--data", type=Path, metavar="PATH", help="the archive of images, or the folder that has it")
    parser.add_argument("--out", type=Path, default=Path("report"), metavar="DIR", help="(default: report)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="few images and a tiny network, to see that all works")
    size.add_argument("--full", action="store_true", help="all images and the network of the paper: days of two cores")
    parser.add_argument("--seeds", type=whole(1), metavar="N", help="repetitions (default: 3; quick: 1)")
    parser.add_argument(
        "--width", type=whole(1), metavar="N", help="filters of the first module (default: 16; full: 64)"
    )
    parser.add_argument(
        "--train", type=whole(10), metavar="N", help="images to train with (default: 10000; full: 45000)"
    )
    parser.add_argument(
        "--threads", type=whole(1, or_all=True), default=-1, metavar="N", help="(default: -1, one a processor)"
    )


def _cifar(arguments: argparse.Namespace) -> int:
    from rankwise.io.cifar10 import find_cifar10, load_cifar10

    voice = Voice()
    out: Path = arguments.out
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")
    archive = find_cifar10(arguments.data)
    import torch

    from rankwise.reproduce.cifar import Experiment
    from rankwise.reproduce.cifar_figure import draw
    from rankwise.reproduce.cifar_page import NO_FIGURE, conclusions, facts, report, tables
    from rankwise.reproduce.cifar_results import as_csv, document

    threads = os.cpu_count() or 1 if arguments.threads == -1 else int(arguments.threads)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        cifar = load_cifar10(archive)
        plan = _plan(arguments)
        seeds, timed = Experiment(cifar, out / "cifar", plan, say=voice.progress).run()
    finally:
        torch.set_num_threads(before)
    n_test = cifar.test_labels.size if plan.n_test is None else plan.n_test
    found = document(plan, cifar.classes, n_test, seeds, timed, _machine(threads))
    figures = draw(found)
    _write(out, found, as_csv(found), report(found, figures), figures)
    for table in tables(found).values():
        voice.say(*table_lines(table), "")
    lines = [*facts(found), *conclusions(found), *([] if figures else [NO_FIGURE])]
    voice.say(*lines, "", f"report: {out / 'cifar.html'}")
    return 0


def _plan(arguments: argparse.Namespace) -> Any:
    from rankwise.reproduce.cifar import FULL, QUICK, Plan

    plan = QUICK if arguments.quick else FULL if arguments.full else Plan()
    changes: dict[str, Any] = {"width": arguments.width, "n_train": arguments.train}
    if arguments.seeds is not None:
        changes["seeds"] = tuple(range(arguments.seeds))
    return replace(plan, **{name: value for name, value in changes.items() if value is not None})


def _machine(threads: int) -> dict[str, Any]:
    import torch

    from rankwise.measuring.machine import describe

    return {**describe(), "torch": torch.__version__, "torch_threads": threads}


def _write(out: Path, found: dict[str, Any], csv: str, page: str, figures: dict[str, dict[str, bytes]]) -> None:
    """The report's files, each whole or not at all."""
    for loss, formats in figures.items():
        for form, content in formats.items():
            write_bytes(out / "cifar" / f"objective-{loss}.{form}", content)
    write_bytes(out / "cifar.json", (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
    write_bytes(out / "cifar.csv", csv.encode())
    write_bytes(out / "cifar.html", page.encode())
