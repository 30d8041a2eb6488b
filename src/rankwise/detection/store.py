"""A finished features folder: the windows of every image with their features, and what is known of the images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.detection.voc import Object
from rankwise.detection.writing import BOXES, FEATURES, MANIFEST, OFFSETS

if TYPE_CHECKING:
    from rankwise.latent import Bags

FORMAT, VERSION = "rankwise features", 1
_BOTH = ("train", "val")


class FeatureStore:
    """Images as bags of windows, on disk.

    images: their ids; sizes (n, 2): width and height; offsets (n + 1,): image i has the rows offsets[i]:offsets[i + 1]
    of features (rows, dim) and boxes (rows, 4), both memory maps; classes: names, sorted; sets: name → indices of
    images; settings: how the folder was prepared.
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
        """SHA-256 of what the features are of: images, windows, network and settings."""
        return hashlib.sha256((self.folder / MANIFEST).read_bytes()).hexdigest()

    @classmethod
    def open(cls, folder: str | Path) -> FeatureStore:
        """The folder that `rankwise detect prepare` wrote; nothing is read into memory but offsets and names."""
        root = Path(folder)
        manifest = _manifest(root)
        if not cls.is_finished(root):
            raise ValueError(
                f"{root} is not finished; run the same `rankwise detect prepare` again, it goes on from there"
            )
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
        """A bag of candidates an image, for LatentRankSVM: one window each, the whole image first."""
        from rankwise.latent import Bags

        return Bags(self.features, self.offsets)

    def windows(self, i: int) -> NDArray[np.float32]:
        """Boxes (m, 4) of image i, in the order of its bag."""
        return self.boxes[self.offsets[i] : self.offsets[i + 1]]

    def objects(self, i: int) -> tuple[Object, ...]:
        """The objects of image i, for evaluation; training sees only which classes are there."""
        return self._objects[i]

    def members(self, sets: str | Sequence[str]) -> NDArray[np.intp]:
        """Indices of the images of a set, or of several together, each once, in the order of the folder.

        "trainval" is train and val together where the folder has no set of that name.
        """
        names = [sets] if isinstance(sets, str) else list(sets)
        if "trainval" in names and "trainval" not in self.sets and set(_BOTH) <= set(self.sets):
            names = [name for name in names if name != "trainval"] + list(_BOTH)
        for name in names:
            if name not in self.sets:
                raise ValueError(f"{self.folder} has no set {name!r}; choose among {', '.join(self.sets)}")
        if not names:
            raise ValueError(f"no set is named; choose among {', '.join(self.sets)}")
        return np.unique(np.concatenate([self.sets[name] for name in names]))

    def labels(self, name: str, sets: str | Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Images of the sets and whether class `name` is in each, 1 or 0; (m,), (m,).

        An image whose only objects of the class are difficult says neither, and is left out.
        """
        self._check_class(name)
        found = {int(i): [o.difficult for o in self._objects[i] if o.name == name] for i in self.members(sets)}
        kept = {i: difficult for i, difficult in found.items() if not difficult or not all(difficult)}
        return np.array(list(kept), np.intp), np.array([int(bool(d)) for d in kept.values()], np.int64)

    def truth(self, name: str, sets: str | Sequence[str]) -> list[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """Boxes (k, 4) of class `name` and whether each is difficult, (k,), for every image of `members(sets)`."""
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
            raise ValueError(f"{self.folder} has no class {name!r}; choose among {', '.join(self.classes)}")


def _object(thing: Mapping[str, Any]) -> Object:
    x1, y1, x2, y2 = thing["box"]
    return Object(thing["name"], (x1, y1, x2, y2), thing["difficult"])


def _manifest(root: Path) -> dict[str, Any]:
    path = root / MANIFEST
    if not path.is_file():
        raise ValueError(f"{root} is no features folder: no {MANIFEST} in it; make one by `rankwise detect prepare`")
    try:
        manifest = json.loads(path.read_bytes())
        known = manifest["format"] == FORMAT
        version = manifest["version"]
    except (ValueError, LookupError, TypeError):
        known, version, manifest = False, 0, {}
    if not known:
        raise ValueError(f"{path} is not a manifest of features; make one by `rankwise detect prepare`")
    if version != VERSION:
        raise ValueError(f"{path} is of version {version}, and this reads version {VERSION}; prepare it again")
    return dict(manifest)
