"""`rankwise bench`: benchmarks as tables."""

from __future__ import annotations

from pathlib import Path

from rankwise.benchmarks import inference, machine, training
from rankwise.benchmarks.plan import Section
from rankwise.benchmarks.report import Row, write_bytes, write_json
from rankwise.benchmarks.timing import Progress

__all__ = ["TABLES", "table"]

_MARKS = {True: "yes", False: "NO", None: ""}
# Benchmarks that are a table of numbers beside targets.
TABLES = {benchmark.name: benchmark for benchmark in (inference.BENCHMARK, training.BENCHMARK)}
# Samples of the kind that grows in the figure's last points.
_FIGURE_LARGEST = {True: 1000, False: 30_000}


def table(name: str, quick: bool, only: list[int] | None, json: Path | None, figure: Path | None = None) -> int:
    """Measure, print a row for each number found, and write the files asked for; 0 whatever the targets."""
    benchmark = TABLES[name]
    numbers = list(benchmark.sections) if only is None else only
    unknown = [n for n in numbers if n not in benchmark.sections]
    if unknown:
        raise ValueError(f"--only {unknown[0]}: sections are {', '.join(map(str, benchmark.sections))}")
    if figure is not None:
        if benchmark is not inference.BENCHMARK:
            raise ValueError("--figure goes with bench inference")
        import matplotlib.figure  # noqa: F401  # missing: say so now, not after minutes of timing

        from rankwise.benchmarks import figures

    sizes = benchmark.quick if quick else benchmark.full
    progress = Progress()
    for key, value in machine.describe().items():
        print(f"{key.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    document = benchmark.run(sizes, numbers, _print_section, _print_row, progress)
    document["quick"] = quick
    if figure is not None:
        panels = figures.measure(sizes.figure_points, sizes.repeats, _FIGURE_LARGEST[quick], progress)
        document["figure"] = [panel.as_dict() for panel in panels]
        write_bytes(figure, figures.draw(panels))
        print(f"\nfigure: {figure}")
    if json is not None:
        write_json(json, document)
    _print_summary([row["met"] for section in document["sections"] for row in section["rows"]], quick)
    return 0


def _print_section(section: Section) -> None:
    print(f"\n{section.number}. {section.title}")
    print(f"   {'':<70}{'measured':>9}  {'target':>9}  met", flush=True)


def _print_row(row: Row) -> None:
    measured = "-" if row.measured is None else f"{_number(row.measured)}{row.unit}"
    target = "" if row.target is None else f"{row.target.sense} {row.target.bound:g}{row.unit}"
    print(f"   {row.what:<70}{measured:>9}  {target:>9}  {_MARKS[row.met]}".rstrip(), flush=True)


def _number(value: float) -> str:
    if value == 0 or 0.01 <= value < 1000:
        return f"{value:.2f}"
    return f"{value:.2g}" if value < 0.01 else f"{value:,.0f}"


def _print_summary(met: list[bool | None], quick: bool) -> None:
    judged = [m for m in met if m is not None]
    caution = " (quick: sizes too small for the targets to mean much)" if quick else ""
    print(f"\n{sum(judged)} of {len(judged)} targets met{caution}")
