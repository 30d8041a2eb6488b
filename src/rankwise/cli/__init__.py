"""The command line: argument parsing and printing only.

Public here is what a command of another package needs, which joins `rankwise` by an entry point of the group
`rankwise.commands`: a function that is given argparse's subparsers and adds a parser whose `run` takes the arguments
and returns a status.
"""

from rankwise.cli.output import BAD_INPUT, Voice, check_files, check_writable
from rankwise.cli.parsing import whole
from rankwise.extras import install_hint, missing

__all__ = ["BAD_INPUT", "Voice", "check_files", "check_writable", "install_hint", "missing", "whole"]
