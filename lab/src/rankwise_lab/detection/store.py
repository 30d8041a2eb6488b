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
    """
    Images as bags of windows with features, on disk.

    Open a folder that `prepare` wrote with `FeatureStore.open`.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    manifest : mapping
        Settings, classes, sets and images, as in manifest.json.
    features : ndarray of shape (rows, dim)
        Features of all windows.
    boxes : ndarray of shape (rows, 4)
        Boxes of all windows.
    offsets : ndarray of shape (n + 1,)
        Image i has the rows offsets[i]:offsets[i + 1].

    Attributes
    ----------
    folder : Path
        Folder of the files.
    images : list of str
        Ids of the n images.
    sizes : ndarray of shape (n, 2)
        Width and height of each image in pixels.
    features : ndarray of shape (rows, dim)
        Features of all windows, as a memory map.
    boxes : ndarray of shape (rows, 4)
        Boxes of all windows, as a memory map.
    offsets : ndarray of shape (n + 1,)
        Image i has the rows offsets[i]:offsets[i + 1].
    classes : tuple of str
        Names of the classes, sorted.
    sets : dict
        Indices of the images of each set, by name.
    settings : dict
        How the folder was prepared.

    See Also
    --------
    prepare : Writes the folder.
    train : Trains a detector on a store.

    Examples
    --------
    >>> from rankwise_lab.detection.shapes import shapes_store
    >>> store = shapes_store()  # a small store in memory
    >>> len(store), store.classes, list(store.sets)
    (24, ('disc', 'square'), ['train', 'val', 'test'])
    >>> store.windows(0).shape, [thing.name for thing in store.objects(3)]
    ((60, 4), ['disc', 'square'])
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
        """
        Return whether a folder holds the features of all its images.

        Parameters
        ----------
        folder : str or Path
            Folder that `prepare` writes.

        Returns
        -------
        bool
            True if `open` can read it.
        """
        return (Path(folder) / OFFSETS).exists()

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest: images, windows, network and settings."""
        return hashlib.sha256((self.folder / MANIFEST).read_bytes()).hexdigest()

    @classmethod
    def open(cls, folder: str | Path) -> FeatureStore:
        """
        Open a folder that `prepare` or `rankwise detect prepare` wrote.

        Only offsets and names are read into memory.

        Parameters
        ----------
        folder : str or Path
            Folder of the features.

        Returns
        -------
        FeatureStore
            The store, with features and boxes as memory maps.

        Raises
        ------
        ValueError
            If the folder is not finished, is damaged, or is not a features folder.
        """
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
        """
        Return the windows of an image.

        Parameters
        ----------
        i : int
            Index of the image.

        Returns
        -------
        ndarray of shape (m, 4)
            Boxes, in the order of its bag.
        """
        return self.boxes[self.offsets[i] : self.offsets[i + 1]]

    def objects(self, i: int) -> tuple[Object, ...]:
        """
        Return the objects of an image, for evaluation.

        Training uses only which classes are in an image.

        Parameters
        ----------
        i : int
            Index of the image.

        Returns
        -------
        tuple of Object
            Objects with their classes and boxes.
        """
        return self._objects[i]

    def members(self, sets: str | Sequence[str]) -> NDArray[np.intp]:
        """
        Return the images of some sets, each once, in the order of the folder.

        Parameters
        ----------
        sets : str or sequence of str
            Name of a set, or several. "trainval" is train and val together if there is no set of that name.

        Returns
        -------
        ndarray of shape (m,)
            Indices of the images.

        Raises
        ------
        ValueError
            If there is no such set.
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
        """
        Return the images of some sets and whether they have a class.

        An image whose only objects of the class are difficult is left out.

        Parameters
        ----------
        name : str
            Class.
        sets : str or sequence of str
            Name of a set, or several. "trainval" is train and val together if there is no set of that name.

        Returns
        -------
        images : ndarray of shape (m,)
            Indices of the images.
        labels : ndarray of shape (m,)
            1 for images with the class, otherwise 0.
        """
        self._check_class(name)
        found = {int(i): [o.difficult for o in self._objects[i] if o.name == name] for i in self.members(sets)}
        kept = {i: difficult for i, difficult in found.items() if not difficult or not all(difficult)}
        return np.array(list(kept), np.intp), np.array([int(bool(d)) for d in kept.values()], np.int64)

    def truth(self, name: str, sets: str | Sequence[str]) -> list[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """
        Return the boxes of a class in the images of some sets.

        Parameters
        ----------
        name : str
            Class.
        sets : str or sequence of str
            Name of a set, or several. "trainval" is train and val together if there is no set of that name.

        Returns
        -------
        list of (boxes, difficult)
            For every image of `members(sets)`, boxes (k, 4) and whether each is difficult (k,).
        """
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
