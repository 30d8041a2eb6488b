"""`rankwise reproduce`: run the paper's experiments, and write a report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rankwise.cli import BAD_INPUT, Voice, file_name, missing
from rankwise_lab.commands import reproduce_cifar, reproduce_detection
from rankwise_lab.data.folder import MissingDataError

_EPILOG = """\
Data are searched for in --data, then in the folder named by RANKWISE_DATA, then in installed packages. docs/data.md
describes their layout. Data that are not available are replaced by others, and the report says by which.

Without an EXPERIMENT, all of them are run. If one lacks its data or a package, a line says so. If a run is stopped, the
same command resumes it: finished pieces are kept in the report's folder.

examples:
  rankwise reproduce --quick
  rankwise reproduce --data ~/data --out report/
  rankwise reproduce timing
"""
_QUICK = "A quick run with few samples: it shows that everything works, but its numbers mean little."
_CLASSES_EPILOG = """\
Data are the action features of VOC 2011 (docs/data.md describes the layout). If they are not available, they are
replaced by CIFAR-10, with activations of patch detectors as features, or else by scikit-learn's digits. The three
experiments on these data share one choice of C, on the same folds.
"""


def add_command(commands: Any) -> None:
    """Add `reproduce` and its experiments to the command line."""
    what = "run the paper's experiments and write a report"
    reproduce = _add(commands, "reproduce", what, f"{what[0].upper()}{what[1:]}.", _EPILOG)
    reproduce.set_defaults(quick=False, out=Path("report"), data=None)
    experiments = reproduce.add_subparsers(dest="experiment", metavar="[EXPERIMENT]")
    parsers = {name: _add(experiments, name, *told) for name, (told, _) in _EXPERIMENTS.items()}
    reproduce.set_defaults(run=lambda arguments: _reproduce(arguments, parsers))


def _add(
    commands: Any,
    name: str,
    help: str,
    description: str,
    epilog: str,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> argparse.ArgumentParser:
    """Add a parser with its own options, and with those that may come before or after the name of an experiment."""
    form = argparse.RawDescriptionHelpFormatter
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=description, epilog=epilog, formatter_class=form
    )
    add_options(parser)
    unset = argparse.SUPPRESS  # a default would hide what was given before
    parser.add_argument("--data", type=file_name, default=unset, metavar="PATH", help="the data, a folder or a file")
    parser.add_argument(
        "--out", type=file_name, default=unset, metavar="DIR", help="the folder of the report (default: report)"
    )
    parser.add_argument(
        "--quick", action="store_true", default=unset, help="use few samples, to check that everything works"
    )
    return parser


def _on_classes(name: str, what: str) -> tuple[tuple[str, str, str], Callable[[argparse.Namespace, Voice], Any]]:
    """Describe an experiment of section 4.1, on one set of ten classes; `action` chooses C for all of them."""

    def run(arguments: argparse.Namespace, voice: Voice) -> Any:
        from rankwise_lab.reproduce.action_data import find_action

        modules = {one: import_module(f"rankwise_lab.reproduce.{one}") for one in (name, "action")}
        plans = [module.Plan.sized(arguments.quick) for module in modules.values()]
        data = find_action(arguments.data, quick=arguments.quick)
        voice.progress(f"data: {data.what}")
        page = import_module(f"rankwise_lab.reproduce.{name}_page")
        return page.make_part(data, arguments.out, *plans, voice.progress)

    return (what, f"{what}.", _CLASSES_EPILOG), run


# By name: what the parser needs, and the function that runs the experiment and returns its part of the report.
_EXPERIMENTS: dict[str, tuple[tuple[Any, ...], Callable[[argparse.Namespace, Voice], Any]]] = {
    "timing": _on_classes("timing", "Tables 1 and 2: time in inference while rankers are trained"),
    "scaling": _on_classes("scaling", "Figures 2 and 3: how that time grows, up to 10⁷ samples"),
    "action": _on_classes("action", "Tables 3 and 4: test AP and NDCG of ten classes, by loss"),
    "detection": (reproduce_detection.TOLD, reproduce_detection.run),
    "cifar": (reproduce_cifar.TOLD, reproduce_cifar.run),
}


def _reproduce(arguments: argparse.Namespace, parsers: dict[str, argparse.ArgumentParser]) -> int:
    from rankwise_lab.reproduce.report import check_out

    check_out(arguments.out)
    voice = Voice()
    try:
        if arguments.experiment is not None:
            return _one(arguments, voice)
        return _all(arguments, parsers, voice)
    except KeyboardInterrupt:
        voice.progress(f"finished pieces are kept in {arguments.out}; run the same command to resume")
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
    if not arguments.quick:
        return part
    return replace(part, lines=[_QUICK, *part.lines], tags=["quick run", *part.tags])


def _all(arguments: argparse.Namespace, parsers: dict[str, argparse.ArgumentParser], voice: Voice) -> int:
    """Run every experiment, and write the page after each; one that cannot be run does not stop the others."""
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
            said = missing(error)
            if said is None:
                raise
            lacking[name] = said
        except ValueError as error:  # still run the others
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
