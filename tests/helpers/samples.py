"""Files of samples in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankwise.io import write_data


def write_samples(path: str | Path, X: Any, y: Any = None, qid: Any = None, names: list[str] | None = None) -> None:
    """Write SVMlight text, or a table as pandas does, by the ending of the name."""
    suffixes = Path(path).suffixes
    if not {".csv", ".tsv", ".parquet"} & {*suffixes}:
        return write_data(path, X, y, qid)
    first = {"label": None if y is None else np.asarray(y, float), "qid": qid}
    names = names or [f"f{k + 1}" for k in range(X.shape[1])]
    columns = {name: values for name, values in first.items() if values is not None}
    frame = pd.DataFrame(columns | dict(zip(names, X.T, strict=True)))
    if ".parquet" in suffixes:
        return frame.to_parquet(path, index=False, write_page_checksum=True)
    return frame.to_csv(path, index=False, sep="\t" if ".tsv" in suffixes else ",")
