"""CIFAR-10 as pictures in an archive: decoded once, then kept as arrays in a cache folder."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import tarfile
import zlib
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.io.atomic import open_atomic
from rankwise.io.cache import cache_folder
from rankwise.io.data_folder import MissingDataError, data_folder

__all__ = ["ARCHIVE", "Cifar10", "find_cifar10", "load_cifar10"]

ARCHIVE = "cifar10-jpeg.tar.xz"
_SIZE = 32
_MEMBER = re.compile(r"(?:\./)?(train|test)/([A-Za-z]\w{0,63})/(\d{1,9})\.jpe?g")
# No picture of 32 × 32 pixels is larger than this.
_MOST_BYTES = 1 << 16
# Raised whenever the arrays of the same archive change.
_VERSION = 1

_Pictures = dict[tuple[str, int], bytes]


class Cifar10(NamedTuple):
    """Images (n, 3, 32, 32), red, green and blue from 0 to 255, and labels (n,), which are positions in `classes`."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]


def find_cifar10(given: str | Path | None = None) -> Path:
    """The archive given, or that in the folder given, else in the data folder; FileNotFoundError if there is none."""
    whole = given is not None and not Path(given).is_dir()
    archive = data_folder(given) if whole else data_folder(given) / ARCHIVE
    if not archive.is_file():
        raise MissingDataError(f"no file {archive}: name the archive, or set RANKWISE_DATA to the folder that has it")
    return archive


def load_cifar10(path: str | Path, cache_dir: str | Path | None = None) -> Cifar10:
    """CIFAR-10 from a tar archive of train/<class>/NNNN.jpg and test/<class>/NNNN.jpg, by class and number.

    classes are the names of the folders of train, sorted. The first reading wants Pillow, takes seconds and keeps the
    arrays in cache_dir (else RANKWISE_CACHE_DIR, else the user's cache folder), by the archive's content.
    """
    archive = Path(path)
    if not archive.is_file():
        raise FileNotFoundError(f"no file {archive}: wanted is the archive of train/<class>/NNNN.jpg and test/…")
    cache = cache_folder(cache_dir)
    with archive.open("rb") as file:
        kept = cache / f"cifar10-{_digest(file)}-v{_VERSION}.npz"
    if not kept.exists():
        found = _decode(archive)
        arrays = {**found._asdict(), "classes": np.array(found.classes)}
        cache.mkdir(parents=True, exist_ok=True)
        with open_atomic(kept) as file:
            np.savez(file, **arrays)
        return found
    with np.load(kept) as stored:
        arrays = {name: stored[name] for name in Cifar10._fields}
    return Cifar10(**{**arrays, "classes": tuple(arrays["classes"].tolist())})


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()[:16]


def _decode(archive: Path) -> Cifar10:
    parts = _pictures(archive)
    classes = tuple(sorted({name for name, _ in parts["train"]}))
    strange = {name for name, _ in parts["test"]}.symmetric_difference(classes)
    if strange or not classes:
        which = f"{min(strange)} is not in both" if strange else "there is none"
        raise ValueError(f"{archive}: wanted are train/<class>/NNNN.jpg and test/<class>/NNNN.jpg, {which}")
    train_images, train_labels = _arrays(parts["train"], classes, f"{archive}: train")
    test_images, test_labels = _arrays(parts["test"], classes, f"{archive}: test")
    return Cifar10(train_images, train_labels, test_images, test_labels, classes)


def _arrays(pictures: _Pictures, classes: tuple[str, ...], where: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    keys = sorted(pictures)
    images = np.empty((len(keys), 3, _SIZE, _SIZE), np.uint8)
    for i, (name, number) in enumerate(keys):
        images[i] = _pixels(pictures[name, number], f"{where}/{name}, picture {number}")
    return images, np.array([classes.index(name) for name, _ in keys], np.int64)


def _pictures(archive: Path) -> dict[str, _Pictures]:
    """The files of either part by class and number, still encoded; nothing is written to disk, other members pass."""
    parts: dict[str, _Pictures] = {"train": {}, "test": {}}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                match = _MEMBER.fullmatch(member.name)
                if match is None or not member.isreg():
                    continue
                if member.size > _MOST_BYTES:
                    raise ValueError(f"{archive}: {member.name} has {member.size} bytes: no picture of 32 × 32 pixels")
                file = tar.extractfile(member)
                assert file is not None
                parts[match[1]][match[2], int(match[3])] = file.read()
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{archive}: not a whole tar archive ({error})") from error
    return parts


def _pixels(encoded: bytes, where: str) -> NDArray[np.uint8]:
    """The picture as (3, 32, 32)."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(encoded), formats=("JPEG",)) as picture:
            if picture.size != (_SIZE, _SIZE):
                raise ValueError(f"{where} has {picture.size[0]} × {picture.size[1]} pixels, wanted are 32 × 32")
            return np.asarray(picture.convert("RGB")).transpose(2, 0, 1)
    except (UnidentifiedImageError, OSError) as error:
        raise ValueError(f"{where} is not a JPEG picture ({error})") from error
