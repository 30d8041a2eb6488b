"""The interactive page in a browser: what it shows is what the library computes of the scores it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from explained import LOSSES, explained

import rankwise as rw
from rankwise.inference import trace

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.support.ui import WebDriverWait

SHOWN = 0.5e-4 + 1e-12  # numbers are shown with four decimals
FIGURE_1 = "#loss=ap&samples=p2,p0,n1.5,n1,n0.9,n0.8,n0.7,n0.6,n0.5,n0.4,n0.3,n-1,n-2"
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844), "small phone": (360, 640)}


class Page:
    """The page, driven and read."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser, self.address = browser, address

    def open(self, fragment: str = "", size: tuple[int, int] = WIDTHS["desktop"]) -> None:
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.browser.get("about:blank")  # else only the fragment would change
        self.browser.get(self.address + fragment)

    def turn(self, fragment: str) -> None:
        """Change the fragment of the page that is open, and wait until it is shown."""
        self.browser.execute_async_script(TURNED, fragment)

    def wait(self, condition: Callable[[], Any]) -> None:
        WebDriverWait(self.browser, 15, poll_frequency=0.02).until(lambda _: condition())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.browser.find_elements("css selector", selector)
        return found

    def click(self, selector: str) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        self.find(selector).click()

    def text(self, selector: str) -> str:
        return str(self.find(selector).text).replace("−", "-")

    def press(self, *keys: str) -> None:
        ActionChains(self.browser, duration=0).send_keys(*keys).perform()

    def handle(self, kind: str) -> Any:
        """The first handle of a kind, in the middle of the window."""
        found = self.find(f".handle.{kind}")
        self.run("arguments[0].scrollIntoView({block: 'center'})", found)
        return found

    def shown(self) -> Shown:
        """The samples shown, in their order."""
        seen = self.run(SEEN)
        scores, relevant = zip(*seen["samples"], strict=True)
        return Shown(np.array(scores), np.array(relevant), seen["loss"], float(seen["scale"]), seen)


TURNED = """
const [fragment, done] = arguments;
addEventListener("hashchange", () => requestAnimationFrame(() => requestAnimationFrame(done)), { once: true });
location.hash = fragment;
"""
SEEN = """
const one = (id) => document.getElementById(id);
const words = (element) => element.innerText.replaceAll("−", "-");
const ranked = (which) => ({
  pattern: words(one(which + "-pattern")).replaceAll("\\n", ""),
  ranks: words(one(which + "-ranks")).split(/\\s+/).map(Number),
});
return {
  samples: [...document.querySelectorAll(".handle")].map(
    (handle) => [Number(handle.getAttribute("aria-valuenow")), handle.classList.contains("positive")]),
  loss: document.querySelector("#losses input:checked").value,
  scale: words(one("scale-shown")),
  numbers: Object.fromEntries(["value", "gap", "violating-loss", "predicted-loss"].map(
    (id) => [id, [Number(words(one(id))), Number(one(id).value)]])),
  predicted: ranked("predicted"),
  violating: ranked("violating"),
  rows: [...document.querySelectorAll("#numbers tbody tr")].map((row) => [...row.cells].map(words)),
};
"""


class Shown(NamedTuple):
    scores: Any
    relevant: Any
    loss: str
    scale: float
    seen: dict[str, Any]

    def exact(self) -> dict[str, Any]:
        """What the library says of it."""
        return explained({"scores": self.scores, "relevant": self.relevant, "loss": self.loss, "scale": self.scale})


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[Page]:
    """The page; whatever a test does, the console must stay silent and nothing be asked for elsewhere."""
    shown = Page(browser, (folder / "index.html").as_uri())
    yield shown
    asked = shown.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert all(name.startswith(folder.as_uri()) for name in asked), asked
    assert browser.get_log("browser") == []


