"""What the parsers of commands share: how to make one, common options, and checks of values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankwise.cli.output import is_standard
from rankwise.io.quoting import shown as quoted
from rankwise.metrics import as_loss

_LARGEST_SEED = 2**32 - 1
_ASIDE = "to FILE as JSON. '-' is standard output; all text then goes to standard error"


def add_parser(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], *, short: str, long: str, epilog: str
) -> argparse.ArgumentParser:
    """The parser of a command, which `run` runs. short, long: what it does, in the list of commands and in its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=short, description=long, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    return parser


def option(group: Any, name: str, text: str, default: Any = None, **more: Any) -> None:
    """An option. text: what it is for, to which its default is added."""
    text += "" if default is None else f" (default: {default})"
    more = {"type": whole(*more.pop("whole")), "metavar": "N", **more} if "whole" in more else more
    group.add_argument(name, default=default, help=text, **more)


def add_json(parser: Any, what: str, aside: str = _ASIDE) -> None:
    """Where the results go as JSON. what: what is written."""
    option(parser, "--json", f"write {what} {aside}", type=file_name, metavar="FILE")


def add_quiet(parser: Any) -> None:
    """Whether to say nothing."""
    parser.add_argument(
        "--quiet", action="store_true", help="print only warnings and errors, no progress and no summary"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Where the model goes."""
    parser.add_argument(
        "-o", "--output", type=file_name, required=True, metavar="MODEL.rw", help="file to write the model to"
    )


def add_model(parser: argparse.ArgumentParser, data: str) -> None:
    """The model and the data to read. data: what they are."""
    parser.add_argument("model", type=file_name, metavar="MODEL.rw", help="model written by rankwise fit")
    parser.add_argument("data", type=file_name, metavar="DATA", help=f"{data}, or '-' for standard input")


def add_loss(group: Any) -> None:
    """A model's loss and C."""
    option(group, "--loss", "ranking loss to minimise, such as ndcg or ndcg@10", "ap", type=_loss)
    C = "weight of the loss against the regularisation; auto chooses it by validation (default: auto)"
    option(group, "--C", C, type=lambda text: None if text == "auto" else positive(text), metavar="auto|NUMBER")


def add_solver(group: Any, *, threads: str) -> None:
    """How a model is trained. threads: what they are used for."""
    tol = "stop when the objective is within this fraction of the minimum (relative duality gap)"
    option(group, "--tol", tol, 1e-3, type=positive)
    option(group, "--threads", f"threads for {threads}; -1 uses all processors", 1, whole=(1, None, True))


def add_seed(group: Any, seeds: str) -> None:
    """A random seed. seeds: what it is used for."""
    option(group, "--seed", f"random seed for {seeds}", 0, whole=(0, _LARGEST_SEED))


def check_trained(arguments: argparse.Namespace, choosing: tuple[str, ...]) -> None:
    """Refuse a model on standard output, and options that say how C is chosen, `choosing`, where C is given."""
    if is_standard(arguments.output):
        raise ValueError("-o -: a model cannot be written to standard output; name a file")
    given = [f"--{name}" for name in choosing if getattr(arguments, name) is not None]
    if arguments.C is not None and given:
        raise ValueError(f"{given[0]} controls how C is chosen, but --C is {arguments.C:g}; remove one of them")


def file_name(text: str) -> Path:
    """The name of a file or folder, for argparse."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; give that of a file or folder")
    return Path(text)


def real(text: str, holds: Callable[[float], bool], otherwise: str) -> float:
    """A number of which something holds, for argparse; else its text and `otherwise` are the error."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{quoted(text)} {otherwise}")
    return value


def number(text: str) -> float:
    """A finite number, for argparse."""
    return real(text, math.isfinite, "is not a finite number")


def positive(text: str) -> float:
    """A positive number, for argparse."""
    return real(text, lambda value: 0.0 < value < math.inf, "is not a positive number")


def _loss(text: str) -> str:
    try:
        as_loss(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).replace(", or a Loss object", "")) from None
    return text


def whole(least: int, most: int | None = None, or_all: bool = False) -> Callable[[str], int]:
    """A parser, for argparse, of whole numbers in a range; if or_all, −1 stands for all processors."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    every = ", or -1 for all processors" if or_all else ""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if (value < least or (most is not None and value > most)) and not (or_all and value == -1):
            raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number {bounds}{every}")
        return value

    return parse
