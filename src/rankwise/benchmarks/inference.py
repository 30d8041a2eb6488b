"""The benchmark behind `rankwise bench inference`: every claim about speed, measured beside its target."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from rankwise.benchmarks import footprint, growth, machine, speed
from rankwise.benchmarks.plan import Section, Sizes
from rankwise.benchmarks.report import Row
from rankwise.benchmarks.timing import Progress

__all__ = ["SECTIONS", "run"]

SECTIONS = {
    section.number: section
    for section in (
        Section(4, "A loss of your own against a built-in one", speed.own_loss),
        Section(5, "The whole call against np.sort of the negatives", speed.against_sorting),
        Section(6, "At the paper's size, against the published methods", speed.against_published),
        Section(7, "Algorithm 1 and its bound", speed.within_bounds),
        Section(8, "Growth", growth.growth),
        Section(9, "Memory", footprint.memory),
        Section(10, "Start-up", footprint.start_up),
    )
}


def run(
    sizes: Sizes,
    numbers: Collection[int] = tuple(SECTIONS),
    on_section: Callable[[Section], None] = lambda section: None,
    on_row: Callable[[Row], None] = lambda row: None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the sections with these numbers, telling of each row as it is found; all of it as plain data.

    The document has "machine" and "sections", a list of {"number", "title", "rows"}.
    """
    bar = Progress() if progress is None else progress
    document: dict[str, Any] = {"benchmark": "inference", "machine": machine.describe(), "sections": []}
    for number in sorted(numbers):
        section = SECTIONS[number]
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
    bar.clear()
    return document
