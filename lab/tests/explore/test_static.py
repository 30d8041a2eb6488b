"""The page without a server: its own mathematics agrees with the library, and it works when opened from the disk."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.explore.solve import LOSSES, solve
from rankwise_lab.explore.static import SCRIPT, write_page

RTOL, ATOL = 1e-10, 1e-10
SORTED_NEGATIVES = 16  # up to here the library's Algorithm 1 divides at the median itself, as the page does
LOCAL = Path(__file__).resolve().parents[2] / "src" / "rankwise_lab" / "explore" / "local.js"
RUN = """
import { readFileSync } from "node:fs";
const source = readFileSync(process.argv[1], "utf8");
const { explain } = await import("data:text/javascript," + encodeURIComponent(source));
const requests = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(requests.map(explain)));
"""
Request = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "explorer"
    write_page(folder)
    return folder


def explained_by_node(requests: list[Request]) -> list[dict[str, Any]]:
    """What the page's own mathematics answers."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on the path")
    command = [node, "--input-type=module", "-e", RUN, str(LOCAL)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=True, timeout=60)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def requests(loss: str, count: int = 60) -> Iterator[Request]:
    """Random requests of the sizes that the page has; two of three have ties, within and between the classes."""
    rng = np.random.default_rng(20180618)
    for k in range(count):
        n = int(rng.integers(2, 41))
        n_pos = int(rng.integers(1, n))
        relevant = rng.permutation(np.arange(n) < n_pos)
        scores = np.round(rng.normal(size=n) + 0.5 * relevant, k % 3)
        scale = float(rng.choice([0.0, 0.05, 0.5, 1.0, 3.0]))
        yield {"scores": scores.tolist(), "relevant": relevant.tolist(), "loss": loss, "scale": scale}


def close(found: Any, exact: Any) -> bool:
    return bool(np.allclose(found, exact, rtol=RTOL, atol=ATOL))


def check(found: dict[str, Any], request: Request) -> None:
    """An answer of the page says what the library says."""
    exact = solve(request)
    assert found.keys() == exact.keys()
    assert [found[name] for name in ("loss", "scale", "positives", "negatives")] == [
        exact[name] for name in ("loss", "scale", "positives", "negatives")
    ]
    for name in ("value", "gap", "gradient", "downhill"):
        assert close(found[name], exact[name]), (name, request)
    for which in ("predicted", "violating"):
        assert close(found[which].pop("loss"), exact[which].pop("loss")), (which, request)
        assert found[which] == exact[which], (which, request)
    if exact["calls"] is None or len(exact["negatives"]) > SORTED_NEGATIVES:
        assert (found["calls"] is None) == (exact["calls"] is None)
        return
    for call, expected in zip(found["calls"], exact["calls"], strict=True):
        assert close(call.pop("values"), expected.pop("values")), request
        assert call == expected, request


@pytest.mark.parametrize("loss", LOSSES)
def test_the_pages_mathematics_agrees_with_the_library(loss: str) -> None:
    asked = list(requests(loss))
    for found, request in zip(explained_by_node(asked), asked, strict=True):
        check(found, request)


def test_long_problems_have_calls_that_find_every_rank() -> None:
    asked = [request for request in requests("ap", 120) if request["relevant"].count(False) > SORTED_NEGATIVES]
    assert len(asked) > 20
    for found in explained_by_node(asked):
        ranks: dict[int, int] = {}
        for call in found["calls"]:
            for j in [call["m"]] if call["m"] else range(call["left"], call["right"] + 1):
                assert j not in ranks
                ranks[j] = call["opt"]
        assert [ranks[j] for j in sorted(ranks)] == found["violating"]["ranks"]


def test_the_folder_has_the_page_and_one_plain_script(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["dark.css", SCRIPT, "index.html", "style.css"]
    page, script = (folder / "index.html").read_text("utf-8"), (folder / SCRIPT).read_text("utf-8")
    assert f'<script defer src="{SCRIPT}"></script>' in page
    assert 'type="module"' not in page
    assert "import " not in script.replace("important", "")
    assert "fetch(" not in script, "the page must ask nobody"


NUMBERS = """
const full = (id) => Number(document.getElementById(id).value);
return {
  scores: [...document.querySelectorAll(".handle")].map((handle) => Number(handle.getAttribute("aria-valuenow"))),
  relevant: [...document.querySelectorAll(".handle")].map((handle) => handle.classList.contains("positive")),
  value: full("value"), violating: full("violating-loss"), predicted: full("predicted-loss"),
};
"""


@pytest.mark.parametrize("loss", LOSSES)
def test_the_page_works_from_the_disk(browser: Any, folder: Path, loss: str, wait: Callable[..., None]) -> None:
    browser.get("about:blank")
    browser.get(f"{(folder / 'index.html').as_uri()}#loss={loss}&scale=0.75")
    wait(browser, "return document.querySelector('main').ariaBusy === 'false'")
    browser.find_element("id", "downhill").click()
    wait(browser, "return document.querySelector('main').ariaBusy === 'false'")
    seen = browser.execute_script(NUMBERS)
    exact = solve({"scores": seen["scores"], "relevant": seen["relevant"], "loss": loss, "scale": 0.75})
    expected = [exact["value"], exact["violating"]["loss"], exact["predicted"]["loss"]]
    assert close([seen["value"], seen["violating"], seen["predicted"]], expected)
    assert "inside this page" in browser.find_element("id", "origin").text
    assert browser.get_log("browser") == []


def test_an_embedded_page_tells_its_height_and_takes_the_colours_around_it(
    browser: Any, folder: Path, wait: Callable[..., None]
) -> None:
    outer = folder.parent / "outer.html"
    outer.write_text(
        "<!DOCTYPE html><title>outer</title><script>addEventListener('message', (e) => (window.told = e.data))</script>"
        f'<iframe src="{folder.name}/index.html" width="360" height="500"></iframe>',
        encoding="utf-8",
    )
    browser.get(outer.as_uri())
    wait(browser, "return window.told?.explorer > 1000")
    colours = {}
    for theme in ("dark", "light"):
        browser.execute_script("frames[0].postMessage({theme: arguments[0]}, '*')", theme)
        browser.switch_to.frame(0)
        media = {"dark": "all", "light": "not all"}[theme]
        wait(browser, f"return document.getElementById('dark').media === '{media}'")
        colours[theme] = browser.execute_script(
            "return getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"
        )
        browser.switch_to.default_content()
    assert colours["dark"] != colours["light"]
    assert browser.get_log("browser") == []
