"""Score files: one score per line, in the order of the samples, with all digits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arguments import as_array, first_true
from rankwise.io.atomic import write_bytes
from rankwise.io.quoting import shown
from rankwise.io.sources import check_text, lines_of, open_source


def write_scores(path: str | Path, scores: ArrayLike) -> None:
    """Write scores to a text file, one per line.

    `read_scores` reads exactly the same float64 values.

    Parameters
    ----------
    path : str or Path
        The file, written atomically, or "-" for standard output.
    scores : array-like of shape (n,)
        Finite numbers.

    Raises
    ------
    ValueError
        If the scores are not one-dimensional finite numbers.

    See Also
    --------
    read_scores : Read scores from a file.

    Examples
    --------
    >>> write_scores("-", [0.5, -1.0])
    0.5
    -1.0
    """
    array = as_array(scores, "scores")
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(f"scores must be one-dimensional numbers, got {array.dtype} of shape {array.shape}")
    values = array.astype(np.float64)
    if (k := first_true(~np.isfinite(values))) is not None:
        raise ValueError(f"scores[{k}] is {values[k]}; scores must be finite")
    text = "".join(f"{value!r}\n" for value in values.tolist())
    if str(path) == "-":
        if sys.stdout is None:
            raise OSError("standard output is closed; name a file")
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(path, text.encode())


def read_scores(path: str | Path) -> NDArray[np.float64]:
    """Read scores from a text file, one per line.

    Parameters
    ----------
    path : str or Path
        The file, or "-" for standard input.

    Returns
    -------
    ndarray of shape (n,)
        The scores, as float64.

    Raises
    ------
    ValueError
        If a line is not a finite number.

    See Also
    --------
    write_scores : Write scores to a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_scores(f"{folder}/scores.txt", [0.5, -1.0])
    ...     read_scores(f"{folder}/scores.txt")
    array([ 0.5, -1. ])
    """
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
                raise ValueError(
                    f"{source.name}, line {number}: {text} is not a finite number; give one score per line"
                )
            values.append(value)
    return np.array(values)
