"""CIFAR-10 as published or as pictures, in a folder or an archive; slow reads are cached."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise_lab.data import cifar10_batches as batches
from rankwise_lab.data.archives import Bound, digest_of, digest_of_file, members, picture
from rankwise_lab.data.folder import MissingDataError, cached, data_folder

ARCHIVE = "cifar10-jpeg.tar.xz"
_BATCHES = "cifar-10-batches-py"
_PUBLISHED = "cifar-10-python.tar.gz"
_PICTURES = "cifar10"
# Increased whenever the arrays of the same files change.
_VERSION = 2

_SIZE = 32
_PATH = re.compile(r"(?:\./)?(train|test)/([A-Za-z]\w{0,63})/(\w[\w-]{0,99})\.(?:png|jpe?g)", re.IGNORECASE)
# No picture of 32 × 32 pixels is larger than this, and all 60,000 of them together are no larger than that.
_MOST_BYTES, _MOST_IN_ALL = 1 << 16, 1 << 29
_WANTED = "expected train/<class>/NAME.png or .jpg and test/<class>/…"

# What the pixels are, by the form that they were read from.
FORMS = {
    "original": "CIFAR-10 as it was published",
    "png": "CIFAR-10 as PNG files, which are lossless",
    "jpeg": "CIFAR-10 as JPEG files, slightly lossy, so not exactly the paper's pixels",
}


# By part, class and name, in sorting order: the path and the encoded content.
_Gathered = dict[tuple[str, str, int, str], tuple[str, bytes]]


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
        return self.form == "original"

    @property
    def what(self) -> str:
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
        found = _gathered(_in_folder(source), str(source))
        blocks = (part for name, content in found.values() for part in (name.encode(), b"\0", content))
        return _kept(digest_of(blocks), lambda: _decoded(found, str(source)), cache_dir)
    if not source.is_file():
        raise FileNotFoundError(f"no file {source}: name CIFAR-10 as published, or train/<class>/… and test/…")
    return _kept(digest_of_file(source), lambda: _archived(source), cache_dir)


def _is_batches(folder: Path) -> bool:
    return (folder / "batches.meta").is_file()


def _is_pictures(folder: Path) -> bool:
    return (folder / "train").is_dir() and (folder / "test").is_dir()


def _kept(digest: str, read: Callable[[], Cifar10], cache_dir: str | Path | None) -> Cifar10:
    """Return what the files with this digest contain, from the cache if possible."""

    def arrays() -> dict[str, Any]:
        found = read()
        return found._asdict() | {"classes": np.array(found.classes), "form": np.array(found.form)}

    kept = cached(f"cifar10-{digest}-v{_VERSION}.npz", arrays, cache_dir)
    return Cifar10(**{**kept, "classes": tuple(kept["classes"].tolist()), "form": str(kept["form"])})


def _batch_files(folder: Path) -> dict[str, bytes]:
    found = {}
    for name in batches.FILES:
        path = folder / name
        if path.is_file():
            if path.stat().st_size > batches.MOST_BYTES:
                raise ValueError(f"{path} has {path.stat().st_size:,} bytes, more than any batch of CIFAR-10")
            found[name] = path.read_bytes()
    return found


def _archived(archive: Path) -> Cifar10:
    """Read a tar archive: the published files if it has them, else pictures."""
    published, found = _members(archive)
    if published:
        return Cifar10(*batches.read_batches(published, f"{archive}: {_BATCHES}"), "original")
    return _decoded(_gathered(found, str(archive)), str(archive))


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
        if total > _MOST_IN_ALL:
            raise ValueError(f"{archive}: its pictures have over {_MOST_IN_ALL:,} bytes, too many for CIFAR-10")
    return published, found


def _batch_of(path: str) -> str | None:
    """Return which of the published files has this path in an archive, if any."""
    folder, _, name = path.removeprefix("./").rpartition("/")
    return name if folder == _BATCHES and name in batches.FILES else None


def _bound(path: str) -> Bound | None:
    if _batch_of(path) is not None:
        return Bound(batches.MOST_BYTES, "batch of CIFAR-10")
    return Bound(_MOST_BYTES, "picture of 32 × 32 pixels") if _PATH.fullmatch(path) else None


# Pictures


def _gathered(pictures: Iterable[tuple[str, bytes]], where: str) -> _Gathered:
    """Sort pictures (path, content) by part, class and name; if a path occurs twice the last counts, as in archives."""
    found: _Gathered = {}
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


def _in_folder(folder: Path) -> Iterable[tuple[str, bytes]]:
    """Yield the pictures in train/ and test/ of a folder."""
    for part in ("train", "test"):
        for path in sorted((folder / part).glob("*/*")):
            name = path.relative_to(folder).as_posix()
            if _PATH.fullmatch(name) and path.is_file():
                size = path.stat().st_size
                if size > _MOST_BYTES:
                    raise ValueError(f"{folder}: {name} has {size} bytes, too many for a picture of 32 × 32 pixels")
                yield name, path.read_bytes()


def _decoded(pictures: _Gathered, where: str) -> Cifar10:
    """Decode pictures, by class and name; every class must be in both parts."""
    names = {part: {name for of, name, _, _ in pictures if of == part} for part in ("train", "test")}
    classes = tuple(sorted(names["train"]))
    strange = names["test"].symmetric_difference(classes)
    if strange or not classes:
        raise ValueError(f"{where}: {_WANTED}, but {f'{min(strange)} is not in both' if strange else 'found none'}")
    parts: list[tuple[NDArray[np.uint8], NDArray[np.int64]]] = []
    lossy = False
    for part in ("train", "test"):
        of_part = [(key[1], *found) for key, found in pictures.items() if key[0] == part]
        images = np.empty((len(of_part), 3, _SIZE, _SIZE), np.uint8)
        for i, (_, path, content) in enumerate(of_part):
            pixels, jpeg = picture(content, _SIZE, "RGB", f"{where}: {path}")
            images[i], lossy = pixels.transpose(2, 0, 1), lossy or jpeg
        parts.append((images, np.array([classes.index(name) for name, _, _ in of_part], np.int64)))
    return Cifar10(*parts[0], *parts[1], classes, "jpeg" if lossy else "png")
