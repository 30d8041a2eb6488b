"""`rankwise`: rankers trained, applied and judged; and what the library can do, shown and measured."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rankwise import __version__
from rankwise.cli import bench, detect, evaluate, explore, fit, predict, reproduce
from rankwise.cli.extras import missing
from rankwise.cli.output import BAD_INPUT, BROKEN_PIPE, INTERRUPTED, check_writable
from rankwise.io.quoting import shorten

__all__ = ["main"]

# Arguments of functions that errors name, and which are options here.
_OPTIONS = re.compile(r"(?<= )(label|query|format|max_memory)=(?=([;, ]|$)|')")

# A word that argparse repeats whole.
_UNQUOTED = re.compile(r"(\S{80})\S{20,}")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        said = _UNQUOTED.sub(r"\1…", shorten(message))
        self.exit(BAD_INPUT, f"{self.prog}: {said} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if a check failed, 2 for bad usage or input, 130 if interrupted."""
    arguments = _parser().parse_args(argv)
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
        detecting = arguments.command == "detect" or getattr(arguments, "experiment", None) == "detection"
        said = missing(error, detecting=detecting)
        if said is None:
            raise
        return _fail(said, BAD_INPUT)
    except MemoryError as error:
        return _fail(f"out of memory{f' ({error})' if str(error) else ''}; give fewer samples or features", BAD_INPUT)
    except OSError as error:
        return _fail(_of_system(error), BAD_INPUT)
    except ValueError as error:
        return _fail(_OPTIONS.sub(_as_option, shorten(" ".join(str(error).split()))), BAD_INPUT)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="rankwise", description="Structured ranking losses: AP, NDCG and their like, fast.")
    parser.add_argument("--version", action="version", version=f"rankwise {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (fit, predict, evaluate):
        command.add_command(commands)

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

    detect.add_command(commands)
    reproduce.add_command(commands)
    explore.add_command(commands)
    bench.add_command(commands)
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    check_writable(arguments.json)
    check_writable(arguments.page)
    from rankwise.benchmarks.report import write_json
    from rankwise.cli import demo

    found = demo.run()
    print("\n".join(demo.lines(found)))
    if arguments.json is not None:
        write_json(arguments.json, demo.as_dict(found))
    demo.write_page(found, arguments.page)
    print(f"\npage: {arguments.page}")
    return 0 if found.holds else 1


def _of_system(error: OSError) -> str:
    """What the system says, without its number: the file first."""
    if error.errno is None or error.strerror is None:
        return " ".join(str(error).split())
    said = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {said}" if error.filename is not None else f"{said}; nothing more was written"


def _as_option(argument: re.Match[str]) -> str:
    return f"--{argument[1].replace('_', '-')}" + (" " if argument[2] is None else "")


def _fail(message: str, status: int) -> int:
    print(f"rankwise: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
