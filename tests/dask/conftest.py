from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

pytest.register_assert_rewrite("dask_problems")

# A cluster lives as long as its session. Unasked, one that idles takes an eighth of a core to look at itself.
dask.config.set(
    {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "2s",
    }
)
_PLAIN: Any = {"threads_per_worker": 1, "dashboard_address": ":0"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Two workers, each a process with a thread."""
    with LocalCluster(n_workers=2, processes=True, **_PLAIN) as started:
        yield started


@pytest.fixture(scope="session")
def near() -> Iterator[LocalCluster]:
    """A worker in this process: what is refused is refused there, too."""
    with LocalCluster(n_workers=1, processes=False, **_PLAIN) as started:
        yield started


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as connected:
        yield connected


@pytest.fixture
def near_client(near: LocalCluster) -> Iterator[Client]:
    with Client(near) as connected:
        yield connected
