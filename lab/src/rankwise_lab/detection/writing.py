"""A features folder while it is written: one file an image, so that a run killed at any moment is taken up again.

When all images are there, their files become features.npy and boxes.npy, and offsets.npy says that these are whole. So
the files of a resumed run are, byte for byte, those of an undisturbed one.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.io import open_atomic, write_bytes

MANIFEST, OFFSETS = "manifest.json", "offsets.npy"
FEATURES, BOXES = "features", "boxes"


class StoreWriter:
    """Writes the windows of images, in the order of the manifest.

    manifest: as it is to be written, with "settings" and "images". A folder that is new or empty is begun; one whose
    manifest is the same is taken up where it was left, and `done` images are there already.
    """

    def __init__(self, folder: str | Path, manifest: Mapping[str, Any]) -> None:
        self.folder, self._dim = Path(folder), int(manifest["settings"]["dim"])
        self._parts, self._n = self.folder / "parts", len(manifest["images"])
        content = (json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
        _check_place(self.folder, content)
        self._parts.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".*"):  # of a run that was killed
            left.unlink()
        write_bytes(self.folder / MANIFEST, content)
        there = (k for k in range(self._n) if not self._part(k).exists())
        self.done = self._n if (self.folder / OFFSETS).exists() else next(there, self._n)

    def append(self, boxes: NDArray[Any], features: NDArray[Any]) -> None:
        """Write the windows of the next image: boxes (m, 4) and features (m, dim), m ≥ 1."""
        m = len(features)
        if m < 1 or features.shape != (m, self._dim) or boxes.shape != (m, 4):
            raise ValueError(f"boxes {boxes.shape} and features {features.shape}: wanted are (m, 4), (m, {self._dim})")
        if self.done == self._n:
            raise ValueError(f"{self.folder} has all its {self.done} images; nothing is added to it")
        with open_atomic(self._part(self.done)) as file:
            np.savez(file, boxes=boxes.astype("<f4"), features=features.astype("<f4"))
        self.done += 1

    def finish(self) -> None:
        """Join the images' files, and write offsets.npy last, which says that all is there."""
        if self.done != self._n:
            raise ValueError(f"{self.folder}: {self.done} of {self._n} images are there; append the others first")
        if not (self.folder / OFFSETS).exists():
            sizes = [len(_load(self._part(k), BOXES)) for k in range(self._n)]
            offsets = np.concatenate([[0], np.cumsum(sizes)]).astype("<i8")
            for name, width in ((FEATURES, self._dim), (BOXES, 4)):
                self._join(name, offsets, width)
            with open_atomic(self.folder / OFFSETS) as file:
                np.save(file, offsets)
        shutil.rmtree(self._parts)

    def _join(self, name: str, offsets: NDArray[np.int64], width: int) -> None:
        path = self.folder / f".{name}.npy"
        rows = np.lib.format.open_memmap(path, "w+", np.dtype("<f4"), (int(offsets[-1]), width))
        for k in range(self._n):
            rows[offsets[k] : offsets[k + 1]] = _load(self._part(k), name)
        rows.flush()
        del rows
        os.replace(path, self.folder / f"{name}.npy")

    def _part(self, k: int) -> Path:
        return self._parts / f"{k:06d}.npz"


def _load(path: Path, name: str) -> NDArray[np.float32]:
    try:
        with np.load(path) as file:
            rows: NDArray[np.float32] = file[name]
            return rows
    except (OSError, ValueError, LookupError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged ({error}); remove {path.parents[1]} and prepare again") from None


def _check_place(folder: Path, manifest: bytes) -> None:
    """Raise unless the folder is new, or was begun with the same manifest."""
    if (folder / MANIFEST).exists():
        _check_same(folder / MANIFEST, manifest)
        return
    others = sorted(entry.name for entry in folder.glob("[!.]*") if entry.name != "parts")
    if others:
        raise ValueError(f"{folder} is no features folder, but has {others[0]!r}; name a new or an empty one")


def _check_same(path: Path, manifest: bytes) -> None:
    """Raise if the folder was begun otherwise, saying in what."""
    content = path.read_bytes()
    if content == manifest:
        return
    try:
        there, here = json.loads(content), json.loads(manifest)
        differ = [name for name in here["settings"] if there["settings"].get(name) != here["settings"][name]]
        images = [a["id"] for a, b in zip(there["images"], here["images"], strict=False) if a != b]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(f"{path} is not a manifest of features; name a new or an empty folder") from None
    if differ:
        name = differ[0]
        what = f"{name} {there['settings'].get(name)}, and not {here['settings'][name]}"
    elif images:
        what = f"other images or objects, first {images[0]}"
    else:
        what = "other images or sets"
    raise ValueError(f"{path.parent} was begun with {what}; name another folder, or take up that one as it was begun")
