"""What the tests of both houses share: random numbers, J by its definition, features of images, pages, a browser."""

from __future__ import annotations

import gc
import html.parser
import shutil
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SEED = 20180618
pytest.register_assert_rewrite("commands", "exact_hinge", "linear_problems", "metric_problems")
# Where torch is absent, these are not imported for their examples; tests that need it skip themselves.
_LAB = "lab/src/rankwise_lab"
NEED_TORCH = [
    "src/rankwise/torch/*",
    f"{_LAB}/benchmarks/torch_*",
    f"{_LAB}/detection/cnn.py",
    f"{_LAB}/layerwise/*",
    f"{_LAB}/benchmarks/finetune*",
    f"{_LAB}/benchmarks/layerwise.py",
    f"{_LAB}/benchmarks/retrieval*",
    f"{_LAB}/reproduce/cifar.py",
    "tests/helpers/layer_networks.py",
    "tests/helpers/lwsvm_runs.py",
    "tests/helpers/torch_versions.py",
]
NEED_DASK = ["src/rankwise/dask/*", "tests/helpers/dask_problems.py", "tests/dask/*"]
collect_ignore_glob = [*([] if find_spec("torch") else NEED_TORCH), *([] if find_spec("distributed") else NEED_DASK)]


def pytest_configure() -> None:
    """Take Ctrl-C as usual: started in the background, a shell has it ignored, here and in all that is started.

    Workers of pytest-xdist are started after this, and do the same.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all modules and tests again and again: they stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


@pytest.fixture
def objective() -> Callable[..., float]:
    """scale·Δ(R*, R) + F(R) − F(R*) by the definition: F = (1/PN) Σ R_xy (s_x − s_y) with the matrix R."""

    def of(scores: np.ndarray, relevant: np.ndarray, loss: Any, scale: float, ranking: Any) -> float:
        place = np.argsort(ranking.order())
        above = np.sign(place[~relevant][None, :] - place[relevant][:, None])
        ahead = scores[relevant][:, None] - scores[~relevant][None, :]
        score_of = np.mean(above * ahead)
        return float(scale * loss.of_counts(ranking.above, int((~relevant).sum())) + score_of - np.mean(ahead))

    return of


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
