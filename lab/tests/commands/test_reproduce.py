"""`rankwise reproduce` from end to end on a machine without data: its report, and the page in a browser."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rankwise_lab.reproduce import action, action_data, scaling, timing
from rankwise_lab.reproduce.beside import TITLES

import rankwise.kernels.compiled  # noqa: F401  # kernels lie where they did before another cache is named
from rankwise.cli.main import main

COMMAND = ["reproduce", "--quick"]
DONE, LACKING = ("timing", "scaling", "action"), ("detection", "cifar")
# Of the digits: classes, and samples to train and as many to test with.
CLASSES, SAMPLES = 3, 180
TABLES = {"timing": 4, "scaling": 6, "action": 5, "detection": 0, "cifar": 0}
FIGURES = {"timing": 1, "scaling": 12, "action": 1, "detection": 0, "cifar": 0}


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Plans and digits with which everything is done in seconds."""
    digits = action_data._digits

    def few(quick: bool) -> Any:
        images, *told = digits(quick)
        fewer = {}
        for part in ("train", "test"):
            rows = (getattr(images, f"{part}_labels") < CLASSES).nonzero()[0][:SAMPLES]
            fewer |= {name: getattr(images, name)[rows] for name in (f"{part}_images", f"{part}_labels")}
        return images._replace(**fewer, classes=images.classes[:CLASSES]), *told

    patch.setattr(action_data, "_digits", few)
    patch.setattr(action_data, "_QUICK_DETECTORS", 5)
    # The largest size is large enough for times to grow on any machine.
    few_points = {"training_points": 2, "training_repeats": 1, "points": 3, "repeats": 1, "rounds": 1}
    smaller = {
        action.Plan: {"Cs": 2, "ends": (0.0, 1.0), "ends_zero_one": (-1.0, 0.0), "draws": 20},
        timing.Plan: {"repeats": 1},
        scaling.Plan: {**few_points, "largest": 10**5, "pairs": 2e5},
    }
    for kind, changes in smaller.items():
        plan = replace(kind.quick(), **changes)
        patch.setattr(kind, "quick", lambda plan=plan: plan)


def without_data(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Run commands in a folder, on a machine without data."""
    patch.chdir(folder)
    (folder / "empty").mkdir()
    patch.setenv("RANKWISE_DATA", str(folder / "empty"))
    patch.setenv("RANKWISE_CACHE_DIR", str(folder / "cache"))
    shrink(patch)


class Whole(NamedTuple):
    """A run that nothing cut off: its folder, and what it said."""

    report: Path
    printed: list[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        without_data(patch, folder)
        assert main(COMMAND) == 0
    return Whole(folder / "report", printed.getvalue().splitlines())


# The report


def test_what_needs_no_data_is_done_and_the_rest_says_in_a_line_what_it_lacks(whole: Whole, read_page: Any) -> None:
    text = (whole.report / "index.html").read_text()
    seen = read_page(text)
    assert [name for name in seen.ids if name in TITLES] == list(TITLES)
    assert all(f'<a href="#{name}">' in text for name in TITLES)
    assert (seen.open, len(set(seen.ids))) == ([], len(seen.ids))
    for name in LACKING:
        (said,) = (line for line in whole.printed if line.startswith(f"{name}: not run: "))
        why = said.removeprefix(f"{name}: not run: ")
        assert "RANKWISE_DATA" in why or "pip install" in why
        assert text.count(f"Not run: {why}".replace("'", "&#39;")) == 1
        assert not (whole.report / f"{name}.json").exists()
    for name in DONE:
        found = json.loads((whole.report / f"{name}.json").read_text())
        assert found["data"]["what"].startswith(f"The 8 × 8 digits of scikit-learn: {SAMPLES} images to train")
    assert whole.printed[-1] == "report: report/index.html"


# The page in a browser

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
SEEN = """
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
return {
  overflow: document.documentElement.scrollWidth - innerWidth,
  width: innerWidth,
  parts: all("main > details").map((s) => s.id),
  tables: Object.fromEntries(all("main > details").map((s) => [s.id, all("table", s).length])),
  wide: all(".table").filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.getAttribute("aria-label")),
  cards: Object.fromEntries(all(".card").map((card) => [card.querySelector("h2 a").hash.slice(1), [
    all(".claims b", card).map((verdict) => verdict.textContent),
    all(".thumbnail svg", card).filter((e) => e.getBoundingClientRect().height > 60).length,
  ]])),
  figures: Object.fromEntries(all("main > details").map((s) => [s.id, all("figure svg", s).filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 200 && box.height > 100 && e.querySelectorAll("path").length > 10;
  }).length])),
  asked: performance.getEntriesByType("resource").map((entry) => entry.name),
};
"""
INKS = """
const page = getComputedStyle(document.body);
const texts = document.querySelectorAll(".drawn svg [id*=text_] [style*=currentColor i]");
return [page.backgroundColor, page.color, ...[...texts].map((text) => getComputedStyle(text).fill)];
"""


def show(browser: Any, page: Path, size: tuple[int, int], scheme: str = "light") -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get("about:blank")
    browser.get(page.as_uri())


def wait_for(browser: Any, condition: Callable[[], bool]) -> None:
    """A browser follows a link when it has the time to."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20, 0.05).until(lambda _: condition())


