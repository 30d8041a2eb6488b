"""CIFAR-10 as published or as pictures, in a folder or an archive; slow reads are cached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.io import open_atomic
from rankwise_lab.data import cifar10_batches as batches
from rankwise_lab.data import cifar10_pictures as pictures
from rankwise_lab.data.archives import Bound, digest_of, digest_of_file, members
from rankwise_lab.data.folder import MissingDataError, cache_folder, data_folder

__all__ = ["ARCHIVE", "FORMS", "Cifar10", "find_cifar10", "load_cifar10"]

ARCHIVE = "cifar10-jpeg.tar.xz"
_BATCHES = "cifar-10-batches-py"
_PUBLISHED = "cifar-10-python.tar.gz"
_PICTURES = "cifar10"
# Increased whenever the arrays of the same files change.
_VERSION = 2

# What the pixels are, by the form that they were read from.
FORMS = {
    "original": "CIFAR-10 as it was published",
    "png": "CIFAR-10 as PNG files, which are lossless",
    "jpeg": "CIFAR-10 as JPEG files, slightly lossy, so not exactly the paper's pixels",
}


class Cifar10(NamedTuple):
    """Images (n, 3, 32, 32), red, green and blue from 0 to 255, and labels (n,), which are positions in `classes`.

    form: original, png or jpeg (if any image was a JPEG).
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    form: str = "jpeg"

    @property
    def original(self) -> bool:
        """Whether the pixels are those of the published files."""
        return self.form == "original"

    @property
    def what(self) -> str:
        """What the pixels are, in words."""
        return FORMS[self.form]


def find_cifar10(given: str | Path | None = None) -> Path:
    """Find CIFAR-10: the given file, or the first of its forms in the given folder or in the data folder.

    The published files, unpacked or as an archive, come first, then pictures in folders, then ARCHIVE. The given folder
    may itself be one of the forms. Raises MissingDataError if there is none.
    """
    folder = data_folder(given)
    if given is not None and folder.is_file():
        return folder
    itself = [folder] if given is not None else []
    for one in (*itself, folder / _BATCHES):
        if _is_batches(one):
            return one
    if (folder / _PUBLISHED).is_file():
        return folder / _PUBLISHED
    for one in (*itself, folder / _PICTURES):
        if _is_pictures(one):
            return one
    if (folder / ARCHIVE).is_file():
        return folder / ARCHIVE
    lacking = folder if given is not None and not folder.is_dir() else folder / ARCHIVE
    raise MissingDataError(
        f"no file {lacking}: name the archive, or set RANKWISE_DATA to a folder with CIFAR-10, as {ARCHIVE}, "
        f"{_PUBLISHED}, {_BATCHES}/ or {_PICTURES}/train/ and test/"
    )


def load_cifar10(path: str | Path, cache_dir: str | Path | None = None) -> Cifar10:
    """Load CIFAR-10 from any of its forms; the files there tell which one.

    As published: a folder of data_batch_1 to 5, test_batch and batches.meta, or a tar archive of it; classes in the
    order of batches.meta. As pictures: a folder or tar archive of train/<class>/NAME.png or .jpg and test/…, by class
    and name; classes are the names of the folders, sorted. Archives and pictures are kept as arrays in cache_dir (else
    RANKWISE_CACHE_DIR, else the user's cache folder), by their content; the first reading of pictures needs Pillow.
    """
    source = Path(path)
    if _is_batches(source):
        return Cifar10(*batches.read_batches(_batch_files(source), str(source)), "original")
    if source.is_dir():
        if not _is_pictures(source):
            raise ValueError(f"{source} has neither batches.meta nor train/ and test/; name a folder of CIFAR-10")
        found = pictures.gather(pictures.in_folder(source), str(source))
        blocks = (part for name, content in found.values() for part in (name.encode(), b"\0", content))
        return _kept(digest_of(blocks), lambda: _decoded(found, source), cache_dir)
    if not source.is_file():
        raise FileNotFoundError(f"no file {source}: name CIFAR-10 as published, or train/<class>/… and test/…")
    return _kept(digest_of_file(source), lambda: _archived(source), cache_dir)


def _is_batches(folder: Path) -> bool:
    return (folder / "batches.meta").is_file()


def _is_pictures(folder: Path) -> bool:
    return (folder / "train").is_dir() and (folder / "test").is_dir()


def _kept(digest: str, read: Callable[[], Cifar10], cache_dir: str | Path | None) -> Cifar10:
    """Return what the files with this digest contain, from the cache if possible."""
    cache = cache_folder(cache_dir)
    kept = cache / f"cifar10-{digest}-v{_VERSION}.npz"
    if kept.exists():
        with np.load(kept) as stored:
            arrays = {name: stored[name] for name in Cifar10._fields}
        return Cifar10(**{**arrays, "classes": tuple(arrays["classes"].tolist()), "form": str(arrays["form"])})
    found = read()
    cache.mkdir(parents=True, exist_ok=True)
    with open_atomic(kept) as file:
        np.savez(file, **{**found._asdict(), "classes": np.array(found.classes), "form": np.array(found.form)})
    return found


def _batch_files(folder: Path) -> dict[str, bytes]:
    found = {}
    for name in batches.FILES:
        path = folder / name
        if path.is_file():
            if path.stat().st_size > batches.MOST_BYTES:
                raise ValueError(f"{path} has {path.stat().st_size:,} bytes, more than any batch of CIFAR-10")
            found[name] = path.read_bytes()
    return found


def _decoded(found: pictures.Gathered, source: Path) -> Cifar10:
    train, test, classes, lossy = pictures.decode(found, str(source))
    return Cifar10(*train, *test, classes, "jpeg" if lossy else "png")


def _archived(archive: Path) -> Cifar10:
    """Read a tar archive: the published files if it has them, else pictures."""
    published, found = _members(archive)
    if published:
        return Cifar10(*batches.read_batches(published, f"{archive}: {_BATCHES}"), "original")
    return _decoded(pictures.gather(found, str(archive)), archive)


def _members(archive: Path) -> tuple[dict[str, bytes], list[tuple[str, bytes]]]:
    """Return the published files by name, and pictures by path; other members are skipped, nothing goes to disk."""
    published: dict[str, bytes] = {}
    found: list[tuple[str, bytes]] = []
    total = 0
    for path, content in members(archive, _bound):
        name = _batch_of(path)
        if name is not None:
            published[name] = content
            continue
        found.append((path, content))
        total += len(content)
        if total > pictures.MOST_IN_ALL:
            raise ValueError(f"{archive}: its pictures have over {pictures.MOST_IN_ALL:,} bytes, too many for CIFAR-10")
    return published, found


def _batch_of(path: str) -> str | None:
    """Return which of the published files has this path in an archive, if any."""
    folder, _, name = path.removeprefix("./").rpartition("/")
    return name if folder == _BATCHES and name in batches.FILES else None


def _bound(path: str) -> Bound | None:
    if _batch_of(path) is not None:
        return Bound(batches.MOST_BYTES, "batch of CIFAR-10")
    return Bound(pictures.MOST_BYTES, "picture of 32 × 32 pixels") if pictures.is_picture(path) else None
