"""A worker, the scheduler or the user goes: the result is the same, or the best so far is kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dask_problems import assert_same_fit, evenly, in_parts, rare
from distributed import Client, LocalCluster

import rankwise as rw
from rankwise.dask import DaskRankSVM, SchedulerLostError
from rankwise.dask.task import DaskObjective

pytestmark = [pytest.mark.distributed, pytest.mark.kill]
At = Callable[[int, Callable[[], Any]], None]


@pytest.fixture
def at_step(monkeypatch: pytest.MonkeyPatch) -> At:
    """Act before the k-th evaluation."""
    real = DaskObjective.evaluate

    def at(k: int, act: Callable[[], Any]) -> None:
        count = [0]

        def evaluate(self: DaskObjective, v: Any) -> Any:
            count[0] += 1
            if count[0] == k:
                act()
            return real(self, v)

        monkeypatch.setattr(DaskObjective, "evaluate", evaluate)

    return at


def is_useful(model: Any, X: Any, y: Any) -> bool:
    return bool(rw.metrics.average_precision(model.decision_function(X), y) > 5 * y.mean())


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_a_worker_that_is_killed_costs_time_and_not_the_result(
    client: Client, at_step: At, rng: np.random.Generator
) -> None:
    X, y = rare(rng, 12_000)
    pids = client.run(os.getpid)
    at_step(4, lambda: os.kill(next(iter(pids.values())), signal.SIGKILL))
    found = DaskRankSVM("ap", C=3.0).fit(*(in_parts(values, evenly(12_000, 5)) for values in (X, y)))
    client.wait_for_workers(2)  # other tests need them, too
    assert set(client.run(os.getpid).values()) != set(pids.values())
    assert_same_fit(found, rw.RankSVM("ap", C=3.0).fit(X, y))


@pytest.mark.parametrize("k", [1, 5], ids=["at once", "later"])
def test_a_scheduler_that_goes_leaves_the_best_model_so_far(at_step: At, rng: np.random.Generator, k: int) -> None:
    X, y = rare(rng, 15_000)
    # In this process, as the scheduler of any LocalCluster is; all talk over sockets.
    how: Any = {"processes": False, "protocol": "tcp://", "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=2, threads_per_worker=1, **how) as cluster, Client(cluster) as client:
        at_step(k, lambda: cluster.close(timeout=10))
        model = DaskRankSVM("ap", C=10.0, client=client)
        with pytest.raises(SchedulerLostError, match="can no longer be reached; start a new cluster") as caught:
            model.fit(*(in_parts(values, evenly(15_000, 3)) for values in (X, y)))
    assert not hasattr(model, "coef_")
    assert hasattr(model, "partial_") == ("best model so far is in partial_" in str(caught.value)) == (k > 1)
    if k > 1:
        assert type(model.partial_) is rw.RankSVM
        assert is_useful(model.partial_, X, y)


def test_a_warm_start_continues_from_what_a_failed_fit_left(
    near_client: Client, at_step: At, rng: np.random.Generator
) -> None:
    X, y = (in_parts(values, [1_500, 1_500]) for values in rare(rng, 3_000))
    cold = DaskRankSVM("ap", C=10.0).fit(X, y)
    at_step(cold.n_iter_, raising(OSError("the disk is gone")))
    model = DaskRankSVM("ap", C=10.0, warm_start=True)
    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(X, y)
    assert hasattr(model, "partial_")
    at_step(0, raising(OSError()))
    model.fit(X, y)
    assert model.history_["primal"][0] <= cold.history_["primal"][-2]
    assert model.n_iter_ < cold.n_iter_
    assert not hasattr(model, "partial_")


def test_an_interrupt_keeps_the_best_model_so_far(near_client: Client, at_step: At, rng: np.random.Generator) -> None:
    X, y = rare(rng, 12_000)
    at_step(5, raising(KeyboardInterrupt()))
    model = DaskRankSVM("ap", C=10.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*(in_parts(values, [6_000, 6_000]) for values in (X, y)))
    assert not model.converged_
    assert is_useful(model.to_local(), X, y)
