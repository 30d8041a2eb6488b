"""Where data sets are looked for."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["MissingDataError", "data_folder"]


class MissingDataError(FileNotFoundError):
    """Data that are not on this machine; the message says, in a line, how to get or name them."""


def data_folder(chosen: str | Path | None = None) -> Path:
    """The folder chosen, else RANKWISE_DATA, else ../shared/data from the root of a checkout; it need not exist."""
    root = Path(__file__).resolve().parents[4]
    return Path(chosen or os.environ.get("RANKWISE_DATA") or root.parent / "shared" / "data")
