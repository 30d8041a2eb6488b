"""A worker, the scheduler or the user goes: the result is the same, or the best so far is kept."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest
from dask_problems import assert_same_fit, evenly, in_parts, rare
from distributed import Client, LocalCluster

import rankwise as rw
from rankwise.dask import DaskRankSVM, SchedulerLostError
from rankwise.dask.task import DaskObjective

pytestmark = [pytest.mark.distributed, pytest.mark.kill]


def at_step(monkeypatch: pytest.MonkeyPatch, k: int, act: Any) -> None:
    """Act before the k-th evaluation."""
    real, count = DaskObjective.evaluate, [0]

    def evaluate(self: DaskObjective, v: Any) -> Any:
        count[0] += 1
        if count[0] == k:
            act()
        return real(self, v)

    monkeypatch.setattr(DaskObjective, "evaluate", evaluate)


def two_workers() -> LocalCluster:
    """In this process, as the scheduler of any LocalCluster is; all talk over sockets."""
    how: Any = {"processes": False, "protocol": "tcp://", "dashboard_address": ":0", "silence_logs": 50}
    return LocalCluster(n_workers=2, threads_per_worker=1, **how)


def test_a_worker_that_is_killed_costs_time_and_not_the_result(
    client: Client, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X, y = rare(rng, 12_000)
    local = rw.RankSVM("ap", C=3.0).fit(X, y)
    pids = client.run(os.getpid)

    def kill() -> None:
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    at_step(monkeypatch, 4, kill)
    found = DaskRankSVM("ap", C=3.0).fit(in_parts(X, evenly(12_000, 5)), in_parts(y, evenly(12_000, 5)))
    client.wait_for_workers(2)  # other tests need them, too
    assert set(client.run(os.getpid).values()) != set(pids.values())
    assert_same_fit(found, local)


def test_a_scheduler_that_goes_leaves_the_best_model_so_far(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X, y = rare(rng, 15_000)
    with two_workers() as cluster, Client(cluster) as client:
        at_step(monkeypatch, 5, lambda: cluster.close(timeout=10))
        model = DaskRankSVM("ap", C=10.0, client=client)
        with pytest.raises(SchedulerLostError, match=r"can no longer be reached; .* best model so far is in partial_"):
            model.fit(in_parts(X, evenly(15_000, 3)), in_parts(y, evenly(15_000, 3)))
    assert type(model.partial_) is rw.RankSVM
    assert rw.metrics.average_precision(model.partial_.decision_function(X), y) > 5 * y.mean()
    assert not hasattr(model, "coef_")


def test_a_scheduler_that_goes_at_once_leaves_no_model(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X, y = (in_parts(values, [50, 50]) for values in rare(rng, 100))
    with two_workers() as cluster, Client(cluster) as client:
        at_step(monkeypatch, 1, lambda: cluster.close(timeout=10))
        model = DaskRankSVM("ap", C=10.0, client=client)
        with pytest.raises(SchedulerLostError, match="can no longer be reached; start a new cluster") as caught:
            model.fit(X, y)
    assert "partial_" not in str(caught.value)
    assert not hasattr(model, "partial_")


def test_a_warm_start_continues_from_what_a_failed_fit_left(
    near_client: Client, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X, y = (in_parts(values, [1_500, 1_500]) for values in rare(rng, 3_000))
    cold = DaskRankSVM("ap", C=10.0).fit(X, y)

    def fail() -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        at_step(patched, cold.n_iter_, fail)
        model = DaskRankSVM("ap", C=10.0, warm_start=True)
        with pytest.raises(OSError, match="the disk is gone"):
            model.fit(X, y)
    assert hasattr(model, "partial_")
    model.fit(X, y)
    assert model.history_["primal"][0] <= cold.history_["primal"][-2]
    assert model.n_iter_ < cold.n_iter_
    assert not hasattr(model, "partial_")


def test_an_interrupt_keeps_the_best_model_so_far(
    client: Client, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    X, y = rare(rng, 12_000)

    def interrupt() -> None:
        raise KeyboardInterrupt

    at_step(monkeypatch, 5, interrupt)
    model = DaskRankSVM("ap", C=10.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(in_parts(X, [6_000, 6_000]), in_parts(y, [6_000, 6_000]))
    assert not model.converged_
    assert rw.metrics.average_precision(model.to_local().decision_function(X), y) > 5 * y.mean()