def check_numbers(page: Page) -> Shown:
    """Every number on the page is the library's, for the scores on the page."""
    shown = page.shown()
    exact = shown.exact()
    expected = {name: exact[name] for name in ("value", "gap")}
    expected |= {f"{which}-loss": exact[which]["loss"] for which in ("violating", "predicted")}
    for name, (rounded, full) in shown.seen["numbers"].items():
        assert rounded == pytest.approx(expected[name], abs=SHOWN), name
        assert full == pytest.approx(expected[name], rel=1e-10, abs=1e-10), name
    for which in ("predicted", "violating"):
        assert shown.seen[which] == {key: exact[which][key] for key in ("pattern", "ranks")}
    for at, row in zip(exact["predicted"]["order"], shown.seen["rows"], strict=True):
        assert (row[0][0] == "+", float(row[1])) == (shown.relevant[at], shown.scores[at])
        assert int(row[3]) == exact["violating"]["order"].index(at) + 1
        assert float(row[6]) == pytest.approx(exact["gradient"][at], abs=SHOWN)
    return shown


def test_a_score_is_dragged_by_mouse(page: Page) -> None:
    page.open()
    before = check_numbers(page)
    drag = ActionChains(page.browser, duration=20).move_to_element_with_offset(page.handle("negative"), 3, 7)
    drag.click_and_hold().move_by_offset(0, -40).move_by_offset(5, -37).release().perform()
    after = check_numbers(page)
    moved = np.flatnonzero(after.scores != before.scores)
    assert moved.tolist() == [int(np.argmin(before.relevant))]
    plot = page.run("return document.getElementById('rankings').height.baseVal.value") - 88
    assert after.scores[moved] - before.scores[moved] == pytest.approx(77 * 6 / plot, abs=0.02)
    ActionChains(page.browser, duration=0).move_by_offset(0, 200).perform()
    assert page.shown().scores.tolist() == after.scores.tolist(), "once released it must stay"


DRAWN = """
const numbers = (text) => text.match(/[-\\d.]+/g).map(Number);
const place = (element) => numbers(element.getAttribute("transform"));
return {
  nodes: [...document.querySelectorAll(".node")].map((node) => [
    ...place(node), node.querySelector(".label").textContent, node.querySelector(".rank").textContent]),
  handles: [...document.querySelectorAll(".handle")].map(place),
  arrows: [...document.querySelectorAll(".arrow .shaft")].map((arrow) => numbers(arrow.getAttribute("d"))),
};
"""


def check_drawing(answer: dict[str, Any], drawn: dict[str, Any]) -> None:
    names = {at: f"+{k}" for k, at in enumerate(answer["positives"], 1)}
    names |= {at: f"−{j}" for j, at in enumerate(answer["negatives"], 1)}
    columns = sorted({node[0] for node in drawn["nodes"]})
    assert len(columns) == 2
    for x, which in zip(columns, ("predicted", "violating"), strict=True):
        column = sorted(node[1:] for node in drawn["nodes"] if node[0] == x)
        assert [label for _, label, _ in column] == [names[at] for at in answer[which]["order"]]
        assert [rank for _, _, rank in column if rank] == [f"r = {rank}" for rank in answer[which]["ranks"]]
    for (x, y), arrow, part in zip(drawn["handles"], drawn["arrows"], answer["gradient"], strict=True):
        if part == 0.0:
            assert arrow == [0, 0]
        else:
            assert arrow[0] > x, "an arrow stands beside its mark"
            assert arrow[1] == y
            assert np.sign(arrow[2] - arrow[1]) == np.sign(part), "down the page is down"


