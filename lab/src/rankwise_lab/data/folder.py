"""Where data sets are searched for, and where the cache is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwise.io import open_atomic

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


def cached(name: str, make: Callable[[], Mapping[str, Any]], cache_dir: str | Path | None = None) -> dict[str, Any]:
    """Return arrays by name from a file of the cache folder; if it does not exist, make and write them."""
    kept = cache_folder(cache_dir) / name
    if not kept.exists():
        arrays = make()
        kept.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(kept) as file:
            np.savez(file, **arrays)
    with np.load(kept) as stored:
        return {key: stored[key] for key in stored.files}
