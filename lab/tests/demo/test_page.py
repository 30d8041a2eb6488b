"""What the demonstration says, in words and in its page: it follows from the numbers; the command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture

pytest.importorskip("matplotlib")

from rankwise_lab.demo import experiment, structured
from rankwise_lab.demo import page as words
from rankwise_lab.demo.page import about, as_lines, as_page, by_split, facts, lines, sheets, tiles
from rankwise_lab.demo.results import Demo, as_dict
from rankwise_lab.report.figure import ink_png

from rankwise.cli.main import main


@pytest.fixture(scope="module")
def page(found: Demo) -> str:
    return as_page(found)


def values(page: str, tag: str, name: str) -> list[str]:
    """The values of an attribute of all elements of this kind."""
    return [unescape(of) for of in re.findall(rf'<{tag}\b[^>]*? {name}="(.*?)"', page)]


def test_the_page_is_well_formed(page: str, read_page: Any) -> None:
    seen = read_page(page)
    assert page.startswith("<!DOCTYPE html>")
    assert seen.open == []
    for once in ("html", "head", "title", "body", "main", "h1"):
        assert len(re.findall(rf"<{once}\b", page)) == 1
    assert len(set(seen.ids)) == len(seen.ids) > 0
    targets = {of.removeprefix("#") for of in values(page, "use", "xlink:href")} | set(
        re.findall(r"url\(#(.+?)\)", page)
    )
    assert targets <= set(seen.ids)


def test_wrong_images_of_the_sheets_are_the_errors_at_the_top(found: Demo, page: str) -> None:
    for (tops, *_), (_, ranked) in zip(zip(*sheets(found), strict=True), found.comparison.pairs, strict=True):
        wrong = [rank for rank, image in enumerate(tops.images, 1) if image.wrong]
        assert wrong == [rank for rank in ranked.errors if rank <= found.settings.first]
        assert tops.caption == f"{len(wrong)} of them are errors; the first is at rank {wrong[0]}."
        assert [image.content for image in tops.images] == [ink_png(ink) for ink in ranked.pixels[: len(tops.images)]]
    images = [image for group in sheets(found) for sheet in group for image in sheet.images]
    assert values(page, "img", "src") == [image.source for image in images]


def test_the_page_needs_nothing_else(page: str) -> None:
    assert not re.search(r"<(script|iframe|object|embed)\b", page)
    assert values(page, "link", "href") == ["data:,"], "an icon of nothing, else a browser asks for one"
    sources = values(page, "img", "src")
    assert len(sources) == len(re.findall("<img ", page)) == len(values(page, "img", "alt")) > 0
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"@import|url\((?!#)", page)
    named = set(re.findall(r"https?://[^\"\s<]+", page))
    assert named <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "names, which nothing fetches"


def test_the_page_has_every_number_of_the_tables_and_every_sentence(found: Demo, page: str) -> None:
    cells = [unescape(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", page)]
    tables = (by_split(found), structured.quality(found), *map(structured.inference, found.races))
    assert cells == [cell for table in tables for row in (table.columns, *table.rows) for cell in row]
    text = unescape(re.sub(r"<[^>]+>", "", page))
    said = [*lines(found), *facts(found), *(part for two in tiles(found) for part in two), *structured.facts(found)]
    for sentence in (about(found), *said, *structured.about_quality(found), *structured.about_inference(found)):
        assert sentence in text
    for check in found.checks:
        assert f"ok {check}" in text
    assert "FAILED" not in text


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_wide_and_narrow_screens(width: int, page: str, browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page, "utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(file.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.sheet img')].map(i => [i.naturalWidth, i.clientWidth])"
    )
    assert {natural for natural, _ in boxes} == {8}
    assert min(shown for _, shown in boxes) > 3.5 * 8, "too small to read"
    rows = browser.execute_script(
        "return [...document.querySelectorAll('.rows [data-number]')].map(i => i.getBoundingClientRect().left)"
    )
    assert np.ptp(rows[:6]) < 1, "ten to a row"


def test_the_command_prints_and_writes_what_was_found(
    found: Demo, page: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setattr(experiment, "run", lambda: found)
    monkeypatch.setattr("rankwise_lab.demo.page.as_page", lambda demo: page if demo is found else "")
    assert main(["demo", "--json", "demo.json"]) == 0
    printed = capsys.readouterr().out
    assert "\n".join(as_lines(found, 100)) in printed
    assert json.loads(Path("demo.json").read_text("utf-8")) == as_dict(found)
    assert Path("rankwise-demo.html").read_text("utf-8") == page
    assert len(list(place.iterdir())) == 2, "no temporary file may stay behind"


def test_the_command_fails_if_a_check_does(
    found: Demo, spoil_timed: Callable[..., Demo], capsys: Capture, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    spoilt = spoil_timed(hinge=found.races[0].timed[-1].hinge + 1e-6)
    monkeypatch.setattr(experiment, "run", lambda: spoilt)
    monkeypatch.setattr("rankwise_lab.demo.page.as_page", lambda demo: "")
    assert main(["demo"]) == 1
    assert "FAILED  all methods find the same J" in capsys.readouterr().out


# Words

WithAP = Callable[[list[float], list[float]], Demo]


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([0.6, 0.61, 0.62], "LinearRanker ranks better here. The mean test AP of LinearRanker is 0.1100 higher than"),
        ([0.5, 0.49, 0.54], "The two are level here. The mean test AP of LinearRanker is 0.0100 higher than"),
        (
            [0.6],
            "Undecided: one split cannot tell a difference from chance. The mean test AP of LinearRanker",
        ),
    ],
)
def test_the_verdict_follows_the_numbers(ours: list[float], verdict: str, with_ap: WithAP) -> None:
    assert words.lines(with_ap(ours, [0.5] * len(ours)))[0].startswith(verdict)
