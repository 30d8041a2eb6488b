"""`rankwise`: train, apply and evaluate rankers. Other packages add commands through the entry points of _COMMANDS."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from rankwise import __version__
from rankwise.cli import evaluate, fit, predict, warmup
from rankwise.cli.output import BAD_INPUT, BROKEN_PIPE, INTERRUPTED
from rankwise.extras import LABORATORY, missing
from rankwise.io.quoting import printable, shorten
from rankwise.progress import tell

_OWN = {"fit": fit, "predict": predict, "evaluate": evaluate, "warmup": warmup}
_COMMANDS = "rankwise.commands"
# Commands of rankwise-lab; where it is not installed, they say how to install it.
_LABORATORY = ("bench", "demo", "detect", "explore", "reproduce")

# Arguments of functions that errors name; here they are options.
_OPTIONS = re.compile(r"(?<= )(label|query|ignore|format|empty)=(?=([;, ]|$)|')")

_EPILOG = """\
Run rankwise COMMAND --help for the options of a command.

examples:
  rankwise fit train.csv -o model.rw          # train a model
  rankwise evaluate model.rw test.csv         # measure how well it ranks new samples
  rankwise predict model.rw new.csv           # print a score for each sample
  rankwise warmup                             # compile ahead of time what first calls would compile
"""

# A word that argparse repeats whole.
_UNQUOTED = re.compile(r"(\S{80})\S{20,}")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        said = _UNQUOTED.sub(r"\1…", shorten(printable(message)))
        self.exit(BAD_INPUT, f"{self.prog}: {said} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed, 2 for bad usage or input, 130 if interrupted."""
    _replace_closed()
    given = sys.argv[1:] if argv is None else argv
    arguments = _parser(*given[:1]).parse_args(given)
    try:
        status: int = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader has gone: nothing more to say, and nothing to flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except ModuleNotFoundError as error:
        said = missing(error)
        if said is None:
            raise
        return _fail(said, BAD_INPUT)
    except MemoryError as error:
        return _fail(f"out of memory{f' ({error})' if str(error) else ''}; use fewer samples or features", BAD_INPUT)
    except OSError as error:
        return _fail(_of_system(error, given), BAD_INPUT)
    except ValueError as error:
        return _fail(_OPTIONS.sub(_as_option, shorten(_in_one_line(error, given))), BAD_INPUT)
    return status


def _replace_closed() -> None:
    """Put the null device where standard input, output or error is closed, and drop what is said on closed error.

    Otherwise the next file that is opened would get the number of the closed stream, and so whatever other libraries
    write there; and `print` would take standard output for a standard error that is None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(opened, True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # as long as the process


def _parser(name: str = "") -> argparse.ArgumentParser:
    """The parser; if name is a command of this package, with no other, as looking for those of others takes a while."""
    parser = _Parser(
        prog="rankwise",
        description="Train and evaluate models for ranking metrics such as average precision (AP) and NDCG.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"rankwise {__version__}", help="print the version and exit"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if name in _OWN:
        _OWN[name].add_command(commands)
    else:
        for command in _OWN.values():
            command.add_command(commands)
        _add_joined(commands)
    return parser


def _add_joined(commands: Any) -> None:
    """Commands of other packages: an entry point is a function that adds its command to the parser's."""
    joined = {point.name: point for point in entry_points(group=_COMMANDS) if point.name not in commands.choices}
    for name, point in sorted(joined.items()):
        try:
            point.load()(commands)
        except Exception as error:  # whatever is wrong with it concerns that command alone
            _add_unusable(commands, name, str(error) or type(error).__name__)
    for name in _LABORATORY:
        if name not in joined:
            why = f"{name} is part of rankwise-lab; to install it, {LABORATORY}"
            _add_unusable(commands, name, why)


def _add_unusable(commands: Any, name: str, why: str) -> None:
    """A command that only says why it cannot be used."""
    parser = commands.add_parser(name, help=f"not available: {why}", add_help=False, prefix_chars="\0")
    parser.add_argument("anything", nargs="*")

    def refuse(_: argparse.Namespace) -> int:
        return _fail(why, BAD_INPUT)

    parser.set_defaults(run=refuse)


def _in_one_line(error: Exception, given: Sequence[str]) -> str:
    """The message of an error, whose line ends are those of a library, unless they are in a name that was given."""
    said = str(error)
    for word in given:
        for name in (word, str(Path(word))):
            said = said if name.isprintable() else said.replace(name, printable(name))
    return " ".join(said.split())


def _of_system(error: OSError, given: Sequence[str]) -> str:
    """What the system says, without its number: the file first."""
    if error.errno is None or error.strerror is None:
        return _in_one_line(error, given)
    said = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {said}" if error.filename is not None else f"{said}; nothing more was written"


def _as_option(argument: re.Match[str]) -> str:
    return f"--{argument[1]}" + (" " if argument[2] is None else "")


def _fail(message: str, status: int) -> int:
    tell(f"rankwise: {printable(message)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
