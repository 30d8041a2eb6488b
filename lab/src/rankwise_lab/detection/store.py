"""A finished features folder: the windows of every image with their features, and the labels of the images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.detection.voc import Object
from rankwise_lab.detection.writing import BOXES, FEATURES, MANIFEST, OFFSETS

if TYPE_CHECKING:
    from rankwise.latent import Bags

FORMAT, VERSION = "rankwise features", 1
_BOTH = ("train", "val")


class FeatureStore:
    """Images as bags of windows with features, on disk: a folder that `prepare` wrote, opened with `FeatureStore.open`.

    Image i has the rows offsets[i]:offsets[i + 1] of features (rows, dim) and boxes (rows, 4), its windows. images: ids
    (n,). sizes: width and height (n, 2). classes: names, sorted. sets: indices of images, by name. settings: how it was
    prepared.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        features: NDArray[np.float32],
        boxes: NDArray[np.float32],
        offsets: NDArray[np.int64],
    ) -> None:
        self.folder, self.features, self.boxes, self.offsets = folder, features, boxes, offsets
        self.settings: dict[str, Any] = dict(manifest["settings"])
        self.classes: tuple[str, ...] = tuple(manifest["classes"])
        self.images: list[str] = [image["id"] for image in manifest["images"]]
        self.sizes = np.array([(image["width"], image["height"]) for image in manifest["images"]], np.int64)
        place = {image_id: i for i, image_id in enumerate(self.images)}
        self.sets = {name: np.array([place[i] for i in ids], np.intp) for name, ids in manifest["sets"].items()}
        self._objects = [tuple(_object(thing) for thing in image["objects"]) for image in manifest["images"]]

    @staticmethod
    def is_finished(folder: str | Path) -> bool:
        """Whether a folder holds the features of all its images."""
        return (Path(folder) / OFFSETS).exists()

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest: images, windows, network and settings."""
        return hashlib.sha256((self.folder / MANIFEST).read_bytes()).hexdigest()

    @classmethod
    def open(cls, folder: str | Path) -> FeatureStore:
        """Open a folder, with features and boxes as memory maps; one that is not whole raises an error."""
        root = Path(folder)
        manifest = _manifest(root)
        if not cls.is_finished(root):
            raise ValueError(f"{root} is not finished; run the same `rankwise detect prepare` again to resume it")
        try:
            features, boxes = (np.load(root / f"{name}.npy", mmap_mode="r") for name in (FEATURES, BOXES))
            offsets = np.load(root / OFFSETS)
            rows = int(offsets[-1])
            whole = (
                features.shape == (rows, manifest["settings"]["dim"])
                and boxes.shape == (rows, 4)
                and offsets.shape == (len(manifest["images"]) + 1,)
                and offsets[0] == 0
                and bool((np.diff(offsets) > 0).all())
                and features.dtype == boxes.dtype == np.float32
            )
            if not whole:
                raise ValueError("sizes do not agree")
            return cls(root, manifest, features, boxes, offsets)
        except FileNotFoundError as error:
            raise ValueError(f"{error.filename}: no such file; remove {root} and prepare it again") from None
        except (ValueError, LookupError, TypeError, EOFError) as error:
            raise ValueError(f"{root} is damaged ({error}); remove it and prepare it again") from None

    def __len__(self) -> int:
        return len(self.images)

    @property
    def bags(self) -> Bags:
        """One bag of candidate windows per image, for `rankwise.latent.LatentRankSVM`. The whole image comes first."""
        from rankwise.latent import Bags

        return Bags(self.features, self.offsets)

    def windows(self, i: int) -> NDArray[np.float32]:
        """The windows of an image, (m, 4), in the order of its bag."""
        return self.boxes[self.offsets[i] : self.offsets[i + 1]]

    def objects(self, i: int) -> tuple[Object, ...]:
        """The objects of an image, for evaluation: training uses only which classes are in it."""
        return self._objects[i]

    def members(self, sets: str | Sequence[str]) -> NDArray[np.intp]:
        """Indices (m,) of the images of a set, or of several: each once, in the order of the folder.

        "trainval" is train and val together if there is no set of that name.
        """
        names = [sets] if isinstance(sets, str) else list(sets)
        if "trainval" in names and "trainval" not in self.sets and set(_BOTH) <= set(self.sets):
            names = [name for name in names if name != "trainval"] + list(_BOTH)
        for name in names:
            if name not in self.sets:
                raise ValueError(f"{self.folder} has no set {name!r}; choose from {', '.join(self.sets)}")
        if not names:
            raise ValueError(f"no set is given; choose from {', '.join(self.sets)}")
        return np.unique(np.concatenate([self.sets[name] for name in names]))

    def labels(self, name: str, sets: str | Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Indices (m,) of the images of some sets, and 1 (m,) for those with a class, otherwise 0.

        An image whose only objects of the class are difficult is left out.
        """
        self._check_class(name)
        found = {int(i): [o.difficult for o in self._objects[i] if o.name == name] for i in self.members(sets)}
        kept = {i: difficult for i, difficult in found.items() if not difficult or not all(difficult)}
        return np.array(list(kept), np.intp), np.array([int(bool(d)) for d in kept.values()], np.int64)

    def truth(self, name: str, sets: str | Sequence[str]) -> list[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """For every image of `members(sets)`, the boxes (k, 4) of a class, and whether each is difficult (k,)."""
        self._check_class(name)
        there = ([o for o in self._objects[i] if o.name == name] for i in self.members(sets))
        return [
            (
                np.array([o.box for o in objects], np.float64).reshape(-1, 4),
                np.array([o.difficult for o in objects], bool),
            )
            for objects in there
        ]

    def _check_class(self, name: str) -> None:
        if name not in self.classes:
            raise ValueError(f"{self.folder} has no class {name!r}; choose from {', '.join(self.classes)}")


def _object(thing: Mapping[str, Any]) -> Object:
    x1, y1, x2, y2 = thing["box"]
    return Object(thing["name"], (x1, y1, x2, y2), thing["difficult"])


def _manifest(root: Path) -> dict[str, Any]:
    path = root / MANIFEST
    if not path.is_file():
        raise ValueError(
            f"{root} is not a features folder, because it has no {MANIFEST}; create one with `rankwise detect prepare`"
        )
    try:
        manifest = json.loads(path.read_bytes())
        known = manifest["format"] == FORMAT
        version = manifest["version"]
    except (ValueError, LookupError, TypeError):
        known, version, manifest = False, 0, {}
    if not known:
        raise ValueError(f"{path} is not a manifest of features; create one with `rankwise detect prepare`")
    if version != VERSION:
        raise ValueError(f"{path} has version {version}, but this release reads version {VERSION}; prepare it again")
    return dict(manifest)
