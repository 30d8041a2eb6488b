"""The page of the demonstration: its images and numbers, and that it needs nothing else; the command."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rankwise_lab.demo import experiment, structured, words
from rankwise_lab.demo.front import by_split, sheets
from rankwise_lab.demo.page import as_lines, as_page
from rankwise_lab.demo.results import Demo, as_dict
from rankwise_lab.report.figure import ink_png
from rankwise_lab.report.page import page as page_of

from rankwise.cli.main import main

VOID = {"meta", "link", "img"}


@pytest.fixture(scope="module")
def page(found: Demo) -> str:
    return as_page(found)


class _Page(HTMLParser):
    """Which elements are open, every attribute, and the text outside of style."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def values(self, name: str, tag: str | None = None) -> list[str]:
        return [value for t, n, value in self.attributes if n == name and tag in (None, t)]


@pytest.fixture(scope="module")
def parsed(page: str) -> _Page:
    parser = _Page()
    parser.feed(page)
    parser.close()
    return parser


def test_the_page_is_well_formed(page: str, parsed: _Page) -> None:
    assert page.startswith("<!DOCTYPE html>")
    assert parsed.open == []
    for once in ("html", "head", "title", "body", "main", "h1"):
        assert parsed.tags.count(once) == 1
    ids = parsed.values("id")
    assert ids
    assert len(set(ids)) == len(ids)
    targets = {value.removeprefix("#") for value in parsed.values("xlink:href")} | set(
        re.findall(r"url\(#(.+?)\)", page)
    )
    assert targets <= set(ids)


def test_the_page_needs_nothing_else(page: str, parsed: _Page) -> None:
    assert not {"script", "iframe", "object", "embed"} & set(parsed.tags)
    assert parsed.values("href", "link") == ["data:,"], "an icon of nothing, else a browser asks for one"
    sources = parsed.values("src")
    assert len(sources) == parsed.tags.count("img") == len(parsed.values("alt", "img")) > 0
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert all(value.startswith("#") for value in parsed.values("xlink:href"))
    assert not re.search(r"@import|url\((?!#)", page)
    named = set(re.findall(r"https?://[^\"\s<]+", page))
    assert named <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, (
        "names of SVG, which nothing fetches"
    )


def test_the_page_suits_readers_and_screens(page: str, parsed: _Page) -> None:
    assert parsed.values("lang", "html") == ["en"]
    assert "width=device-width, initial-scale=1" in parsed.values("content", "meta")
    assert "prefers-color-scheme: dark" in page
    assert parsed.values("role", "svg") == ["img"] * 4
    labels = parsed.values("aria-label", "svg")
    starts = ("Precision against recall on", "Test AP of both", "Precision against recall of", "Relative duality gap")
    assert all(label.startswith(start) for label, start in zip(labels, starts, strict=True))
    assert parsed.tags.count("figcaption") == parsed.tags.count("figure") == 4 + 6
    assert parsed.tags.count("caption") == parsed.tags.count("table") == 5
    assert "currentColor" in page