# Bodies of marks and what is in front of what, in pixels; and where ticks end, against where scores belong.
PAINTED = """
const box = (element) => { const b = element.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const [marks, arrows] = [".handle .body, .node .body", ".arrow"].map((which) => [...document.querySelectorAll(which)]);
const numbers = (text) => text.match(/[-\\d.]+/g).map(Number);
const drawing = document.getElementById("rankings");
return {
  marks: marks.map(box),
  behind: arrows.filter((arrow) => marks.some((mark) =>
    mark.compareDocumentPosition(arrow) & Node.DOCUMENT_POSITION_PRECEDING)).length,
  arrows: arrows.map((arrow) => arrow.querySelector(".shaft")).filter((shaft) => shaft.getTotalLength()).map(box),
  handles: [...document.querySelectorAll(".handle .body")].map(box),
  ticks: [...document.querySelectorAll("#rankings .mark")].map((tick) => numbers(tick.getAttribute("d"))[1]),
  height: drawing.height.baseVal.value,
  outside: [...document.querySelectorAll("main *")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width && !element.closest(".table") && (box.left < -0.5 || box.right > innerWidth + 0.5);
  }).map((element) => element.outerHTML),
  widths: [innerWidth, document.documentElement.scrollWidth],
};
"""


def overlaps(a: list[float], b: list[float]) -> bool:
    """Whether two boxes, (left, top, right, bottom), share more than an edge."""
    return a[0] < b[2] - 0.01 and b[0] < a[2] - 0.01 and a[1] < b[3] - 0.01 and b[1] < a[3] - 0.01


@pytest.fixture
def without_motion(page: Page) -> Iterator[None]:
    still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", still)
    yield
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CROWDS = {
    "the first example": ("#loss=zero-one", 8),
    "figure 1": (FIGURE_1, 13),
    "ties": ("#samples=" + ",".join(["p1"] * 5 + ["n1"] * 9), 14),
    "at the ends": ("#samples=" + ",".join(["p3"] * 6 + ["n3"] * 6 + ["n-3"] * 6 + ["p-3"] * 6), 24),
    "one score, many": ("#samples=p0," + ",".join(["n0"] * 39), 40),
}


@pytest.mark.usefixtures("without_motion")
@pytest.mark.parametrize("size", WIDTHS.values(), ids=WIDTHS)
def test_nothing_leaves_the_window_and_marks_never_overlap(page: Page, size: tuple[int, int]) -> None:
    page.open("", size)
    for crowd, (fragment, count) in CROWDS.items():
        page.turn(fragment)
        painted, scores = page.run(PAINTED), check_numbers(page).scores
        marks = painted["marks"]
        assert len(marks) == 3 * count, crowd
        assert painted["outside"] == [], crowd
        assert painted["widths"][0] == size[0] >= painted["widths"][1], crowd
        touching = [(a, b) for k, a in enumerate(marks) for b in marks[:k] if overlaps(a, b)]
        assert touching == [], crowd
        assert painted["ticks"] == pytest.approx(58 + (3 - scores) / 6 * (painted["height"] - 88)), crowd
        assert painted["behind"] == 0, crowd
        assert len(painted["arrows"]) > 1, crowd
        hidden = [arrow for arrow in painted["arrows"] if any(overlaps(arrow, mark) for mark in painted["handles"])]
        assert hidden == [], crowd


def test_a_score_is_dragged_by_touch_to_the_end_of_the_axis(page: Page) -> None:
    page.open("#samples=n1,p-1.5,n0,p2", WIDTHS["phone"])
    before = page.shown()
    where = page.handle("positive").rect
    x, y = where["x"] + where["width"] / 2, where["y"] + where["height"] / 2 - page.run("return scrollY")
    for kind, down in [("touchStart", 0), ("touchMove", 50), ("touchMove", 140), ("touchEnd", None)]:
        points = [] if down is None else [{"x": x, "y": y + down}]
        page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    after = check_numbers(page)
    moved = np.flatnonzero(after.scores != before.scores)
    assert moved.tolist() == [int(np.argmax(before.relevant))]
    assert after.scores[moved] == -3.0


