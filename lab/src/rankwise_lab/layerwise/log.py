"""The log of training: rows in memory, in a CSV file and as one line on the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.io import write_bytes
from rankwise.progress import Progress

STAGES = ("pretrain", "warm_up", "fit_layers")
_WHOLE = ("pass", "layer", "epoch", "calls")
_MEASURED = ("objective", "risk", "dual", "primal", "score", "fraction")
COLUMNS = ("stage", "pass", "layer", "epoch", *_MEASURED, "seconds", "inference_seconds", "calls")

Row = dict[str, Any]


def as_row(stage: str, **values: float | None) -> Row:
    """A row with all columns; None for what was not measured."""
    assert values.keys() <= {*COLUMNS}
    return {"stage": stage} | {name: values.get(name) for name in COLUMNS[1:]}


def as_array(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Rows as numbers, (rows, columns): a stage as its index, None as NaN."""
    numbers = [[STAGES.index(row["stage"]), *(row[name] for name in COLUMNS[1:])] for row in rows]
    return np.array(numbers, np.float64).reshape(-1, len(COLUMNS))


def as_rows(array: NDArray[np.float64]) -> list[Row]:
    """The rows of an array that `as_array` made."""
    return [
        {"stage": STAGES[int(stage)]}
        | {
            name: None if value != value else int(value) if name in _WHOLE else value
            for name, value in zip(COLUMNS[1:], values, strict=True)
        }
        for stage, *values in array.tolist()
    ]


class Log:
    """Writes rows to folder/log.csv, if there is a folder, and to progress, if there is one."""

    def __init__(self, folder: Path | None, progress: Progress | None) -> None:
        self._folder, self._progress = folder, progress
        self._said = 0

    def begin(self, rows: Sequence[Row]) -> None:
        """Continue after these rows."""
        self._said = len(rows)
        if self._folder is not None:
            self._write(rows)

    def show(self, rows: Sequence[Row]) -> None:
        """Write all rows to the file, and show the new ones."""
        if self._folder is not None:
            self._write(rows)
        if self._progress is not None:
            for row in rows[self._said :]:
                self._progress.say(line(row))
        self._said = len(rows)

    def close(self) -> None:
        """Keep the last line on the terminal."""
        if self._progress is not None:
            self._progress.close()

    def _write(self, rows: Sequence[Row]) -> None:
        assert self._folder is not None
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_bytes(self._folder / "log.csv", text.getvalue().encode())


def line(row: Mapping[str, Any]) -> str:
    """A row as text."""
    parts = [row["stage"]]
    parts += [f"{name} {row[name]}" for name in ("pass", "layer", "epoch") if row[name] is not None]
    parts += [f"{name} {row[name]:.6g}" for name in ("objective", "risk", "dual", "score") if row[name] is not None]
    return ", ".join([*parts, f"{row['seconds']:.1f} s"])
