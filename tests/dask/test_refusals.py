"""Parameters and data: what cannot be fitted is refused with the remedy, and a client is no value to copy."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask import bag, delayed
from dask_problems import in_parts, rare
from distributed import Client, LocalCluster
from sklearn.base import clone

import rankwise as rw
from rankwise.dask import DaskLinearRanker, DaskRankSVM, SchedulerLostError, average_precision, structured_hinge
from rankwise.dask.collections import as_dask_array

IN_THIS_PROCESS: Any = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}


def test_data_in_memory(near_client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 100)
    with pytest.raises(
        TypeError, match=r"X must be a Dask array or dataframe, got ndarray; for data in memory, use rankwise.RankSVM"
    ):
        DaskRankSVM().fit(X, y)
    with pytest.raises(TypeError, match="y must be a Dask array or dataframe, got list"):
        DaskRankSVM().fit(da.from_array(X), y.tolist())


def test_a_bag(near_client: Client, rng: np.random.Generator) -> None:
    _, y = rare(rng, 100)
    with pytest.raises(TypeError, match="X must be a Dask array or dataframe, got Bag"):
        DaskRankSVM().fit(bag.from_sequence([[1.0, 2.0]]), in_parts(y, [50, 50]))


def test_a_client_that_is_asynchronous(rng: np.random.Generator) -> None:
    X, y = (in_parts(values, [50, 50]) for values in rare(rng, 100))

    async def fit() -> None:
        async with (
            LocalCluster(**IN_THIS_PROCESS, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True, set_as_default=False) as client,
        ):
            DaskRankSVM(client=client).fit(X, y)

    with pytest.raises(TypeError, match="client is asynchronous, but rankwise waits for results; open it with"):
        asyncio.run(fit())


def test_no_client(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"there is no Dask client; create one"):
        DaskRankSVM().fit(da.from_array(np.zeros((4, 2))), da.from_array(np.arange(4) % 2))
    with pytest.raises(TypeError, match=r"client must be a distributed.Client, got str"):
        DaskRankSVM(client="tcp://x").fit(da.from_array(np.zeros((4, 2))), da.from_array(np.arange(4) % 2))


def test_a_client_that_is_closed(near: LocalCluster, rng: np.random.Generator) -> None:
    X, y = (in_parts(values, [50, 50]) for values in rare(rng, 100))
    client = Client(near, set_as_default=False)
    client.close()
    tasks: list[Callable[[], Any]] = [
        lambda: DaskRankSVM(client=client).fit(X, y),
        lambda: DaskLinearRanker(client=client).fit(X, y),
        lambda: structured_hinge(X[:, 0], y, client=client),
        lambda: average_precision(X[:, 0], y, client=client),
    ]
    for task in tasks:
        with pytest.raises(
            SchedulerLostError, match=r"client is closed, .*; open one with distributed.Client"
        ) as caught:
            task()
        assert "partial_" not in str(caught.value)


def test_a_cluster_that_is_closed(rng: np.random.Generator) -> None:
    X, y = (in_parts(values, [50, 50]) for values in rare(rng, 100))
    with LocalCluster(**IN_THIS_PROCESS) as cluster:
        client = Client(cluster, set_as_default=False)
    with pytest.raises(SchedulerLostError, match="client is closed, and maybe its cluster, too; open one") as caught:
        DaskRankSVM(client=client).fit(X, y)
    assert "partial_" not in str(caught.value)


def test_labels_of_another_length(near_client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 100)
    with pytest.raises(ValueError, match="y has 99 entries, but X has 100 rows"):
        DaskRankSVM().fit(da.from_array(X, chunks=(50, 8)), da.from_array(y[:99], chunks=30))
    with pytest.raises(ValueError, match=r"partition 1: y has shape \(40,\), but X has 50 rows"):
        DaskRankSVM().fit(in_parts(X, [50, 50], known=False), in_parts(y[:90], [50, 40], known=False))


def test_partitions_of_unknown_size_that_do_not_go_together(near_client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 100)
    with pytest.raises(ValueError, match=r"y has 3 partitions, but X has 2, of unknown sizes; call compute_chunk"):
        DaskRankSVM().fit(in_parts(X, [50, 50], known=False), in_parts(y, [30, 30, 40]))


def test_values_that_are_no_numbers_are_refused_with_their_partition(
    near_client: Client, rng: np.random.Generator
) -> None:
    X, y = rare(rng, 100)
    X[70, 3] = np.nan
    with pytest.raises(ValueError, match=r"X\[70, 3\] \(row 20 of partition 1\) is nan"):
        DaskRankSVM().fit(in_parts(X, [50, 50]), in_parts(y, [50, 50]))
    blocks = [delayed(X[:50]), delayed(X[:50, :7])]
    with pytest.raises(
        ValueError, match="X has 8 features in partition 0, but 7 in partition 1; give all partitions the same"
    ):
        DaskRankSVM().fit(as_dask_array(blocks, [50, 50], X[:0]), in_parts(y, [50, 50]))


def test_labels_that_say_nothing(near_client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 100)
    parts, ones = in_parts(X, [50, 50]), in_parts(np.ones(100), [50, 50])
    with pytest.raises(ValueError, match="only one class is present"):
        DaskRankSVM().fit(parts, ones)
    with pytest.raises(
        ValueError, match=r"y\[0\] \(row 0 of partition 0\) is -2.0: grades must be finite and at least 0"
    ):
        DaskRankSVM().fit(parts, in_parts(np.arange(100) % 5 - 2.0, [50, 50]), ones)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        DaskRankSVM().fit(parts, in_parts(np.arange(100) % 5, [50, 50]))
    with pytest.raises(ValueError, match="every query has only one class"):
        DaskRankSVM().fit(parts, in_parts(y, [50, 50]), in_parts(np.arange(100), [50, 50]))


def test_weights_that_differ_within_a_query(near_client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 100)
    parts = [in_parts(values, [50, 50]) for values in (X, y, np.zeros(100, int), np.repeat([1.0, 2.0], 50))]
    with pytest.raises(ValueError, match=r"query 0 has query_weight 1.0 in partition 0, but 2.0 in partition 1"):
        DaskRankSVM().fit(*parts)


def test_what_only_one_machine_can_do(near_client: Client, rng: np.random.Generator) -> None:
    X, _ = rare(rng, 100)
    parts = [in_parts(values, [50, 50]) for values in (X, np.arange(100) % 3 == 0, np.arange(100) % 2)]
    with pytest.raises(TypeError, match="on Dask, prior must be coefficients"):
        DaskRankSVM(prior=rw.RankSVM()).fit(*parts[:2])
    with pytest.raises(ValueError, match="solver='frank-wolfe' supports only a single query"):
        DaskRankSVM(solver="frank-wolfe").fit(*parts)


def test_scores_that_are_not_finite(near_client: Client) -> None:
    scores = da.from_array(np.array([0.0, 1.0, np.inf, 2.0]), chunks=2)
    with pytest.raises(ValueError, match=r"scores\[2\] \(row 0 of partition 1\) is inf: not finite"):
        structured_hinge(scores, da.from_array(np.array([0, 1, 0, 1]), chunks=2))


@pytest.mark.parametrize("kind", [DaskRankSVM, DaskLinearRanker])
def test_a_clone_has_the_client_and_a_pickle_has_none(near_client: Client, kind: Any) -> None:
    model = kind(verbose=1, client=near_client)
    assert clone(model).client is near_client
    assert pickle.loads(pickle.dumps(model)).get_params() == {**model.get_params(), "client": None}