def test_keys_move_flip_and_remove_the_sample_in_focus(page: Page) -> None:
    page.open("#samples=p1,p0.5,n0,n-1")
    page.run("arguments[0].focus()", page.handle("positive"))
    for key, score in [
        (Keys.ARROW_UP, 1.05), (Keys.ARROW_DOWN, 1.0), (Keys.ARROW_RIGHT, 1.05), (Keys.ARROW_LEFT, 1.0),
        (Keys.PAGE_UP, 1.5), (Keys.PAGE_DOWN, 1.0), (Keys.END, 3.0), (Keys.HOME, -3.0),
    ]:  # fmt: skip
        page.press(key)
        assert page.shown().scores[0] == score, key
        assert page.find("#editor-score").get_attribute("value") == f"{score:.2f}"
    label = page.run("return document.activeElement.getAttribute('aria-label')")
    assert label == "positive 2, score"
    page.press(" ")
    assert check_numbers(page).relevant.tolist() == [False, True, False, False]
    page.press(Keys.DELETE)
    shown = check_numbers(page)
    assert (shown.scores.tolist(), shown.relevant.tolist()) == ([0.5, 0.0, -1.0], [True, False, False])
    assert "handle" in page.run("return document.activeElement.getAttribute('class')"), "focus must not be lost"
    page.run("arguments[0].focus()", page.handle("positive"))
    for key in (Keys.DELETE, " "):  # the last of its class stays
        page.press(key)
        assert page.text("#message") == "A ranking needs at least one positive and one negative sample."
        assert page.shown().relevant.tolist() == [True, False, False]


