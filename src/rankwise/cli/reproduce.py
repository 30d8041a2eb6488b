"""`rankwise reproduce`: the paper's experiments, from data to a report."""

from __future__ import annotations

from typing import Any

from rankwise.cli import reproduce_cifar, reproduce_detection

__all__ = ["add_command"]


def add_command(commands: Any) -> None:
    """Add `reproduce` and its experiments."""
    what = "run the paper's experiments and write a report"
    reproduce = commands.add_parser("reproduce", help=what, description=what[0].upper() + what[1:] + ".")
    experiments = reproduce.add_subparsers(dest="experiment", required=True, metavar="EXPERIMENT")
    reproduce_detection.add_command(experiments)
    reproduce_cifar.add_command(experiments)
