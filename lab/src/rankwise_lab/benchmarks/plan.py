"""How a benchmark is laid out and run: sections of cases, each a few rows, at one of two sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from rankwise_lab.benchmarks.report import Row
from rankwise_lab.measuring import machine
from rankwise_lab.progress import Progress

__all__ = ["FULL", "PAPER", "QUICK", "Benchmark", "Case", "Section", "Sizes"]

# Positives and negatives of one action class in the paper's timings.
PAPER = (227, 3120)


@dataclass(frozen=True)
class Sizes:
    """How large the problems are, and how often each is timed.

    small, medium, large: negatives beside n_pos positives; medium is also the size of unfriendly queries, which have
    one of unfriendly_pos positives. outlier: sizes of queries with an outlier, on both sides of a switch of the engine.
    """

    n_pos: int
    small: int
    medium: int
    large: int
    unfriendly_pos: tuple[int, ...]
    outlier: tuple[int, ...]
    work_negatives: tuple[int, ...]
    work_positives: tuple[int, ...]
    few_pos: int
    many_pos: int
    queries: int
    repeats: int
    start_ups: int
    cold: bool
    figure_points: int


FULL = Sizes(
    n_pos=1000,
    small=10**5,
    medium=10**6,
    large=10**7,
    unfriendly_pos=(10, 10**3, 30_000),
    outlier=(65_535, 65_536),
    work_negatives=(10**3, 10**4, 10**5, 10**6),
    work_positives=(10, 100, 10**3, 10**4),
    few_pos=100,
    many_pos=10**4,
    queries=10**4,
    repeats=9,
    start_ups=5,
    cold=True,
    figure_points=9,
)
QUICK = Sizes(
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
    queries=200,
    repeats=2,
    start_ups=1,
    cold=False,
    figure_points=3,
)


@dataclass(frozen=True)
class Case:
    """One thing to measure: a label for the progress bar, and what yields its rows."""

    label: str
    rows: Callable[[], Iterable[Row]]


@dataclass(frozen=True)
class Section:
    """A numbered question and the cases that answer it."""

    number: int
    title: str
    cases: Callable[[Any], list[Case]]


class Benchmark:
    """Sections under one name, and the sizes they are measured at."""

    def __init__(self, name: str, sections: Iterable[Section], full: Any, quick: Any) -> None:
        self.name, self.full, self.quick = name, full, quick
        self.sections = {section.number: section for section in sections}

    def run(
        self,
        sizes: Any,
        numbers: Collection[int] | None = None,
        on_section: Callable[[Section], None] = lambda section: None,
        on_row: Callable[[Row], None] = lambda row: None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Measure the sections with these numbers, telling of each row as it is found; all of it as plain data.

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
