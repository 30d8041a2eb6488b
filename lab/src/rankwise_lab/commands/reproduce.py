"""`rankwise reproduce`: the paper's experiments, from data to a report."""

from __future__ import annotations

import argparse
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankwise.cli import BAD_INPUT, Voice, missing
from rankwise_lab.commands import reproduce_action, reproduce_cifar, reproduce_detection
from rankwise_lab.data.folder import MissingDataError

__all__ = ["add_command"]

_EPILOG = """\
Data are looked for in --data, else in the folder that RANKWISE_DATA names, else in installed packages; docs/data.md
tells their layouts. What cannot be had is stood in for, and the report says by what.

Without an EXPERIMENT all of them are run; one that lacks its data or a package says so in a line. Killed at any moment,
the same command goes on: what is finished is in the report's folder and is not done again.

examples:
  rankwise reproduce --quick
  rankwise reproduce --data ~/data --out report/
  rankwise reproduce timing
"""
_QUICK = "A quick run, with few samples: it shows that all works, and its numbers mean little."
# By name: what adds it to the parser and what runs it, which gives a part of the report.
_EXPERIMENTS = {
    "timing": (reproduce_action.add_timing, reproduce_action.run_timing),
    "scaling": (reproduce_action.add_scaling, reproduce_action.run_scaling),
    "action": (reproduce_action.add_action, reproduce_action.run_action),
    "detection": (reproduce_detection.add_command, reproduce_detection.run),
    "cifar": (reproduce_cifar.add_command, reproduce_cifar.run),
}


def add_command(commands: Any) -> None:
    """Add `reproduce` and its experiments."""
    what = "run the paper's experiments and write a report"
    reproduce = commands.add_parser(
        "reproduce",
        help=what,
        description=what[0].upper() + what[1:] + ".",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.set_defaults(quick=False, out=Path("report"), data=None)
    _add_shared(reproduce)
    experiments = reproduce.add_subparsers(dest="experiment", metavar="[EXPERIMENT]")
    parsers = {name: add(experiments) for name, (add, _) in _EXPERIMENTS.items()}
    for parser in parsers.values():
        _add_shared(parser)
    reproduce.set_defaults(run=lambda arguments: _reproduce(arguments, parsers))


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Options before or after the name of an experiment: without a default, which would hide what was given before."""
    unset = argparse.SUPPRESS
    parser.add_argument("--data", type=Path, default=unset, metavar="PATH", help="where data are, a folder or a file")
    parser.add_argument("--out", type=Path, default=unset, metavar="DIR", help="of the report (default: report)")
    parser.add_argument("--quick", action="store_true", default=unset, help="a few samples, to see that all works")


def _reproduce(arguments: argparse.Namespace, parsers: dict[str, argparse.ArgumentParser]) -> int:
    from rankwise_lab.reproduce.report import check_out

    check_out(arguments.out)
    voice = Voice()
    try:
        if arguments.experiment is not None:
            return _one(arguments, voice)
        return _all(arguments, parsers, voice)
    except KeyboardInterrupt:
        voice.progress(f"what is finished is kept in {arguments.out}; the same command goes on from there")
        raise


def _one(arguments: argparse.Namespace, voice: Voice) -> int:
    from rankwise_lab.reproduce.report import write_index, write_part

    part = _run(arguments, voice)
    write_part(arguments.out, part)
    voice.say(*part.as_lines(), "")
    voice.say(f"report: {write_index(arguments.out)}")
    return 0


def _run(arguments: argparse.Namespace, voice: Voice) -> Any:
    part = _EXPERIMENTS[arguments.experiment][1](arguments, voice)
    return replace(part, lines=[_QUICK, *part.lines]) if arguments.quick else part


def _all(arguments: argparse.Namespace, parsers: dict[str, argparse.ArgumentParser], voice: Voice) -> int:
    """Every experiment; the page is written anew after each. One that cannot be run does not keep others from it."""
    from rankwise_lab.reproduce.report import write_index, write_part

    lacking: dict[str, str] = {}
    status = 0
    for name in _EXPERIMENTS:
        own = copy(arguments)
        own.experiment = name
        own = parsers[name].parse_args([], namespace=own)
        voice.progress(f"{name} …")
        try:
            part = _run(own, voice)
        except MissingDataError as error:
            lacking[name] = " ".join(str(error).split())
        except ModuleNotFoundError as error:
            said = missing(error, detecting=name == "detection")
            if said is None:
                raise
            lacking[name] = said
        except ValueError as error:  # the others are run all the same
            lacking[name], status = " ".join(str(error).split()), BAD_INPUT
            voice.note(f"{name}: {lacking[name]}")
        else:
            write_part(arguments.out, part)
            voice.say(*part.as_lines(), "")
        write_index(arguments.out, lacking)
    for name, why in lacking.items():
        voice.say(f"{name}: not run: {why}")
    voice.say(f"report: {write_index(arguments.out, lacking)}")
    return status
