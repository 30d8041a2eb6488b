"""The command line: argument parsing and printing only.

The public names are those that a command of another package needs. Such a command is an entry point of the group
`rankwise.commands`: a function that takes argparse's subparsers and adds a parser whose `run` takes the arguments and
returns an exit status.
"""

from rankwise.cli.inputs import add_json, add_parser, add_quiet, file_name, number, real, whole
from rankwise.cli.output import (
    BAD_INPUT,
    INTERRUPTED,
    Voice,
    check_files,
    check_writable,
    counted,
    is_standard,
    write_document,
    write_text,
)
from rankwise.extras import install_hint, missing
from rankwise.io.quoting import shown as quoted

__all__ = [
    "BAD_INPUT", "INTERRUPTED", "Voice", "add_json", "add_parser", "add_quiet", "check_files", "check_writable",
    "counted", "file_name", "install_hint", "is_standard", "missing", "number", "quoted", "real", "whole",
    "write_document", "write_text",
]  # fmt: skip
