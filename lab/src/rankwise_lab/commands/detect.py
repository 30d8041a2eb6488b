"""`rankwise detect`: detection learnt from labels of whole images, one command per step."""

from __future__ import annotations

import argparse
from typing import Any

from rankwise_lab.commands import detect_evaluate, detect_prepare, detect_show, detect_train

# In the order in which they are run; each has add_command.
_STEPS = (detect_prepare, detect_train, detect_evaluate, detect_show)
_EPILOG = """\
Run rankwise detect STEP --help for the options of a step.

examples:
  rankwise detect prepare VOCdevkit features/
  rankwise detect train features/ --class scallop -o scallop.rw
  rankwise detect evaluate scallop.rw features/
  rankwise detect show photo.jpg -m scallop.rw
"""


def add_command(commands: Any) -> None:
    """Add `detect` and its steps."""
    detect = commands.add_parser(
        "detect",
        help="train and apply object detectors that need only labels of whole images",
        description="Train and apply object detectors. Training needs to know which images have the object, not where.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    steps = detect.add_subparsers(dest="step", required=True, metavar="STEP")
    for step in _STEPS:
        step.add_command(steps)
