"""Claims of a paper beside what was measured: the verdict follows from the numbers, by a stated criterion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rankwise_lab.report.figure import Drawn

# By `Claim.holds`: the word for it, its mark, and its class in the page.
VERDICTS: dict[bool | None, tuple[str, str, str]] = {
    True: ("reproduces", "✓", "yes"),
    False: ("does not", "✗", "no"),
    None: ("undecided", "?", "open"),
}


class Claim(NamedTuple):
    """A claim of the paper, and whether the measurement supports it.

    text: the claim, in a few words. ours, paper: both numbers, as they are shown. criterion: when the claim counts as
    reproduced. holds: None if the measurement cannot decide.
    """

    text: str
    ours: str
    paper: str
    criterion: str
    holds: bool | None

    @property
    def word(self) -> str:
        return VERDICTS[self.holds][0]

    @property
    def mark(self) -> str:
        return VERDICTS[self.holds][1]

    @property
    def kind(self) -> str:
        return VERDICTS[self.holds][2]

    @property
    def sentence(self) -> str:
        return f"{self.text}: {self.ours} (paper: {self.paper})"


class Verdicts(NamedTuple):
    """Claims with their criteria."""

    claims: Sequence[Claim]


class Card(NamedTuple):
    """An experiment in the overview. name: of the fold with its details. tags: warnings, such as "quick run"."""

    name: str
    title: str
    claims: Sequence[Claim]
    thumbnail: Drawn | None = None
    tags: Sequence[str] = ()

    @property
    def sorted_claims(self) -> list[Claim]:
        """What reproduces first, then what does not, then what is undecided."""
        order = list(VERDICTS)
        return sorted(self.claims, key=lambda claim: order.index(claim.holds))

    @property
    def tally(self) -> str:
        return tally(self.claims)


class Overview(NamedTuple):
    """Cards of all experiments, each as HTML that was laid out before."""

    cards: Sequence[str]


def tally(claims: Sequence[Claim]) -> str:
    """How many claims reproduce, in words.

    >>> tally([Claim("a", "2", "3", "≥ 1", True), Claim("b", "0", "3", "≥ 1", None)])
    '1 of 2 claims reproduces, 1 undecided'
    """
    counts = Counter(claim.holds for claim in claims)
    verb = "reproduces" if counts[True] == 1 else "reproduce"
    undecided = f", {counts[None]} undecided" if counts[None] else ""
    return f"{counts[True]} of {len(claims)} claims {verb}{undecided}"


def gain_claim(text: str, mean: float, ends: Sequence[float] | None, paper: float, over: str) -> Claim:
    """A claim that one loss beats another by `paper` points; mean and the ends of its interval are in points too.

    It reproduces if the interval lies above 0. It is undecided if the interval contains 0 and the paper's gain, or if
    there is no interval. over: what the interval is over, such as "test samples".
    """
    criterion = (
        f"The 95 % interval of the mean gain, over {over}, lies above 0. Undecided if it contains both 0 and the "
        "paper's gain, or if there are too few values for an interval."
    )
    if ends is None:
        return Claim(text, f"{mean:+.2f} points, no interval", f"{paper:+.2f}", criterion, None)
    low, high = ends
    holds = True if low > 0.0 else None if high >= max(paper, 0.0) else False
    return Claim(text, f"{mean:+.2f} points, {low:+.2f} to {high:+.2f}", f"{paper:+.2f}", criterion, holds)
