"""How a benchmark is laid out: sections of cases, each a few rows, at one of two sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rankwise.benchmarks.report import Row

__all__ = ["FULL", "QUICK", "SMALL", "Case", "Section", "Sizes"]

# Positives and negatives of one action class in the paper's timings.
SMALL = (227, 3120)


@dataclass(frozen=True)
class Sizes:
    """How large the problems are, and how often each is timed."""

    n_pos: int
    medium: int
    large: int
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
    medium=10**6,
    large=10**7,
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
    medium=10**4,
    large=10**5,
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
    cases: Callable[[Sizes], list[Case]]
