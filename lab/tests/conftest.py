"""What tests of the laboratory share: a folder of their own, features of images, pages, a browser."""

from __future__ import annotations

import html.parser
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that a test is run in, on a machine without data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture(scope="session")
def write_features() -> Callable[..., Path]:
    """A function that writes a VOC folder of shapes and a features folder of it, and returns the latter.

    A window's features are noise, and its IoU with the objects of each class in a column of its own, for the whole
    image at least 0.4; no network is needed. The VOC folder is beside it, `kit`.
    """
    from rankwise_lab.detection.boxes import iou
    from rankwise_lab.detection.proposals import sliding_windows
    from rankwise_lab.detection.shapes import write_shapes
    from rankwise_lab.detection.store import FORMAT, VERSION
    from rankwise_lab.detection.voc import read_voc
    from rankwise_lab.detection.writing import StoreWriter

    def write(
        folder: Path, *, dim: int = 8, noise: float = 0.05, seed: int = 0, windows: int = 150, n: int = 16
    ) -> Path:
        kit = read_voc(write_shapes(folder.parent / "kit", {"train": n, "val": n, "test": n}, seed))
        rng = np.random.default_rng(seed)
        settings = {"proposals": "sliding", "max_windows": windows, "min_side": 12, "model": "noise", "weights": "0"}
        settings |= {"crop": 16, "context": 0.0, "dim": dim}
        images = [
            {
                "id": image.image_id,
                "width": image.width,
                "height": image.height,
                "objects": [{"name": o.name, "box": list(o.box), "difficult": o.difficult} for o in image.objects],
            }
            for image in kit.images
        ]
        sets = {name: list(ids) for name, ids in kit.sets.items()}
        head = {"format": FORMAT, "version": VERSION, "devkit": kit.name, "settings": settings}
        writer = StoreWriter(folder, {**head, "classes": list(kit.classes), "sets": sets, "images": images})
        for image in kit.images:
            boxes = sliding_windows(image.height, image.width, max_windows=windows)
            features = noise * rng.normal(size=(len(boxes), dim))
            for thing in image.objects:
                overlap = np.maximum(iou(boxes, [thing.box])[:, 0], 0.4 * (np.arange(len(boxes)) == 0))
                features[:, kit.classes.index(thing.name)] += overlap
            writer.append(boxes, features)
        writer.finish()
        return folder

    return write


class Page(html.parser.HTMLParser):
    """A page's cells and the sources of what it shows; tags that are not closed; ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.sources: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        if tag in ("img", "link") or (tag == "script" and "src" in values):  # a script inside the page has no source
            self.sources.append(values.get("src") or values.get("href") or "")
        if tag not in ("img", "meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.fixture
def read_page() -> type[Page]:
    """Reads the text of a page."""
    return Page


_BROWSER_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium, driven by selenium; get_log("browser") is what its console said."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(f"{'chromium' if chromium is None else 'chromedriver'} is not on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*_BROWSER_OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield window
    window.quit()
