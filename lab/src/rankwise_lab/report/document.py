"""Documents of plain data as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankwise.io import write_bytes

__all__ = ["write_json"]


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document of plain data to `path`, whole or not at all."""
    write_bytes(path, (json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode())