def wait_for_section(browser: Any, name: str, size: tuple[int, int]) -> None:
    """Until the address and the top of the window are those of the section."""
    top = "return Math.round(document.getElementById(arguments[0])?.getBoundingClientRect().top ?? -1)"
    there = range(size[1])
    wait_for(browser, lambda: browser.current_url.endswith(f"#{name}") and browser.execute_script(top, name) in there)


def wait_for_open(browser: Any, names: list[str]) -> None:
    now = "return [...document.querySelectorAll('details[open]')].map((fold) => fold.id)"
    wait_for(browser, lambda: browser.execute_script(now) == names)


def test_a_link_opens_the_fold_that_it_names_and_those_around_it(browser: Any, whole: Whole) -> None:
    page, size = whole.report / "index.html", SIZES["desktop"]
    show(browser, page, size)
    for _ in range(2):  # the second time the address is the same already
        browser.find_element("css selector", '.card h2 a[href="#action"]').click()
        wait_for_open(browser, ["action"])
        browser.execute_script("document.getElementById('action').open = false; scrollTo(0, 0)")
    browser.get("about:blank")
    browser.get(f"{page.as_uri()}#timing-by-class")
    wait_for_open(browser, ["timing", "timing-by-class"])
    wait_for_section(browser, "timing-by-class", size)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_page_opens_from_disk_and_shows_everything(browser: Any, whole: Whole, size: tuple[int, int]) -> None:
    pytest.importorskip("matplotlib")
    show(browser, whole.report / "index.html", size)
    bottom = browser.execute_script("return document.querySelector('.overview').getBoundingClientRect().bottom")
    assert bottom <= 900 or size[0] < 1280, "the summary fits one screen"
    browser.execute_script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    seen = browser.execute_script(SEEN)
    assert (seen["width"], seen["overflow"] <= 0) == (size[0], True)
    assert seen["parts"] == [*TITLES, "files"]
    assert (seen["tables"], seen["figures"]) == ({**TABLES, "files": 0}, {**FIGURES, "files": 0})
    assert size[0] < 1280 or seen["wide"] == []
    assert set(seen["cards"]) == set(TITLES)
    for name, (verdicts, figures) in seen["cards"].items():
        assert (len(verdicts) >= 2, figures) == ((True, 1) if name in DONE else (False, 0)), name
        assert {verdict.split(" ", 1)[1] for verdict in verdicts} <= {"reproduces", "does not", "undecided"}
    assert [name for name in seen["asked"] if not name.startswith(("file:", "data:"))] == []
    links = browser.find_elements("css selector", ".card h2 a")
    assert [link.get_attribute("href").partition("#")[2] for link in links] == list(TITLES)
    for link, name in zip(links, TITLES, strict=True):
        browser.execute_script("scrollTo(0, 0)")
        link.click()
        wait_for_section(browser, name, size)
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_figures_follow_the_readers_light_or_dark(browser: Any, whole: Whole, scheme: str) -> None:
    pytest.importorskip("matplotlib")
    show(browser, whole.report / "index.html", SIZES["desktop"], scheme)
    back, *inks = map(brightness, browser.execute_script(INKS))
    assert len(inks) > 100
    assert (back < 0.2 and min(inks) > 0.8) if scheme == "dark" else (back > 0.8 and max(inks) < 0.2)


def brightness(colour: str) -> float:
    """Of rgb(r, g, b), from 0 to 1."""
    return sum(float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3]) / (3 * 255)
