"""Read tar archives and pictures from others into memory, within bounds; nothing is unpacked to disk or run."""

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

_MODES = ("1", "L", "P", "RGB", "RGBA")


class Bound(NamedTuple):
    """The most bytes that a member may have, and what kind of file it is."""

    most: int
    kind: str


def digest_of(blocks: Iterable[bytes]) -> str:
    """Return a digest of these bytes, 16 characters long."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()[:16]


def digest_of_file(path: Path) -> str:
    """Return a digest of the bytes of a file."""
    with path.open("rb") as file:
        return digest_of(iter(lambda: file.read(1 << 20), b""))


def members(archive: Path, bound: Callable[[str], Bound | None]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the regular files of a tar archive that have a bound; skip all others."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                known = bound(member.name) if member.isreg() else None
                if known is None:
                    continue
                if member.size > known.most:
                    raise ValueError(f"{archive}: {member.name} has {member.size} bytes, too many for a {known.kind}")
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{archive}: not a complete tar archive ({error})") from error


def picture(encoded: bytes, size: int, mode: str, where: str) -> tuple[NDArray[np.uint8], bool]:
    """Decode a square picture with `size` pixels per side to a mode of Pillow; also say whether it is a JPEG."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(encoded), formats=("JPEG", "PNG")) as found:
            width, height = found.size
            if found.mode not in _MODES:
                raise ValueError(f"its mode is {found.mode}; 8 bits per colour are needed")
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
    raise ValueError(f"{where} has {width} × {height} pixels instead of {size} × {size}")
