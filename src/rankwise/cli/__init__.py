"""The command line: argument parsing and printing only.

The public names are those that a command of another package needs. Such a command is an entry point of the group
`rankwise.commands`: a function that takes argparse's subparsers and adds a parser whose `run` takes the arguments and
returns an exit status.
"""

from rankwise.cli.inputs import counted
from rankwise.cli.output import (
    BAD_INPUT,
    INTERRUPTED,
    Voice,
    check_files,
    check_writable,
    is_standard,
    write_document,
    write_text,
)
from rankwise.cli.parsing import (
    add_json,
    add_loss,
    add_output,
    add_parser,
    add_quiet,
    add_seed,
    add_solver,
    check_trained,
    file_name,
    number,
    real,
    whole,
)
from rankwise.extras import install_hint, missing
from rankwise.io.quoting import shown as quoted

__all__ = [
    "BAD_INPUT",
    "INTERRUPTED",
    "Voice",
    "add_json",
    "add_loss",
    "add_output",
    "add_parser",
    "add_quiet",
    "add_seed",
    "add_solver",
    "check_files",
    "check_trained",
    "check_writable",
    "counted",
    "file_name",
    "install_hint",
    "is_standard",
    "missing",
    "number",
    "quoted",
    "real",
    "whole",
    "write_document",
    "write_text",
]
