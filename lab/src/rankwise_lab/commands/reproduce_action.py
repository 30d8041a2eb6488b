"""`rankwise reproduce timing`, `scaling` and `action`: section 4.1 of the paper, on one set of ten classes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rankwise.cli import Voice

__all__ = ["add_action", "add_scaling", "add_timing", "run_action", "run_scaling", "run_timing"]

_EPILOG = """\
Data are VOC 2011's action features (docs/data.md tells the layout); else CIFAR-10 stands in, with activations of patch
detectors as features; else the digits inside scikit-learn. All three experiments choose C on the same folds, once.
"""


def add_timing(experiments: Any) -> argparse.ArgumentParser:
    """Add `timing` to the experiments."""
    return _add(experiments, "timing", "Tables 1 and 2: time in inference while rankers are trained")


def add_scaling(experiments: Any) -> argparse.ArgumentParser:
    """Add `scaling` to the experiments."""
    return _add(experiments, "scaling", "Figures 2 and 3: how that time grows, and far beyond, to 10⁷ samples")


def add_action(experiments: Any) -> argparse.ArgumentParser:
    """Add `action` to the experiments."""
    return _add(experiments, "action", "Tables 3 and 4: test AP and NDCG of ten classes, by loss")


def _add(experiments: Any, name: str, what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = experiments.add_parser(
        name, help=what, description=f"{what}.", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    return parser


def run_timing(arguments: argparse.Namespace, voice: Voice) -> Any:
    """Tables 1 and 2 as a part of the report."""
    from rankwise_lab.reproduce import action, timing
    from rankwise_lab.reproduce.timing_page import make_part

    plan, action_plan = timing.Plan.sized(arguments.quick), action.Plan.sized(arguments.quick)
    return make_part(_data(arguments, voice), arguments.out, plan, action_plan, voice.progress)


def run_scaling(arguments: argparse.Namespace, voice: Voice) -> Any:
    """Figures 2 and 3 as a part of the report."""
    from rankwise_lab.reproduce import action, scaling
    from rankwise_lab.reproduce.scaling_page import make_part

    plan, action_plan = scaling.Plan.sized(arguments.quick), action.Plan.sized(arguments.quick)
    return make_part(_data(arguments, voice), arguments.out, plan, action_plan, voice.progress)


def run_action(arguments: argparse.Namespace, voice: Voice) -> Any:
    """Tables 3 and 4 as a part of the report."""
    from rankwise_lab.reproduce import action
    from rankwise_lab.reproduce.action_page import make_part

    plan = action.Plan.sized(arguments.quick)
    return make_part(_data(arguments, voice), arguments.out, plan, voice.progress)


def _data(arguments: argparse.Namespace, voice: Voice) -> Any:
    from rankwise_lab.reproduce.action_data import find_action

    given: Path | None = arguments.data
    data = find_action(given, quick=arguments.quick)
    voice.progress(f"data: {data.what}")
    return data
