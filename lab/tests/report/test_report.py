"""What all experiments are shown with: tables, pages of blocks, and files."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.pieces import write_json
from rankwise_lab.report.blocks import (
    Checks,
    Fold,
    Heading,
    Items,
    Paragraph,
    Ready,
    Section,
    Tiles,
    note,
    show_figures,
    small,
)
from rankwise_lab.report.claims import Card, Claim, Overview, Verdicts, gain_claim
from rankwise_lab.report.figure import NO_FIGURES, Drawing, Drawn, Gallery, Picture, Sheet, ink_png
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


def test_a_table_in_a_page_has_totals_and_says_what_to_see() -> None:
    text = as_html(Table("Title", ["a"], [["x"], ["y"], ["z"]], totals=2, said="Look at x."))
    assert text.count('<tr class="total">') == 2
    assert text.index("<tr><th") < text.index('<tr class="total">')
    assert '<caption><span>Title</span><span class="said">Look at x.</span></caption>' in text
    assert "said" not in as_html(Table("Title", ["a"], [["x"]]))


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


def test_headings_are_one_below_that_of_their_section_or_page_and_html_is_put_in_as_it_is() -> None:
    section = Section("s", "B & C", [Heading("C"), Heading("D", 2), Paragraph("a < b")])
    text = page("t", [Heading("A"), section])
    for level, name in ((1, "t"), (2, "A"), (2, "B &amp; C"), (3, "C"), (4, "D")):
        assert f"<h{level}>{name}</h{level}>" in text
    assert as_html(section) in text
    assert page("t", [Ready(as_html(section))]).count("a &lt; b") == 1


def test_a_picture_is_in_the_page_by_its_kind() -> None:
    assert Picture(b"\xff\xd8\xff", "", "").source.startswith("data:image/jpeg;base64,")
    assert Picture(b"\x89PNG", "", "").source.startswith("data:image/png;base64,")


def test_a_sheet_marks_errors_by_a_class_and_a_cross_and_numbers_its_rows() -> None:
    images = [Picture(b"\x89PNG", f"image {k}", "7" if k == 4 else "", wrong=k == 4) for k in range(1, 6)]
    text = as_html(Sheet("Title", "said", images, per_row=3))
    assert "<figcaption><b>Title</b> said</figcaption>" in text
    assert re.findall(r'data-number="(\d+)"', text) == ["1", "4"]
    assert re.findall(r'alt="(.*?)"', text) == [image.label for image in images]
    assert text.count('class="wrong"') == text.count("✗") == 1
    assert 'alt="image 4"><span>✗ 7</span></li>' in text
    assert 'alt="image 5"></li>' in text
    assert "data-number" not in as_html(Sheet("Title", "said", images))
    assert "<span>✗ </span>" in as_html(Sheet("t", "", [Picture(b"\x89PNG", "a", wrong=True)]))


def test_ink_is_black_on_white_one_pixel_a_number() -> None:
    image = pytest.importorskip("PIL.Image")
    ink = np.array([[0.0, 0.5, 1.0], [1.0, -1.0, 2.0]])
    read = image.open(io.BytesIO(ink_png(ink)))
    assert (read.size, read.mode, read.format) == ((3, 2), "L", "PNG")
    assert np.asarray(read).tolist() == [[255, 128, 0], [0, 255, 0]]


def test_one_figure_stands_alone_several_beside_each_other_and_none_is_told() -> None:
    figures = {"a": drawing("a"), "b": drawing("b")}
    one, two = ("a", "A line", "It falls"), ("b", "B", "second")
    drawn = [Drawn(name, figures[name], label, caption) for name, label, caption in (one, two)]
    assert show_figures(figures, one) == drawn[0]
    assert show_figures(figures, one, two) == Gallery(drawn)
    assert show_figures({}, one, two) == Paragraph(NO_FIGURES)
    text = as_html(drawn[0])
    for said in ('<svg role="img" aria-label="A line" id="a">', '<figure class="drawn">', "<figcaption>It falls</fig"):
        assert said in text


# Folds and verdicts


def test_a_page_has_a_script_only_if_it_folds() -> None:
    fold = Fold("one", "Title", "what to see", [Paragraph("inside")])
    assert "<script" not in page("t", [fold])
    text = page("t", [fold], folding=True)
    assert text.count("<script>") == 1
    assert '<details id="one" class="level-2">' in text
    assert '<summary><h2>Title</h2><span class="said">what to see</span></summary>' in text
    assert text.index("<summary>") < text.index("<p>inside</p>") < text.index("</details>")


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


def test_a_part_finds_its_tables_and_figures_in_what_is_shown() -> None:
    tables = [Table("1", ["a"], [["x"]]), Table("2", ["a"], [["y"]])]
    alone, *others = (Drawn(name, drawing(name), name, name) for name in "abc")
    body = [tables[0], alone, Heading("h"), Gallery([*others, Picture(b"", "", "")]), tables[1]]
    part = Part("demo", "t", "about", {"machine": {}}, ["It is so."], body, ["By hand."], checks={"c": False})
    assert part.tables == tables
    assert part.figures == {name: drawing(name) for name in "abc"}
    lines = part.as_lines()
    assert lines[:6] == ["1", "a", "x", "", "2", "a"]
    assert lines[-5:] == ["By hand.", "It is so.", "", "Checks", "  FAILED  c"]
    assert max(map(len, part.as_lines(5)[8:-3])) <= 5


# Files


def test_json_refuses_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nan"):
        write_json(tmp_path / "rows.json", {"measured": float("nan")})
    assert not list(tmp_path.iterdir())


def test_json_is_text_that_can_be_read_again(tmp_path: Path) -> None:
    write_json(tmp_path / "rows.json", {"unit": "µs", "value": 1 / 3})
    text = (tmp_path / "rows.json").read_text(encoding="utf-8")
    assert "µs" in text
    assert text.endswith("}\n")
    assert json.loads(text) == {"unit": "µs", "value": 1 / 3}
