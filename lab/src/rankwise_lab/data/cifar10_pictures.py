"""CIFAR-10 as pictures, train/<class>/NAME.png or .jpg and test/<class>/…: decoded to arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.data.archives import picture

__all__ = ["MOST_BYTES", "MOST_IN_ALL", "Pictures", "decode", "gather", "in_folder", "is_picture"]

_SIZE = 32
_PATH = re.compile(r"(?:\./)?(train|test)/([A-Za-z]\w{0,63})/(\w[\w-]{0,99})\.(?:png|jpe?g)", re.IGNORECASE)
# No picture of 32 × 32 pixels is larger than this.
MOST_BYTES = 1 << 16
# All 60,000 of them together are no larger than this.
MOST_IN_ALL = 1 << 29
_WANTED = "expected train/<class>/NAME.png or .jpg and test/<class>/…"


Part = tuple[NDArray[np.uint8], NDArray[np.int64]]


class Pictures(NamedTuple):
    """Images (n, 3, 32, 32) and labels (n,) by class and name; the classes sorted; whether any image was a JPEG."""

    train: Part
    test: Part
    classes: tuple[str, ...]
    lossy: bool


# By part, class and name, in sorting order: the path and the encoded content.
Gathered = dict[tuple[str, str, int, str], tuple[str, bytes]]


def is_picture(path: str) -> bool:
    """Whether a path is that of a picture in the expected layout."""
    return _PATH.fullmatch(path) is not None


def gather(pictures: Iterable[tuple[str, bytes]], where: str) -> Gathered:
    """Sort pictures (path, content) by part, class and name; if a path occurs twice the last counts, as in archives."""
    found: Gathered = {}
    for path, content in pictures:
        match = _PATH.fullmatch(path)
        assert match is not None
        part, name, stem = match.groups()
        # Names that are numbers are sorted as such.
        key = part.lower(), name, int(stem) if re.fullmatch(r"\d{1,9}", stem, re.ASCII) else -1, stem
        if found.get(key, (path,))[0] != path:
            raise ValueError(f"{where}: {found[key][0]} and {path} have the same name; remove one")
        found[key] = path, content
    return dict(sorted(found.items()))


def in_folder(folder: Path) -> Iterable[tuple[str, bytes]]:
    """The pictures in train/ and test/ of a folder."""
    for part in ("train", "test"):
        for path in sorted((folder / part).glob("*/*")):
            name = path.relative_to(folder).as_posix()
            if is_picture(name) and path.is_file():
                size = path.stat().st_size
                if size > MOST_BYTES:
                    raise ValueError(f"{folder}: {name} has {size} bytes, too many for a picture of 32 × 32 pixels")
                yield name, path.read_bytes()


def decode(pictures: Gathered, where: str) -> Pictures:
    """The arrays of all pictures; every class must be in both parts."""
    names = {part: {name for of, name, _, _ in pictures if of == part} for part in ("train", "test")}
    classes = tuple(sorted(names["train"]))
    strange = names["test"].symmetric_difference(classes)
    if strange or not classes:
        raise ValueError(f"{where}: {_WANTED}, but {f'{min(strange)} is not in both' if strange else 'found none'}")
    (train, train_lossy), (test, test_lossy) = (
        _arrays([(key[1], *picture) for key, picture in pictures.items() if key[0] == part], classes, where)
        for part in ("train", "test")
    )
    return Pictures(train, test, classes, train_lossy or test_lossy)


def _arrays(pictures: list[tuple[str, str, bytes]], classes: tuple[str, ...], where: str) -> tuple[Part, bool]:
    """Images and labels of pictures (class, path, content), and whether one is a JPEG."""
    images = np.empty((len(pictures), 3, _SIZE, _SIZE), np.uint8)
    lossy = False
    for i, (_, path, content) in enumerate(pictures):
        images[i], jpeg = _pixels(content, f"{where}: {path}")
        lossy = lossy or jpeg
    return (images, np.array([classes.index(name) for name, _, _ in pictures], np.int64)), lossy


def _pixels(encoded: bytes, where: str) -> tuple[NDArray[np.uint8], bool]:
    """The picture as (3, 32, 32), and whether it is a JPEG."""
    found, jpeg = picture(encoded, _SIZE, "RGB", where)
    return found.transpose(2, 0, 1), jpeg
