"""Our numbers beside the paper's: what it says, what was found, and the ratio."""

from __future__ import annotations

from collections.abc import Iterable

from rankwise_lab.report.blocks import Paragraph, note
from rankwise_lab.report.table import Table

__all__ = ["COLUMNS", "about_data", "beside", "ratio"]

# The three columns of every comparison.
COLUMNS = ("paper", "ours", "ours / paper")


def beside(title: str, rows: Iterable[tuple[str, float | None, float | None]], form: str = ".2f") -> Table:
    """A table of (what, the paper's number, ours); None where there is no number. form: how numbers are written."""

    def shown(value: float | None) -> str:
        return "-" if value is None else format(value, form)

    body = [[what, shown(theirs), shown(ours), ratio(ours, theirs)] for what, theirs, ours in rows]
    return Table(title, ["", *COLUMNS], body)


def ratio(first: float | None, second: float | None, form: str = ".2f") -> str:
    """A quotient as text, "-" where there is none; one more digit below a tenth."""
    if first is None or not second:
        return "-"
    quotient = first / second
    return format(quotient, ".3f" if abs(quotient) < 0.1 else form)


def about_data(what: str, stand_in: bool) -> Paragraph:
    """What the data are; not to be missed where they stand in for the paper's."""
    return note(f"{what}.") if stand_in else Paragraph(f"{what}.")
