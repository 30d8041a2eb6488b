"""The demonstration as a page and as lines: first what every reader wants, then the mathematics."""

from __future__ import annotations

from rankwise_lab.demo.front import front
from rankwise_lab.demo.results import Demo
from rankwise_lab.demo.structured import structured
from rankwise_lab.report.blocks import Section
from rankwise_lab.report.page import page

__all__ = ["as_lines", "as_page"]


def as_page(demo: Demo) -> str:
    """Return the whole page: the comparison, then a section about structured SVMs."""
    first, second = front(demo), structured(demo)
    *blocks, _ = first.as_blocks()  # the small print comes once, at the end
    return page(first.title, [*blocks, Section("structured-svms", second.title, second.as_blocks())])


def as_lines(demo: Demo, width: int | None = None) -> list[str]:
    """Return both halves as lines for a terminal. width: at which to wrap sentences."""
    first, second = front(demo, figures=False), structured(demo, figures=False)
    return [*first.as_lines(width), "", second.title, "=" * len(second.title), "", *second.as_lines(width)]