@pytest.mark.usefixtures("without_motion")
def test_every_loss_has_its_numbers_its_drawing_and_its_formula(page: Page) -> None:
    page.open("#scale=0.75&samples=p1,n1,n1,p0,p0,n0,n0,n-1,p-1,n0.4")
    for loss in LOSSES:
        page.click(f"#losses label:has([value='{loss}'])")
        now = check_numbers(page)
        assert now.loss == loss
        check_drawing(now.exact(), page.run(DRAWN))
        shown = [part.get_attribute("data-loss") for part in page.all("p[data-loss]") if part.is_displayed()]
        assert shown == [loss]
        assert page.find("#recursion").is_displayed() == (loss != "zero-one"), loss
        assert page.find("#no-recursion").is_displayed() == (loss == "zero-one"), loss
        page.wait(lambda loss=loss: f"loss={loss}&scale=0.75" in page.browser.current_url)
    page.run("arguments[0].focus()", page.find("#scale"))
    page.press(Keys.ARROW_RIGHT, Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert check_numbers(page).scale == 0.1


def test_the_recursion_is_stepped_through_to_the_end(page: Page) -> None:
    page.open(FIGURE_1)
    shown = page.shown()
    steps = trace(shown.scores, shown.relevant, "ap")
    assert not page.find("#previous").is_enabled()
    for number, step in enumerate(steps, start=1):
        assert page.text("#call") == f"OptRanks({step.left}, {step.right}, {step.low}, {step.high})"
        assert page.text("#count") == f"call {number} of {len(steps)}"
        dots = {int(dot.get_attribute("data-rank")): float(dot.get_attribute("data-value"))
                for dot in page.all("#curve [data-rank]")}  # fmt: skip
        if step.m:
            assert sorted(dots) == list(range(step.low, step.high + 1))
            assert max(dots, key=lambda rank: dots[rank]) == step.opt
            assert [dot.get_attribute("data-rank") for dot in page.all("#curve .best")] == [str(step.opt)]
            assert f"opt{chr(0x2080 + step.m) if step.m < 10 else '₁₀'} = {step.opt}" in page.text("#curve")
        else:
            assert dots == {}
        if number < len(steps):
            page.click("#next")
    assert not page.find("#next").is_enabled()
    assert "All ranks are known. The algorithm searched the ranks of 6 of 11 negatives." in page.text("#said")
    known = page.find("#grid").get_attribute("aria-label")
    ranks = rw.most_violating_ranking(shown.scores, shown.relevant, "ap").ranks
    assert ", ".join(f"{j}: {rank}" for j, rank in enumerate(ranks, start=1)) in known
    page.click("#first")
    assert page.text("#count").startswith("call 1 ")
    page.click("#last")
    page.click("#previous")
    assert page.text("#count").startswith(f"call {len(steps) - 1} ")
    page.wait(lambda: page.browser.current_url.endswith(f"step={len(steps) - 1}"))
    for shown in ("Pause", "Play", "Pause"):
        page.click("#play")
        assert page.text("#play") == shown
    page.wait(lambda: page.text("#count") == f"call {len(steps)} of {len(steps)}" and page.text("#play") == "Play")


def test_samples_are_added_edited_drawn_at_random_and_taken_from_examples(page: Page) -> None:
    page.open("#samples=p1,n0")
    page.click("#add-positive")
    page.click("#add-negative")
    assert check_numbers(page).relevant.tolist() == [True, False, True, False]
    page.find("#editor-score").send_keys(Keys.CONTROL, "a", Keys.NULL, "1.37")
    assert check_numbers(page).scores[3] == 1.37
    page.click("#flip")
    page.click("#remove")
    assert check_numbers(page).relevant.tolist() == [True, False, True]
    for name in ("figure", "separated", "reversed", "ties", "mixed"):
        page.click(f"#preset option[value={name}]")
        check_numbers(page)
    page.click("#random")
    first = check_numbers(page).scores.tolist()
    page.click("#random")
    assert check_numbers(page).scores.tolist() != first


def test_the_address_holds_the_view(page: Page) -> None:
    page.open("#loss=ndcg&scale=2.5&samples=p1.25,n0.5,n-2,p-0.75&step=2")
    view = check_numbers(page)
    assert (view.loss, view.scale, view.scores.tolist()) == ("ndcg", 2.5, [1.25, 0.5, -2.0, -0.75])
    page.run("arguments[0].focus()", page.handle("negative"))
    page.press(Keys.ARROW_UP)
    page.wait(lambda: page.browser.current_url.endswith("#loss=ndcg&scale=2.5&samples=p1.25,n0.55,n-2,p-0.75&step=2"))
    page.browser.refresh()
    again = check_numbers(page)
    assert (again.loss, again.scale, again.scores.tolist()) == ("ndcg", 2.5, [1.25, 0.55, -2.0, -0.75])
    assert page.text("#count").startswith("call 2 ")


UNREADABLE = ["#samples=p1", "#samples=<b>", "#samples=" + "p1,n0," * 30 + "p1", "#loss=map", "#scale=-1", "#step=x"]


def test_an_address_that_cannot_be_read_is_told_of(page: Page) -> None:
    page.open()
    for fragment in UNREADABLE:
        page.turn(fragment)
        name = fragment[1:].partition("=")[0]
        assert page.text("#message") == f"The {name} in the address cannot be read; the default is shown instead."
        assert check_numbers(page).loss == "ap"


INK = "return getComputedStyle(document.documentElement).getPropertyValue('--' + arguments[0]).trim()"


def test_an_embedded_page_tells_its_height_and_takes_the_colours_around_it(page: Page, folder: Path) -> None:
    outer = folder.parent / "outer.html"
    outer.write_text(
        "<!DOCTYPE html><title>outer</title><script>addEventListener('message', (e) => (window.told = e.data))</script>"
        f'<iframe src="{folder.name}/index.html" width="360" height="500"></iframe>',
        encoding="utf-8",
    )
    page.browser.get(outer.as_uri())
    page.wait(lambda: page.run("return window.told?.explorer > 1000"))
    colours = {}
    for theme, media in (("dark", "all"), ("light", "not all")):
        page.run("frames[0].postMessage({theme: arguments[0]}, '*')", theme)
        page.browser.switch_to.frame(0)
        page.wait(lambda media=media: page.run("return document.getElementById('dark').media") == media)
        colours[theme] = page.run(INK, "ink")
        page.browser.switch_to.default_content()
    assert colours["dark"] != colours["light"]
