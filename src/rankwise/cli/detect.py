"""`rankwise detect`: detection learnt from labels of whole images, a command a step."""

from __future__ import annotations

from typing import Any

from rankwise.cli import detect_evaluate, detect_prepare, detect_show, detect_train

# In the order in which they are run; each has add_command.
_STEPS = (detect_prepare, detect_train, detect_evaluate, detect_show)


def add_command(commands: Any) -> None:
    """Add `detect` and its steps."""
    what = "find objects of a class, learnt from images that are only said to have it or not"
    detect = commands.add_parser("detect", help=what, description=what[0].upper() + what[1:] + ".")
    steps = detect.add_subparsers(dest="step", required=True, metavar="STEP")
    for step in _STEPS:
        step.add_command(steps)
