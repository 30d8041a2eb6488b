"""`rankwise reproduce cifar`: section 4.3 of the paper, from images to a report."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import Any

from rankwise.cli import Voice, whole
from rankwise_lab.commands.options import add_option

_EPILOG = """\
Images are CIFAR-10 in --data, or in the folder named by RANKWISE_DATA: the original files, or PNG or JPEG files
(docs/data.md describes the layouts). JPEG is slightly lossy; the report says which files were used.

If a run is stopped, the same command resumes it: finished seeds, losses and layers are kept.

examples:
  rankwise reproduce cifar
  rankwise reproduce cifar --quick
  rankwise reproduce cifar --full --seeds 1 --out full/
"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--full", action="store_true", help="all images and the paper's network: takes days on two cores"
    )
    add_option(parser, "--seeds", whole(1), None, "N", "number of repetitions (default: 3; quick: 1)")
    add_option(parser, "--width", whole(1), None, "N", "filters of the first module (default: 16; full: 64)")
    add_option(parser, "--train", whole(10), None, "N", "training images (default: 10000; full: 45000)")
    add_option(parser, "--threads", whole(1, or_all=True), -1, "N", "threads (default: -1, one per processor)")


# Help, description, epilog and options.
TOLD = (
    "section 4.3: a network for CIFAR-10, trained by LW-SVM",
    "Section 4.3: piecewise-linear networks for CIFAR-10, trained for 0-1, AP and NDCG loss by LW-SVM.",
    _EPILOG,
    _add_options,
)


def run(arguments: argparse.Namespace, voice: Voice) -> Any:
    """Run section 4.3, and return its part of the report."""
    from rankwise_lab.data.cifar10 import find_cifar10, load_cifar10

    archive = find_cifar10(arguments.data)
    import torch

    from rankwise_lab.reproduce.cifar import Experiment
    from rankwise_lab.reproduce.cifar_page import draw, make_part
    from rankwise_lab.reproduce.cifar_results import document

    threads = os.cpu_count() or 1 if arguments.threads == -1 else int(arguments.threads)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        cifar = load_cifar10(archive)
        plan = _plan(arguments)
        seeds, timed = Experiment(cifar, arguments.out / "cifar", plan, say=voice.progress).run()
    finally:
        torch.set_num_threads(before)
    n_test = cifar.test_labels.size if plan.n_test is None else plan.n_test
    found = document(plan, cifar, n_test, seeds, timed, _machine(threads))
    return make_part(found, draw(found))


def _plan(arguments: argparse.Namespace) -> Any:
    from rankwise_lab.reproduce.cifar import Plan

    if arguments.quick and arguments.full:
        raise ValueError("--quick and --full cannot both be given")
    plan = Plan.full() if arguments.full else Plan.sized(arguments.quick)
    changes: dict[str, Any] = {"width": arguments.width, "n_train": arguments.train}
    if arguments.seeds is not None:
        changes["seeds"] = tuple(range(arguments.seeds))
    return replace(plan, **{name: value for name, value in changes.items() if value is not None})


def _machine(threads: int) -> dict[str, Any]:
    import torch

    from rankwise_lab.measuring.machine import describe

    return {**describe(), "torch": torch.__version__, "torch_threads": threads}
