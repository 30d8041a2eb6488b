"""Checkpoints of the alternation: one file per problem and start, named after everything that affects the result."""

from __future__ import annotations

import os
from pathlib import Path

from rankwise.io.fingerprint import fingerprint
from rankwise.latent.initial import Start
from rankwise.latent.state import State, read_state, write_state


class Checkpoint:
    """The file of one start of a problem."""

    def __init__(self, folder: str | os.PathLike[str], problem: str, start: Start, number: int) -> None:
        which = fingerprint({"number": number}, start.key)[:8]
        self._path = Path(folder) / f"latent-{problem}-{which}-{start.name}.rw"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ValueError(f"checkpoint={os.fspath(folder)!r} is a file; name a folder") from None

    def load(self) -> State | None:
        """Return the saved state, or None if there is none."""
        return read_state(self._path) if self._path.exists() else None

    def save(self, state: State) -> None:
        """Replace the file by this state."""
        write_state(self._path, state)
