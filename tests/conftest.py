"""What several test files share: families of scores, J by its definition, pages and a browser to see them with."""

from __future__ import annotations

import html.parser
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rankwise as rw

# hostile.py and exact_hinge.py are imported by their names.
sys.path.append(str(Path(__file__).parent))

SEED = 20180618

Scores = NDArray[np.float64]
Relevant = NDArray[np.bool_]
Family = Callable[[np.random.Generator, Relevant], Scores]


def _organ_pipe(n: int) -> Scores:
    """0, 1, 2, … up to the middle and down again."""
    return np.minimum(np.arange(n), np.arange(n)[::-1]).astype(np.float64)


def _median_of_three_killer(n: int) -> Scores:
    """Musser 1997: the first, the middle and the last of it are always among the least."""
    half = n // 2
    k = np.arange(1, half + 1)
    first = np.where(k % 2 == 1, k, half + k - 1)
    return np.concatenate([first, 2 * k, [2 * half + 1] * (n % 2)]).astype(np.float64)


def _clusters(rng: np.random.Generator, relevant: Relevant) -> Scores:
    return rng.integers(0, 5, relevant.size) + 1e-6 * rng.normal(size=relevant.size)


def _in_order(order: Callable[[Scores], Scores]) -> Family:
    """Normal scores, the negatives among themselves in a given order."""

    def draw(rng: np.random.Generator, relevant: Relevant) -> Scores:
        scores = rng.normal(size=relevant.size)
        scores[~relevant] = order(np.sort(scores[~relevant]))
        return scores

    return draw


FAMILIES: dict[str, Family] = {
    "normal": lambda rng, y: rng.normal(size=y.size) + y,
    "separated": lambda rng, y: rng.normal(size=y.size) + 20.0 * y,
    "cauchy": lambda rng, y: rng.standard_cauchy(y.size) + y,
    "lognormal": lambda rng, y: rng.lognormal(sigma=5.0, size=y.size) + y,
    "constant": lambda rng, y: np.full(y.size, 0.3),
    "two-valued": lambda rng, y: rng.choice([-0.25, 0.5], y.size),
    "integers": lambda rng, y: rng.integers(-5, 6, y.size).astype(np.float64) + y,
    "relu": lambda rng, y: np.maximum(rng.normal(size=y.size) - 0.5 + y, 0.0),
    "clipped": lambda rng, y: np.clip(3.0 * rng.normal(size=y.size), -1.0, 1.0),
    "clusters": _clusters,
    "offset": lambda rng, y: 1000.0 + 1e-3 * (rng.normal(size=y.size) + y),
    "ascending": _in_order(lambda s: s),
    "descending": _in_order(lambda s: s[::-1]),
    "organ-pipe": _in_order(lambda s: s[np.argsort(np.argsort(_organ_pipe(s.size), kind="stable"))]),
    "median-of-three-killer": _in_order(lambda s: s[np.argsort(np.argsort(_median_of_three_killer(s.size)))]),
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    """A test that asks for this runs once for each family of scores."""
    return FAMILIES[request.param]


@pytest.fixture(params=["ascending", "descending", "organ-pipe", "median-of-three-killer"])
def adversary(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def draw_relevant() -> Callable[[np.random.Generator, int, int], Relevant]:
    """Which of n_pos + n_neg samples are positive, in random order."""

    def draw(rng: np.random.Generator, n_pos: int, n_neg: int) -> Relevant:
        return rng.permutation(np.arange(n_pos + n_neg) < n_pos)

    return draw


@pytest.fixture
def objective() -> Callable[..., float]:
    """scale·Δ(R*, R) + F(R) − F(R*) by the definition: F = (1/PN) Σ R_xy (s_x − s_y) with the matrix R."""

    def of(scores: Scores, relevant: Relevant, loss: rw.Loss, scale: float, ranking: rw.Interleaving) -> float:
        between = np.ix_(relevant, ~relevant)
        ahead = scores[relevant][:, None] - scores[~relevant][None, :]
        score_of = np.mean(ranking.matrix()[between] * ahead)
        return float(scale * loss.of_counts(ranking.above, int((~relevant).sum())) + score_of - np.mean(ahead))

    return of


@pytest.fixture
def write_features() -> Callable[..., Path]:
    """A function that writes a VOC folder of shapes and a features folder of it, and returns the latter.

    A window's features are noise, and its IoU with the objects of each class in a column of its own, for the whole
    image at least 0.4; no network is needed. The VOC folder is beside it, `kit`.
    """
    from rankwise.detection.boxes import iou
    from rankwise.detection.proposals import sliding_windows
    from rankwise.detection.shapes import write_shapes
    from rankwise.detection.store import FORMAT, VERSION
    from rankwise.detection.voc import read_voc
    from rankwise.detection.writing import StoreWriter

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
        with StoreWriter(folder, {**head, "classes": list(kit.classes), "sets": sets, "images": images}) as writer:
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
        if tag in ("img", "script", "link"):
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


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """The page to play with, served."""
    from rankwise.explore.server import Explorer
    from rankwise.explore.solve import warm_up

    warm_up()
    with Explorer() as explorer:
        thread = threading.Thread(target=explorer.serve_forever, args=(0.02,))
        thread.start()
        yield explorer
        explorer.shutdown()
        thread.join()


@pytest.fixture
def dying() -> str:
    """Code after which a program is killed when a report's part is written for the n-th time, n its first argument."""
    return """
import os, signal, sys
from rankwise.reproduce import kept

write, left = kept.write_bytes, [int(sys.argv[1])]

def counted(path, content):
    write(path, content)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

kept.write_bytes = counted
"""
