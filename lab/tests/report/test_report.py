"""What all experiments are shown with: tables, pages of blocks, and parts."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from rankwise_lab.report.blocks import (
    Checks,
    Fold,
    Heading,
    Items,
    Paragraph,
    Section,
    Tiles,
    note,
    small,
)
from rankwise_lab.report.claims import Card, Claim, Overview, Verdicts, gain_claim
from rankwise_lab.report.figure import Drawing, Drawn, Gallery, Picture, Sheet
from rankwise_lab.report.page import as_html, page
from rankwise_lab.report.part import Part
from rankwise_lab.report.table import Table

NASTY = "<script>alert('1 & 2')</script>\""


def drawing(name: str) -> Drawing:
    return Drawing(b"PNG", b"SVG", f'<svg id="{name}"><path/></svg>')


# Tables


def test_a_table_as_text_has_names_to_the_left_and_all_else_to_the_right() -> None:
    table = Table("Title", ["what", "n", "seconds"], [["a", "1", "10.5"], ["longer", "22", ""]])
    assert table.as_lines() == ["Title", "what     n  seconds", "a        1     10.5", "longer  22"]
    assert Table("Title", ["a", "b"], []).as_lines() == ["Title", "a  b"]


def test_a_table_as_csv_has_numbers_in_full_and_can_be_read_again() -> None:
    table = Table("", ["name", "value", "flag"], [['a, "b"', 1 / 3, True], ["", None, False]])
    rows = list(csv.DictReader(io.StringIO(table.as_csv())))
    assert rows[0] == {"name": 'a, "b"', "value": repr(1 / 3), "flag": "True"}
    assert rows[1] == {"name": "", "value": "", "flag": "False"}
    assert "\r" not in table.as_csv()


# Pages


def test_text_of_every_block_is_escaped(read_page: Any) -> None:
    blocks = [
        Paragraph(NASTY),
        note(NASTY),
        small(NASTY),
        Heading(NASTY),
        Items([NASTY]),
        Checks({NASTY: True}),
        Tiles([(NASTY, NASTY)]),
        Table(NASTY, [NASTY], [[NASTY]]),
        Gallery([Drawn("d", drawing("d"), NASTY, NASTY), Picture(b"PNG", NASTY, NASTY)]),
        Sheet(NASTY, NASTY, [Picture(b"PNG", NASTY, NASTY, wrong=True)], per_row=1),
        Section(NASTY, NASTY, [Paragraph(NASTY)]),
        Fold("f", NASTY, NASTY, [Table(NASTY, [NASTY], [], said=NASTY)]),
        Verdicts([Claim(*[NASTY] * 4, True)]),
        Overview([as_html(Card("f", NASTY, [Claim(*[NASTY] * 4, None)], tags=[NASTY]))]),
    ]
    text = page(NASTY, blocks)
    seen = read_page(text)
    assert seen.open == []
    assert seen.ids == ["d", NASTY, "f"]
    assert "".join(seen.cells) == 3 * NASTY
    assert "<script" not in text
    assert "&amp;lt;" not in text, "escaped twice"


# Folds and verdicts


@pytest.mark.parametrize(
    ("ends", "holds"),
    [
        ((0.1, 0.5), True),
        ((-0.1, 0.5), False),  # the paper's gain is excluded
        ((-0.1, 1.5), None),  # 0 and the paper's gain are both possible
        ((-2.0, -1.0), False),
        (None, None),
    ],
)
def test_a_gain_reproduces_if_its_interval_lies_above_0(ends: tuple[float, float] | None, holds: bool | None) -> None:
    claim = gain_claim("It gains", 0.2, ends, 1.0, "seeds")
    assert claim.holds is holds
    assert "lies above 0" in claim.criterion
    assert claim.sentence.startswith("It gains: +0.20 points")
    assert claim.sentence.endswith("(paper: +1.00)")


def test_a_part_folds_at_its_headings_and_keeps_the_rest_in_front() -> None:
    body = [Paragraph("data"), Heading("First table", said="look"), Table("1", ["a"], []), Heading("Inner", 2)]
    claims = [Claim("c", "1", "2", "≥ 1", True), Claim("d", "0", "2", "≥ 1", False)]
    part = Part("demo", "Demo", "about", {"machine": {}}, ["It is so."], body, ["By hand."], claims=claims)
    fold = part.as_fold()
    assert (fold.name, fold.title, fold.said) == ("demo", "Demo", "1 of 2 claims reproduces")
    assert fold.blocks[:3] == [Paragraph("about"), Paragraph("data"), Verdicts(claims)]
    folds = [block for block in fold.blocks if isinstance(block, Fold)]
    assert [one.name for one in folds] == ["demo-conclusions", "demo-first-table", "demo-how"]
    assert folds[1] == Fold("demo-first-table", "First table", "look", [body[2], Heading("Inner", 1)])
    assert part.as_lines()[-3:] == ["Verdicts", "  reproduces  c: 1 (paper: 2)", "  does not    d: 0 (paper: 2)"]


# Parts
