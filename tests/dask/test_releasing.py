"""What a computation holds on the cluster is gone when it ends, even while its error is still in somebody's hands."""

from __future__ import annotations

import time
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask_problems import in_parts, rare
from distributed import Client, LocalCluster, wait

from rankwise.dask import DaskRankSVM, average_precision, structured_hinge
from rankwise.dask.task import DaskObjective

SIZES = [50, 30, 20]


def tasks_left(client: Client, cluster: LocalCluster, known: set[Any]) -> set[Any]:
    """Keys of tasks beyond the known ones, on the client or the scheduler, as soon as there are none or after 5 s."""
    for _ in range(100):
        left = (set(client.futures) | set(cluster.scheduler.tasks)) - known
        if not left:
            break
        time.sleep(0.05)
    return left


def broken(block: Any) -> Any:
    raise OSError("the disk is gone")


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[Any, Any]:
    return rare(rng, 100)


TASKS: dict[str, Any] = {
    "DaskRankSVM": lambda X, y: DaskRankSVM("ap", C=1.0).fit(X, y),
    "structured_hinge": lambda X, y: structured_hinge(X[:, 0], y),
    "average_precision": lambda X, y: average_precision(X[:, 0], y),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("what", ["a feature", "the labels", "a worker"])
def test_what_fails_leaves_nothing(near: LocalCluster, near_client: Client, data: Any, name: str, what: str) -> None:
    X, y = data
    X[70] = np.nan if what == "a feature" else X[70]
    y = np.full(100, -1.0) if what == "the labels" else y
    parts = in_parts(X, SIZES)
    parts = parts.map_blocks(broken, dtype=float, meta=X[:0]) if what == "a worker" else parts
    with pytest.raises(OSError if what == "a worker" else ValueError) as caught:
        TASKS[name](parts, in_parts(y, SIZES))
    assert not tasks_left(near_client, near, set())
    assert caught.value.__traceback__ is not None


@pytest.mark.parametrize("raised", [KeyboardInterrupt, RuntimeError])
def test_a_fit_that_is_interrupted_or_fails_in_the_middle(
    near: LocalCluster, near_client: Client, data: Any, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: DaskObjective, v: Any) -> Any:
        kept = self.score(v).states  # the exception keeps them through this frame
        assert kept
        raise raised

    monkeypatch.setattr(DaskObjective, "evaluate", interrupt)
    with pytest.raises(raised) as caught:
        TASKS["DaskRankSVM"](*(in_parts(values, SIZES) for values in data))
    assert not tasks_left(near_client, near, set())
    assert caught.value.__traceback__ is not None


def test_fits_and_values_that_are_found(near: LocalCluster, near_client: Client, data: Any) -> None:
    X, y = (in_parts(values, SIZES) for values in data)
    model = DaskRankSVM("ap", C=1.0, tol=0.5).fit(X, y)
    assert not tasks_left(near_client, near, set())
    average_precision(X[:, 0], y)
    assert not tasks_left(near_client, near, set())
    found = structured_hinge(X[:, 0], y)
    time.sleep(0.1)
    assert len(near_client.futures) == len(SIZES)  # the gradient belongs to the user
    assert found.gradient.compute().shape == (100,)
    del found
    assert not tasks_left(near_client, near, set())
    assert model.coef_.shape == (1, 8)


def test_collections_of_the_user_stay(near: LocalCluster, near_client: Client, data: Any) -> None:
    X, y = (near_client.persist(in_parts(values, SIZES)) for values in data)
    wait([X, y])
    futures, known = set(near_client.futures), set(near.scheduler.tasks)
    assert len(futures) == 2 * len(SIZES)
    DaskRankSVM("ap", C=1.0, tol=0.5).fit(X, y)
    with pytest.raises(ValueError, match="only one class") as caught:
        DaskRankSVM("ap", C=1.0).fit(X, da.zeros_like(y))
    assert not tasks_left(near_client, near, known)
    assert set(near_client.futures) == futures
    np.testing.assert_array_equal(X.compute(), data[0])
    assert caught.value.__traceback__ is not None
