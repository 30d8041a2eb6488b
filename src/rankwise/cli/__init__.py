"""The command line: argument parsing and printing only.

The public names are those that a command of another package needs. Such a command is an entry point of the group
`rankwise.commands`: a function that takes argparse's subparsers and adds a parser whose `run` takes the arguments and
returns an exit status.
"""

from rankwise.cli.output import BAD_INPUT, Voice, check_files, check_writable
from rankwise.cli.parsing import add_parser, whole
from rankwise.extras import install_hint, missing
from rankwise.io.quoting import shown as quoted

__all__ = [
    "BAD_INPUT",
    "Voice",
    "add_parser",
    "check_files",
    "check_writable",
    "install_hint",
    "missing",
    "quoted",
    "whole",
]
