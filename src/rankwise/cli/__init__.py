"""The command line: argument parsing and printing only.

Public here is what a command of another package needs, which joins `rankwise` by an entry point of the group
`rankwise.commands`: a function that is given argparse's subparsers and adds a parser whose `run` takes the arguments
and returns a status.
"""

from rankwise.cli.extras import missing
from rankwise.cli.output import BAD_INPUT, Voice, check_files, check_writable
from rankwise.cli.parsing import whole

__all__ = ["BAD_INPUT", "Voice", "check_files", "check_writable", "missing", "whole"]
