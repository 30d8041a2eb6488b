"""What all parts of the report share: displayed names, and tables of our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rankwise_lab.report.blocks import Paragraph, note
from rankwise_lab.report.table import Table

# Experiments, in the order of the report.
TITLES = {
    "timing": "Tables 1 and 2: time in inference",
    "scaling": "Figures 2 and 3: how time grows",
    "action": "Tables 3 and 4: ten classes, by loss",
    "detection": "Table 5: weakly supervised detection",
    "cifar": "Section 4.3: a network for CIFAR-10",
}
LOSSES = {"zero-one": "0-1 loss", "ap": "AP loss", "ndcg": "NDCG loss"}
METHODS = {
    "yue": "Yue et al. 2007",
    "chakrabarti": "Chakrabarti et al. 2008",
    "quicksort": "Algorithm 1",
    "auto": "ours (auto)",
}
# The three columns of every comparison.
COLUMNS = ("paper", "ours", "ours / paper")


def beside(
    title: str, rows: Iterable[tuple[str, float | None, float | None]], form: str = ".2f", said: str = ""
) -> Table:
    """Make a table of (what, the paper's number, ours), with None for no number. form: the format of numbers."""

    def shown(value: float | None) -> str:
        return "-" if value is None else format(value, form)

    body = [[what, shown(theirs), shown(ours), ratio(ours, theirs)] for what, theirs, ours in rows]
    return Table(title, ["", *COLUMNS], body, said=said)


def ratio(first: float | None, second: float | None, form: str = ".2f") -> str:
    """Return a quotient as text, with one more digit below a tenth; "-" if there is none."""
    if first is None or not second:
        return "-"
    quotient = first / second
    return format(quotient, ".3f" if abs(quotient) < 0.1 else form)


def compared(pair: Sequence[float], interval: Sequence[float] | None, digits: int, form: str) -> list[str]:
    """Return cells: values for 0-1 loss and another, their difference, its interval (of fractions), and their ratio."""
    first, second = pair
    ends = "" if interval is None else " to ".join(f"{100.0 * end:+.{digits}f}" for end in interval)
    return [f"{first:.2f}", f"{second:.2f}", f"{second - first:+.2f}", ends, ratio(second, first, form)]


def about_data(what: str, stand_in: bool) -> Paragraph:
    """Say what the data are, as a note if they replace the paper's."""
    return note(f"{what}.") if stand_in else Paragraph(f"{what}.")


def data_tags(stand_in: bool) -> list[str]:
    """Return the warning of the overview for data that replace the paper's."""
    return ["not the paper's data"] if stand_in else []
