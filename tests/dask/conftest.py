from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Two workers, each a process with a thread."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as started:
        yield started


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as connected:
        yield connected


@pytest.fixture(scope="session")
def near() -> Iterator[LocalCluster]:
    """A worker in this process: what is refused is refused there, too."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as started:
        yield started


@pytest.fixture
def near_client(near: LocalCluster) -> Iterator[Client]:
    with Client(near) as connected:
        yield connected