def test_the_page_has_every_number_of_the_tables(found: Demo, parsed: _Page, page: str) -> None:
    cells = [unescape(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", page)]
    expected: list[str] = []
    for table in (by_split(found), structured.quality(found), *map(structured.inference, found.races)):
        expected += [*table.columns, *(cell for row in table.rows for cell in row)]
    assert cells == expected
    said = [
        words.about(found),
        *words.lines(found),
        *words.facts(found),
        *(text for two in words.tiles(found) for text in two),
    ]
    said += [*structured.facts(found), *structured.about_quality(found), *structured.about_inference(found)]
    for text in said:
        assert text in parsed.text
    for check in found.checks:
        assert f"ok {check}" in parsed.text
    assert "FAILED" not in parsed.text


def test_the_comparison_comes_before_the_mathematics(page: str) -> None:
    order = ["<h1>", 'class="tiles"', "The ranked images", "The first errors", "8s found last", "Test AP by split"]
    order += ["How it was done", "Structured SVMs, as in the paper", "Time in inference", "Made by"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert page.count("Made by “rankwise demo”") == 1


def test_the_page_shows_a_failure(spoil_fit: Callable[..., Demo]) -> None:
    blocks = structured.structured(spoil_fit(gap=1.0), figures=False).as_blocks()
    assert '<span class="failed">FAILED</span> every certified gap' in page_of("t", blocks)


def test_the_first_images_are_shown_in_order_with_errors_marked(found: Demo) -> None:
    for sheet, (model, ranked) in zip(sheets(found)[0], found.comparison.pairs, strict=True):
        first = found.settings.first
        assert len(sheet.images) == first
        assert [image.content for image in sheet.images] == [ink_png(ink) for ink in ranked.pixels[:first]]
        wrong = [rank for rank, image in enumerate(sheet.images, 1) if image.wrong]
        assert wrong == [rank for rank in ranked.errors if rank <= first]
        assert len(wrong) == pytest.approx(model.fits[found.comparison.shown.number].errors)
        for rank, image in enumerate(sheet.images, 1):
            digit = int(ranked.digits[rank - 1])
            assert image.caption == (f"{digit}" if rank in wrong else "")
            assert image.label == f"rank {rank}: {words.an(digit)}"
        assert sheet.caption == f"{len(wrong)} of them are errors; the first is at rank {wrong[0]}."


def test_a_list_that_begins_without_errors_says_so(found: Demo) -> None:
    ranked = found.comparison.shown.ours
    first = int(ranked.errors[0]) - 1
    clean = replace(found, settings=replace(found.settings, first=first))
    assert sheets(clean)[0][0].caption == "None is an error."
    assert not any(image.wrong for image in sheets(clean)[0][0].images)


def test_the_first_errors_and_the_last_hits_have_ranks_and_digits(found: Demo) -> None:
    _, errors, late = sheets(found)
    for sheet, last, (model, ranked) in zip(errors, late, found.comparison.pairs, strict=True):
        assert sheet.title.startswith(model.name)
        assert last.title.startswith(model.name)
        assert all(image.wrong for image in sheet.images)
        assert not any(image.wrong for image in last.images)
        shown = [*zip(sheet.images, ranked.errors[:8], strict=True), *zip(last.images, ranked.hits[-8:], strict=True)]
        for image, rank in shown:
            assert image.caption == (f"{ranked.digits[rank - 1]}\n" if image.wrong else "") + f"rank {rank:,}"
            assert image.content == ink_png(ranked.pixels[rank - 1])


def test_every_image_and_every_cross_is_in_the_page(found: Demo, page: str) -> None:
    images = [image for group in sheets(found) for sheet in group for image in sheet.images]
    sources = re.findall(r'<img src="(.*?)"', page)
    assert sources == [image.source for image in images]
    assert base64.b64decode(sources[0].partition(",")[2]) == images[0].content
    assert page.count('<li class="wrong"') == page.count("<span>✗ ") == sum(image.wrong for image in images)


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
    found: Demo, page: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment, "run", lambda: found)
    monkeypatch.setattr("rankwise_lab.demo.page.as_page", lambda demo: page if demo is found else "")
    assert main(["demo", "--json", "demo.json"]) == 0
    printed = capsys.readouterr().out
    assert "\n".join(as_lines(found, 100)) in printed
    assert json.loads(Path("demo.json").read_text("utf-8")) == as_dict(found)
    assert Path("rankwise-demo.html").read_text("utf-8") == page
    assert len(list(tmp_path.iterdir())) == 2, "no temporary file may stay behind"


def test_the_command_fails_if_a_check_does(
    found: Demo,
    spoil_timed: Callable[..., Demo],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    spoilt = spoil_timed(hinge=found.races[0].timed[-1].hinge + 1e-6)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment, "run", lambda: spoilt)
    monkeypatch.setattr("rankwise_lab.demo.page.as_page", lambda demo: "")
    assert main(["demo"]) == 1
    assert "FAILED  all methods find the same J" in capsys.readouterr().out
