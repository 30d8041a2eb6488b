"""Checkpoints of the alternation: a folder with one file a problem and start, named by all that decides its steps."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from rankwise.latent.bags import Bags
from rankwise.latent.initial import Start
from rankwise.latent.state import State, read_state, write_state

__all__ = ["Checkpoint", "fingerprint"]

# Rows of the features that are looked at, to tell one set from another.
_SAMPLE = 64


def fingerprint(bags: Bags, relevant: Any, settings: dict[str, Any], arrays: list[Any]) -> str:
    """A digest of the settings, the labels, the bags and some of their features."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode())
    rows = bags.rows()
    sample = bags.take(rows[np.linspace(0, rows.size - 1, min(_SAMPLE, rows.size)).astype(np.int64)])
    shape = np.array([*bags.features.shape, len(bags)])
    for part in (relevant, bags.starts, bags.stops, shape, sample.toarray() if issparse(sample) else sample, *arrays):
        array = np.ascontiguousarray(part)
        digest.update(array.dtype.str.encode() + array.tobytes())
    return digest.hexdigest()[:16]


class Checkpoint:
    """The file of one start. `load` gives what it holds, or None if there is none yet."""

    def __init__(self, folder: str | os.PathLike[str], name: str, start: Start, number: int) -> None:
        self._path = Path(folder) / f"latent-{name}-{number}-{start.name}.rw"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ValueError(f"checkpoint={os.fspath(folder)!r} is a file; name a folder") from None

    def load(self) -> State | None:
        """What was saved, if anything."""
        return read_state(self._path) if self._path.exists() else None

    def save(self, state: State) -> None:
        """Replace the file by one of this state."""
        write_state(self._path, state)
