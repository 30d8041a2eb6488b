"""A features folder while it is written: image by image, so that a run killed at any moment is taken up again.

An image counts once its line in journal.jsonl is whole; the rows are on disk before the line. Rows without a line
are cut off when the run is resumed. So the files of a resumed run are, byte for byte, those of an undisturbed one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.io import open_atomic, write_bytes

MANIFEST, JOURNAL, OFFSETS = "manifest.json", "journal.jsonl", "offsets.npy"
FEATURES, BOXES = "features", "boxes"
# What `open_atomic` writes before the file has its name.
_TEMPORARY = (f".{MANIFEST}.*", f".{OFFSETS}.*")
_HEADER = 128
_TYPE = np.dtype("<f4")


class StoreWriter:
    """Appends the windows of images, in the order of the manifest; a context manager.

    manifest: as it is to be written, with "settings" and "images". A folder that is new or empty is begun; one whose
    manifest is the same is taken up where it was left, and `done` images are there already.
    """

    def __init__(self, folder: str | Path, manifest: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self._ids = [image["id"] for image in manifest["images"]]
        self._dim = int(manifest["settings"]["dim"])
        self.folder.mkdir(parents=True, exist_ok=True)
        content = _encoded(manifest)
        _check_place(self.folder, content)
        self._journal = (self.folder / JOURNAL).open("a+b", buffering=0)
        self._parts: list[FileIO | None] = []
        try:
            _lock(self._journal, self.folder)
            self._begin(content)
            self._offsets = self._resume()
            for name, width in ((FEATURES, self._dim), (BOXES, 4)):
                self._parts.append(self._open_part(name, width))
            _folder_to_disk(self.folder)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def done(self) -> int:
        """Images that are finished: the first ones of the manifest."""
        return len(self._offsets) - 1

    def append(self, boxes: NDArray[Any], features: NDArray[Any]) -> None:
        """Write the windows of the next image: boxes (m, 4) and features (m, dim), m ≥ 1; on disk when it returns."""
        m = len(features)
        if m < 1 or features.shape != (m, self._dim) or boxes.shape != (m, 4):
            raise ValueError(f"boxes {boxes.shape} and features {features.shape}: wanted are (m, 4), (m, {self._dim})")
        if self.done == len(self._ids):
            raise ValueError(f"{self.folder} has all its {self.done} images; nothing is added to it")
        line = {"index": self.done, "id": self._ids[self.done], "first": self._offsets[-1], "rows": m}
        try:
            for part, rows in zip(self._parts, (features, boxes), strict=True):
                assert part is not None
                _write(part, np.ascontiguousarray(rows, dtype=_TYPE).tobytes())
            _write(self._journal, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        except BaseException:
            self.close()  # half an image may be there: only a new start cuts it off
            raise
        self._offsets.append(self._offsets[-1] + m)

    def finish(self) -> None:
        """Make features.npy and boxes.npy of the parts, then write offsets.npy, which says that all is there."""
        if self.done != len(self._ids):
            raise ValueError(
                f"{self.folder}: {self.done} of {len(self._ids)} images are there; append the others first"
            )
        for part, name, width in zip(self._parts, (FEATURES, BOXES), (self._dim, 4), strict=True):
            if part is not None:
                part.seek(0)
                _write(part, _header((self._offsets[-1], width)))
                part.close()
                os.replace(self._part(name), self.folder / f"{name}.npy")
        self._parts = [None, None]
        if not (self.folder / OFFSETS).exists():
            with open_atomic(self.folder / OFFSETS) as file:
                np.save(file, np.array(self._offsets, dtype="<i8"))
        _folder_to_disk(self.folder)

    def close(self) -> None:
        """Let go of the files; what is finished stays."""
        for file in (*self._parts, self._journal):
            if file is not None:
                file.close()

    def _begin(self, manifest: bytes) -> None:
        """Write the manifest unless it is there, and remove what a run that was killed was writing."""
        for name in _TEMPORARY:
            for left in self.folder.glob(name):
                left.unlink()
        _check_place(self.folder, manifest)
        if not (self.folder / MANIFEST).exists():
            write_bytes(self.folder / MANIFEST, manifest)

    def _resume(self) -> list[int]:
        """The first row of each finished image and of the next; the journal's last line goes if it is torn."""
        path = self.folder / JOURNAL
        self._journal.seek(0)
        content = self._journal.read()
        whole = content[: content.rfind(b"\n") + 1]
        offsets = [0]
        for number, text in enumerate(whole.splitlines(), 1):
            try:
                line = json.loads(text)
                wanted = {"index": number - 1, "id": self._ids[number - 1], "first": offsets[-1], "rows": line["rows"]}
                if line != wanted or type(line["rows"]) is not int or line["rows"] < 1:
                    raise ValueError
            except (ValueError, LookupError, TypeError):
                raise ValueError(f"{path}, line {number} was changed; remove {self.folder} and prepare again") from None
            offsets.append(offsets[-1] + line["rows"])
        if len(whole) < len(content):
            self._journal.truncate(len(whole))
            os.fsync(self._journal.fileno())
        return offsets

    def _open_part(self, name: str, width: int) -> FileIO | None:
        """The file of rows, cut to those of finished images; None if it is an .npy already."""
        path, finished = self._part(name), self.folder / f"{name}.npy"
        size = _HEADER + self._offsets[-1] * width * _TYPE.itemsize
        if finished.exists():
            if self.done != len(self._ids) or finished.stat().st_size != size:
                raise ValueError(f"{finished} and {JOURNAL} do not agree; remove {self.folder} and prepare again")
            return None
        if self.done and (not path.exists() or path.stat().st_size < size):
            raise ValueError(f"{path} is not as long as {JOURNAL} says; remove {self.folder} and prepare again")
        part = path.open("r+b" if path.exists() else "w+b", buffering=0)
        part.truncate(size)
        part.seek(size)
        return part

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.part"


def _encoded(manifest: Mapping[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _check_place(folder: Path, manifest: bytes) -> None:
    """Raise unless the folder is new, or was begun with the same manifest."""
    if (folder / MANIFEST).exists():
        _check_same(folder / MANIFEST, manifest)
        return
    for entry in sorted(folder.iterdir()):
        begun = entry.name == JOURNAL and entry.stat().st_size == 0
        if not begun and not any(entry.match(name) for name in _TEMPORARY):
            raise ValueError(f"{folder} is no features folder, but has {entry.name!r}; name a new or an empty one")


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


def _header(shape: tuple[int, int]) -> bytes:
    """The first bytes of an .npy file of float32 rows, in the room that was kept for them."""
    text = repr({"descr": _TYPE.str, "fortran_order": False, "shape": shape}).encode()
    start = np.lib.format.magic(1, 0) + (_HEADER - 10).to_bytes(2, "little")
    return start + text.ljust(_HEADER - len(start) - 1) + b"\n"


def _write(file: FileIO, content: bytes) -> None:
    """All of it, on disk when it returns."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())


def _folder_to_disk(folder: Path) -> None:
    """The names in a folder, where the system can: renamed files are found after a power cut, too."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _lock(file: FileIO, folder: Path) -> None:
    """Refuse a second run in the same folder, where the system can; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"{folder} is being written by another run; wait for it, or end it") from None
