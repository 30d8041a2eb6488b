"""`rankwise demo`: argument parsing and printing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rankwise.cli import check_writable

__all__ = ["add_command"]


def add_command(commands: Any) -> None:
    """Add `demo`."""
    demo = commands.add_parser("demo", help="train rankers on real images, compare them, time inference; writes a page")
    demo.add_argument("--json", type=Path, metavar="FILE", help="also write what is shown to FILE")
    demo.add_argument(
        "--page",
        type=Path,
        default=Path("rankwise-demo.html"),
        metavar="FILE.html",
        help="where the page goes (default: rankwise-demo.html)",
    )
    demo.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    check_writable(arguments.json)
    check_writable(arguments.page)
    from rankwise_lab.benchmarks.report import write_json
    from rankwise_lab.demo import experiment

    found = experiment.run()
    print("\n".join(experiment.lines(found)))
    if arguments.json is not None:
        write_json(arguments.json, experiment.as_dict(found))
    experiment.write_page(found, arguments.page)
    print(f"\npage: {arguments.page}")
    return 0 if found.holds else 1
