"""What the benchmarks are tested in: one thread, data packages, and data files in the layouts of the real ones."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from archives import encoded, write_archive
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import rankwise.kernels.compiled  # noqa: F401  # kernels lie where they did before another cache is named


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Problems are so small that threads of BLAS do nothing but wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def data_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Has data looked for and kept in a folder."""

    def look(folder: Path) -> None:
        monkeypatch.setenv("RANKWISE_DATA", str(folder))
        monkeypatch.setenv("RANKWISE_CACHE_DIR", str(folder))

    return look


@pytest.fixture
def cifar_data(cifar_folder: Path, data_in: Callable[[Path], None]) -> Path:
    data_in(cifar_folder)
    return cifar_folder


@pytest.fixture
def omniglot_data(omniglot_folder: Path, data_in: Callable[[Path], None]) -> Path:
    data_in(omniglot_folder)
    return omniglot_folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes a file of a data package that is found before the real one; importing the package fails."""

    def write(name: str, path: str = "", text: str = "") -> None:
        root = tmp_path / "site" / name
        root.mkdir(parents=True, exist_ok=True)
        (root / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
        monkeypatch.syspath_prepend(root.parent)
        monkeypatch.delitem(sys.modules, name, raising=False)
        if path:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")

    return write


@pytest.fixture(scope="session")
def write_w8a() -> Callable[[Path, int], NDArray[np.bool_]]:
    """Writes a file in the layout of w8a, one row in eight positive; the last feature tells which, most of the time."""

    def write(folder: Path, n: int) -> NDArray[np.bool_]:
        rng = np.random.default_rng(0)
        y = np.arange(n) % 8 == 0
        with gzip.open(folder / "w8a.gz", "wt", encoding="utf-8") as file:
            for positive in y:
                known = np.flatnonzero(rng.random(20) < (0.5 if positive else 0.3)) + 1
                cells = " ".join(f"{j}:1" for j in [*known, *([300] if positive else [])])
                file.write(f"{'+1' if positive else '-1'} {cells}\n")
        return y

    return write


COLOURS = {"black": (20, 20, 20), "blue": (20, 20, 230), "green": (20, 230, 20), "red": (230, 20, 20)}


@pytest.fixture(scope="session")
def cifar_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with images of one colour each, a little noisy, as CIFAR-10; arrays of it are kept there too."""
    folder, rng, members = tmp_path_factory.mktemp("cifar"), np.random.default_rng(2), {}
    for part, per_class in (("train", 30), ("test", 10)):
        for name, colour in COLOURS.items():
            for i in range(per_class):
                pixels = np.clip(colour + rng.integers(-20, 21, (32, 32, 3)), 0, 255).astype(np.uint8)
                members[f"{part}/{name}/{i:04}.jpg"] = encoded(pixels, "JPEG")
    write_archive(folder / "cifar10-jpeg.tar.xz", members)
    return folder


@pytest.fixture(scope="session")
def omniglot_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with bars of ink as Omniglot: three alphabets of four characters, told by the place of the bar."""
    folder, rng, members = tmp_path_factory.mktemp("omniglot"), np.random.default_rng(0), {}
    for alphabet in "ABC":
        for character in range(4):
            for number in range(4):
                pixels = np.ones((105, 105), np.bool_)
                columns = slice(rng.integers(0, 30), 105 - rng.integers(0, 30))
                pixels[10 + 20 * character : 24 + 20 * character, columns] = False
                path = f"images_background_small1/{alphabet}/character{character + 1:02}/0001_{number + 1:02}.png"
                members[path] = encoded(pixels)
    write_archive(folder / "omniglot-small.tar.xz", members)
    return folder
