"""Tar archives and pictures, made in memory for tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def encoded(pixels: Any, kind: str = "PNG") -> bytes:
    """An image file of pixels, (height, width) or (height, width, 3)."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels)).save(buffer, kind)
    return buffer.getvalue()


def write_archive(path: Path, members: Mapping[str, bytes], kind: str = "xz") -> Path:
    """A tar archive with these members, compressed."""
    with tarfile.open(path, f"w:{kind}") as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def write_folder(folder: Path, members: Mapping[str, bytes]) -> Path:
    """A folder with these files."""
    for name, content in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The files of a folder: what they contain and when they were written."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def bytes_of(folder: Path) -> dict[str, bytes]:
    """What the files of a folder contain."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
