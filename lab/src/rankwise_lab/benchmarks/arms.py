"""Arms, the ways to train that benchmarks of networks compare: their packages, and paired comparisons by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rankwise.cli import install_hint
from rankwise_lab.benchmarks.tasks import of_names
from rankwise_lab.intervals import interval_cells, student
from rankwise_lab.report.table import Table


class Package(NamedTuple):
    """A third-party package: the name to import, and how to install it."""

    name: str
    install: str

    @property
    def installed(self) -> bool:
        return find_spec(self.name) is not None


TORCH = Package("torch", install_hint("torch"))


@dataclass(frozen=True)
class Arm:
    """A way to train. make: returns a fresh loss; ours: False for a baseline."""

    name: str
    make: Callable[..., Any]
    ours: bool
    package: Package = TORCH


_A = TypeVar("_A", bound=Arm)


def asked(arms: Sequence[_A], names: Sequence[str] | None) -> list[_A]:
    """Return the arms with these names, or all. A missing package is an error for a named arm; others are left out."""
    chosen = of_names("arm", arms, names)
    for arm in chosen:
        if names is not None and not arm.package.installed:
            raise ValueError(f"arm {arm.name} needs {arm.package.name}, which is not installed: {arm.package.install}")
    return [arm for arm in chosen if arm.package.installed]


def of_whole_seeds(records: Iterable[Any], arms: Sequence[Arm]) -> tuple[list[int], dict[str, list[Any]]]:
    """Return the seeds that have records of all arms, and these records by arm, in that order."""
    by_seed: dict[int, dict[str, Any]] = {}
    for record in records:
        by_seed.setdefault(record.seed, {})[record.arm] = record
    seeds = [seed for seed in sorted(by_seed) if all(arm.name in by_seed[seed] for arm in arms)]
    return seeds, {arm.name: [by_seed[seed][arm.name] for seed in seeds] for arm in arms}


def compared(
    values: Mapping[str, Sequence[float]], arms: Sequence[Arm], reference: str | None = None
) -> dict[str, Any]:
    """Return the baseline with the best mean, and paired differences to it and to the reference, with intervals (t).

    values: one per seed, by arm.
    """
    means = {arm.name: float(np.mean(values[arm.name])) for arm in arms if not arm.ours}
    best = max(means, key=means.__getitem__) if means else None
    return {
        "best_baseline": best,
        "differences": {
            to: {name: asdict(student(np.subtract(of, values[to]))) for name, of in values.items() if name != to}
            for to in dict.fromkeys((reference, best))
            if to is not None and to in values
        },
    }


def arms_table(title: str, columns: Mapping[str, Mapping[str, float]], differences: Mapping[str, Any]) -> Table:
    """Make a table of arms: means by column (the first has all arms), then differences."""
    head = ["", *columns, *(cell for to in differences for cell in (f"minus {to}", "95 % interval"))]
    rows = [
        [
            name,
            *(f"{of[name]:.4f}" for of in columns.values()),
            *(cell for of in differences.values() for cell in interval_cells(of.get(name))),
        ]
        for name in next(iter(columns.values()))
    ]
    return Table(title, head, rows)
