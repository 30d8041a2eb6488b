"""Tar archives and pictures that others made: read into memory within bounds, and nothing unpacked or run."""

from __future__ import annotations

import hashlib
import io
import lzma
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bound", "digest_of", "digest_of_file", "members", "picture"]

_MODES = ("1", "L", "P", "RGB", "RGBA")


class Bound(NamedTuple):
    """The most bytes that a member may have, and what it is not if it has more."""

    most: int
    kind: str


def digest_of(blocks: Iterable[bytes]) -> str:
    """What tells these bytes from others, in 16 characters."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()[:16]


def digest_of_file(path: Path) -> str:
    """What tells the bytes of a file from others."""
    with path.open("rb") as file:
        return digest_of(iter(lambda: file.read(1 << 20), b""))


def members(archive: Path, bound: Callable[[str], Bound | None]) -> Iterator[tuple[str, bytes]]:
    """Path and content of the regular files of a tar archive that have a bound; all others pass."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                known = bound(member.name) if member.isreg() else None
                if known is None:
                    continue
                if member.size > known.most:
                    raise ValueError(f"{archive}: {member.name} has {member.size} bytes: no {known.kind}")
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{archive}: not a whole tar archive ({error})") from error


def picture(encoded: bytes, size: int, mode: str, where: str) -> tuple[NDArray[np.uint8], bool]:
    """A square picture of `size` pixels a side, converted to a mode of Pillow, and whether it is a JPEG."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(encoded), formats=("JPEG", "PNG")) as found:
            width, height = found.size
            if found.mode not in _MODES:
                raise ValueError(f"its mode is {found.mode}, wanted are 8 bits a colour")
            if width == height == size:
                return np.asarray(found.convert(mode)), found.format == "JPEG"
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        OSError,
        SyntaxError,
        ValueError,
        struct.error,
        zlib.error,
    ) as error:
        raise ValueError(f"{where} is not a JPEG or PNG picture ({error})") from error
    raise ValueError(f"{where} has {width} × {height} pixels, wanted are {size} × {size}")
