"""Where what is costly to make again is kept."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["VARIABLE", "cache_folder"]

# Compiled kernels are kept in the folder that it names, too.
VARIABLE = "RANKWISE_CACHE_DIR"


def cache_folder(chosen: str | Path | None = None) -> Path:
    """The folder chosen, else RANKWISE_CACHE_DIR, else the user's cache folder; it need not exist yet."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rankwise"
    return Path(chosen or os.environ.get(VARIABLE) or user)
