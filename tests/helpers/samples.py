"""Files of samples in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankwise.io import write_data


def write_table(path: str | Path, columns: dict[str, Any]) -> None:
    """A table, as pandas writes it."""
    frame, suffixes = pd.DataFrame(columns), Path(path).suffixes
    if ".parquet" in suffixes:
        frame.to_parquet(path, index=False, write_page_checksum=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in suffixes else ",")


def write_samples(path: str | Path, X: Any, y: Any = None, qid: Any = None, names: list[str] | None = None) -> None:
    """SVMlight text, or a table, by the ending of the name."""
    if not {".csv", ".tsv", ".parquet"} & {*Path(path).suffixes}:
        return write_data(path, X, y, qid)
    first = {"label": None if y is None else np.asarray(y, float), "qid": qid}
    names = names or [f"f{k + 1}" for k in range(X.shape[1])]
    columns = {name: values for name, values in first.items() if values is not None}
    return write_table(path, columns | dict(zip(names, X.T, strict=True)))
