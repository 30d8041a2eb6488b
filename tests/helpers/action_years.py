"""VOC 2011 action in a folder laid out as the devkit, with few persons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("jumping", "phoning", "ridingbike")
SIZES = {"train": 6, "val": 5, "trainval": 11, "test": 7}
D = 4


class Year:
    """A VOC2011 folder: three actions, some persons of two in one image; files are changed by each test."""

    def __init__(self, root: Path, *, test_labels: str | None = None) -> None:
        self.root = root
        self.lists = root / "ImageSets" / "Action"
        self.features = root / "ActionFeatures"
        for folder in (self.lists, self.features):
            folder.mkdir(parents=True)
        rng = np.random.default_rng(0)
        all_persons = [(f"2011_{k // 2:06}", 1 + k % 2) for k in range(18)]
        parts = {"train": all_persons[:6], "val": all_persons[6:11], "trainval": all_persons[:11]}
        parts["test"] = all_persons[11:]
        whole = rng.normal(3.0, 2.0, (18, D))
        whole[:, 0] = 7.0
        self.labels: dict[str, Any] = {}
        self.X: dict[str, Any] = {}
        for part, persons in parts.items():
            rows = [all_persons.index(person) for person in persons]
            self.X[part] = whole[rows]
            np.save(self.features / f"{part}.npy", self.X[part])
            self.write(part, [f"{image} {number}" for image, number in persons])
            # A person may do two things.
            self.labels[part] = np.array([[row % 3 == k or row % 5 == k for k in range(3)] for row in rows])
            for k, name in enumerate((*CLASSES, "other")):
                known = part != "test" or test_labels is None
                words = ["1" if k < 3 and own[k] else "-1" if known else str(test_labels) for own in self.labels[part]]
                if not known:
                    words = [str(test_labels)] * len(persons)
                lines = [f"{image}  {number} {word:>2}" for (image, number), word in zip(persons, words, strict=True)]
                self.write(f"{name}_{part}", lines)

    def write(self, name: str, lines: list[str]) -> None:
        (self.lists / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def lines(self, name: str) -> list[str]:
        return (self.lists / f"{name}.txt").read_text(encoding="utf-8").splitlines()
