"""Data larger than what the workers may hold in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_problems import assert_same_fit
from distributed import Client, LocalCluster

import rankwise as rw
from rankwise.dask import DaskRankSVM

# A worker with NumPy, Numba, pandas and scikit-learn takes almost half of this by itself. Arrow's own allocator would
# keep what it was given; that of the system returns it.
LIMIT, PARTS, ROWS, FEATURES = 560 << 20, 30, 12_500, 200


@pytest.mark.distributed
@pytest.mark.slow
def test_a_parquet_folder_larger_than_the_memory_limit(tmp_path: Path, rng: np.random.Generator) -> None:
    names = [f"f{k}" for k in range(FEATURES)]
    blocks: list[Any] = []
    noise = rng.standard_normal((ROWS, FEATURES))
    plain: Any = {"compression": None, "use_dictionary": False, "write_statistics": False}
    for k in range(PARTS):
        X = np.roll(noise, k, axis=1) + k / 100
        y = X[:, 0] + 0.5 * np.roll(X[:, 50], k) > 3.2
        pd.DataFrame(X, columns=names).assign(y=y).to_parquet(tmp_path / f"{k:03}.parquet", **plain)
        blocks.append((X, y))
    assert sum(X.nbytes for X, _ in blocks) > LIMIT
    local = rw.RankSVM("ap", C=1.0, max_iter=2, tol=0.5).fit(*map(np.concatenate, zip(*blocks, strict=True)))
    blocks.clear()
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit=LIMIT,
            dashboard_address=":0",
            local_directory=tmp_path,
            env={"ARROW_DEFAULT_MEMORY_POOL": "system"},
        ) as cluster,
        Client(cluster) as client,
    ):
        frame = dd.read_parquet(tmp_path / "*.parquet")
        pids = client.run(os.getpid)
        found = DaskRankSVM("ap", C=1.0, max_iter=2, tol=0.5).fit(frame[names], frame.y)
        assert client.run(os.getpid) == pids  # nobody ran out of memory
    assert_same_fit(found, local)
