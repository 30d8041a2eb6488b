"""A short name for everything that decides a run, so that a checkpoint of another one is not taken for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fingerprint(settings: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> str:
    """A digest of plain settings and arrays of numbers or strings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for part in arrays:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]
