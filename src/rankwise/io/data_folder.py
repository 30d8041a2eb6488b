"""Where data sets are looked for."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["data_folder"]


def data_folder(chosen: str | Path | None = None) -> Path:
    """The folder chosen, else RANKWISE_DATA, else ../shared/data from the root of a checkout; it need not exist."""
    root = Path(__file__).resolve().parents[3]
    return Path(chosen or os.environ.get("RANKWISE_DATA") or root.parent / "shared" / "data")
