"""Where data sets are searched for, and where the cache is."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "MissingDataError", "cache_folder", "data_folder", "existing"]

# Compiled kernels are also kept in this folder.
CACHE_VARIABLE = "RANKWISE_CACHE_DIR"


class MissingDataError(FileNotFoundError):
    """Data that are not on this machine; the message says in one line how to get or name them."""


def data_folder(chosen: str | Path | None = None) -> Path:
    """Return the given folder, else RANKWISE_DATA, else ../shared/data beside a checkout; it need not exist."""
    root = Path(__file__).resolve().parents[4]
    return Path(chosen or os.environ.get("RANKWISE_DATA") or root.parent / "shared" / "data")


def existing(path: Path, remedy: str = "set RANKWISE_DATA to the folder that has it") -> Path:
    """Return the path if the file exists; raise MissingDataError otherwise."""
    if not path.is_file():
        raise MissingDataError(f"no file {path}: {remedy}")
    return path


def cache_folder(chosen: str | Path | None = None) -> Path:
    """Return the given folder, else RANKWISE_CACHE_DIR, else the user's cache folder; it need not exist yet."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rankwise"
    return Path(chosen or os.environ.get(CACHE_VARIABLE) or user)
