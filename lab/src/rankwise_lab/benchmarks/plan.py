"""How a benchmark is laid out and run: sections of cases, each a few rows of numbers beside their targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rankwise_lab.measuring import machine
from rankwise_lab.pieces import Plan
from rankwise_lab.progress import Progress

# Positives and negatives of one action class in the paper's timings.
PAPER = (227, 3120)
LOSSES = {"ap": "AP", "ndcg": "NDCG"}


@dataclass(frozen=True)
class Sizes(Plan):
    """How large the problems of inference are, and how often each is timed.

    small, medium, large: negatives beside n_pos positives; medium is also the size of unfriendly queries, which have
    one of unfriendly_pos positives. outlier: sizes of queries with an outlier, on both sides of a switch of the engine.
    """

    n_pos: int = 1000
    small: int = 10**5
    medium: int = 10**6
    large: int = 10**7
    unfriendly_pos: tuple[int, ...] = (10, 10**3, 30_000)
    outlier: tuple[int, ...] = (65_535, 65_536)
    work_negatives: tuple[int, ...] = (10**3, 10**4, 10**5, 10**6)
    work_positives: tuple[int, ...] = (10, 100, 10**3, 10**4)
    few_pos: int = 100
    many_pos: int = 10**4
    pairs_pos: int = 300
    pairs_neg: int = 300_000
    queries: int = 10**4
    repeats: int = 9
    start_ups: int = 5
    cold: bool = True
    figure_points: int = 9
    figure_largest: int = 30_000

    @classmethod
    def quick(cls) -> Sizes:
        return cls(
            n_pos=100,
            small=10**3,
            medium=10**4,
            large=10**5,
            unfriendly_pos=(10, 300),
            outlier=(4095, 4096),
            work_negatives=(10**3, 10**4),
            work_positives=(10, 100),
            few_pos=10,
            many_pos=10**3,
            pairs_pos=30,
            pairs_neg=3000,
            queries=200,
            repeats=2,
            start_ups=1,
            cold=False,
            figure_points=3,
            figure_largest=1000,
        )


@dataclass(frozen=True)
class Target:
    """A bound on a measured number; sense is "<=" or ">="."""

    sense: str
    bound: float

    def met(self, measured: float) -> bool:
        return measured <= self.bound if self.sense == "<=" else measured >= self.bound


def at_most(bound: float) -> Target:
    """The target: measured ≤ bound."""
    return Target("<=", bound)


def at_least(bound: float) -> Target:
    """The target: measured ≥ bound."""
    return Target(">=", bound)


@dataclass(frozen=True)
class Row:
    """One measured number. `measured` is None if this machine cannot measure it; `parts` are its components."""

    what: str
    measured: float | None
    unit: str = "x"
    target: Target | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a measurement."""
        if self.target is None or self.measured is None:
            return None
        return self.target.met(self.measured)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


def over(what: str, found: Mapping[str, float], first: str, second: str, *, target: Target | None = None) -> Row:
    """Return the row of a ratio: the first of the measured values over the second."""
    parts = {name: found[name] for name in (first, second)}
    return Row(what, found[first] / found[second], target=target, parts=parts)


@dataclass(frozen=True)
class Case:
    """One thing to measure: a label for the progress bar, and a function that yields its rows."""

    label: str
    rows: Callable[[], Iterable[Row]]


@dataclass(frozen=True)
class Section:
    """A numbered question and the cases that answer it."""

    number: int
    title: str
    cases: Callable[[Any], list[Case]]


class Benchmark:
    """Sections under one name, and the plan that sets the size of their problems."""

    def __init__(self, name: str, sections: Iterable[Section], sizes: type[Plan]) -> None:
        self.name, self.sizes = name, sizes
        self.sections = {section.number: section for section in sections}

    def run(
        self,
        sizes: Plan,
        numbers: Collection[int] | None = None,
        on_section: Callable[[Section], None] = lambda section: None,
        on_row: Callable[[Row], None] = lambda row: None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Measure the sections with these numbers, report each row at once, and return everything as plain data.

        The document has "machine" and "sections", a list of {"number", "title", "rows"}.
        """
        bar = Progress() if progress is None else progress
        document: dict[str, Any] = {"benchmark": self.name, "machine": machine.describe(), "sections": []}
        for number in sorted(self.sections if numbers is None else numbers):
            section = self.sections[number]
            cases = section.cases(sizes)
            bar.section(f"{section.number}. {section.title}", len(cases))
            on_section(section)
            rows = []
            for case in cases:
                bar.step(case.label)
                for row in case.rows():
                    rows.append(row.as_dict())
                    bar.clear()
                    on_row(row)
            document["sections"].append({"number": number, "title": section.title, "rows": rows})
        bar.close()
        return document
