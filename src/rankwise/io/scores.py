"""Scores: one a line, in the order of the samples, with every digit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.inputs import as_array, first_true
from rankwise.io.atomic import write_bytes
from rankwise.io.quoting import shown
from rankwise.io.sources import check_text, lines_of, open_source


def write_scores(path: str | Path, scores: ArrayLike) -> None:
    """Write scores to a file, or to standard output where `path` is "-"; `read_scores` gives the same float64."""
    array = as_array(scores, "scores")
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(f"scores must be one-dimensional numbers, got {array.dtype} of shape {array.shape}")
    values = array.astype(np.float64)
    if (k := first_true(~np.isfinite(values))) is not None:
        raise ValueError(f"scores[{k}] is {values[k]}: not finite, so not written")
    text = "".join(f"{value!r}\n" for value in values.tolist())
    if str(path) == "-":
        if sys.stdout is None:
            raise OSError("standard output is closed; name a file")
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(path, text.encode())


def read_scores(path: str | Path) -> NDArray[np.float64]:
    """Scores of a file, or of standard input where `path` is "-": one number on every line."""
    source = open_source(path)
    check_text(source.name, source.head())
    values = []
    with source.open() as stream:
        for number, line in lines_of(source.name, stream):
            try:
                value = float(line)
            except ValueError:
                value = np.nan
            if not np.isfinite(value) or b"_" in line:
                text = shown(line.strip())
                raise ValueError(f"{source.name}, line {number}: {text} is not a finite number; give one score a line")
            values.append(value)
    return np.array(values)
