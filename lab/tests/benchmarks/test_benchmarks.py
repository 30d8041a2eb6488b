"""The benchmarks' own parts: timing, scores, processes, memory. No test here depends on how fast anything is."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.benchmarks import processes
from rankwise_lab.measuring import machine, opponents, scores
from rankwise_lab.measuring.timing import Seconds, compare

import rankwise as rw


def test_compare_warms_up_and_then_alternates_opponents() -> None:
    called: list[str] = []

    def task(name: str) -> None:
        called.append(name)
        time.sleep(0.002)  # longer than one measurement must be: one call each

    found = compare({"a": lambda: task("a"), "b": lambda: task("b")}, repeats=3)
    assert "".join(called) == "aabb" + "ababab"
    assert list(found) == ["a", "b"]
    assert all(seconds >= 0.002 for seconds in found.values())


def test_compare_takes_the_best_and_calls_a_fast_task_many_times_per_measurement() -> None:
    answers = iter([9.0, 5.0, 3.0, 4.0])  # the first is the warm-up
    assert compare({"elsewhere": lambda: Seconds(next(answers))}, repeats=3) == {"elsewhere": 3.0}
    calls: list[int] = []
    found = compare({"fast": lambda: calls.append(1)}, repeats=2)
    assert len(calls) > 20
    assert 0 < found["fast"] < 1e-3


@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_trained_like_scores_leave_one_negative_in_a_hundred_active(loss: str) -> None:
    sample = scores.trained_like(50, 20_000, loss)
    ranks = np.asarray(rw.most_violating_ranking(sample.scores, sample.relevant, loss).ranks)
    active = np.count_nonzero(ranks <= 50) / 20_000
    assert active == pytest.approx(scores.ACTIVE, rel=0.1)
    assert scores.active_share(sample, loss) == pytest.approx(active)


def test_zero_one_hinge_is_the_mean_of_margins_and_its_gradient() -> None:
    sample = scores.Sample(np.array([0.5, 2.0, -3.0, 0.5], np.float32), np.array([True, True, False, False]))
    value, gradient = opponents.zero_one_hinge(sample)
    assert value == pytest.approx((0.5 + 0 + 0 + 1.5) / 4)
    np.testing.assert_allclose(gradient, [-1 / 4, 0, 0, 1 / 4])


def test_sorting_without_avx512_is_timed_in_a_process_where_it_is_disabled() -> None:
    features = machine.avx512_features()
    with processes.sort_without_avx512(np.arange(1000, dtype=np.float32)) as task:
        if not features:
            assert task is None
            pytest.skip("this processor has no AVX-512")
        assert all(isinstance(seconds, Seconds) and seconds > 0 for seconds in (task(), task()))
    assert machine.numpy_sorts_with() == "AVX-512"
    code = "from rankwise_lab.measuring.machine import *; print(avx512_features(), numpy_sorts_with())"
    environment = processes.environment({"NPY_DISABLE_CPU_FEATURES": " ".join(features)})
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] AVX2"


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(OSError, match="no such task"):
        processes._answer(processes.child("juggle"), {})


@pytest.mark.parametrize(
    ("measure", "low", "high"), [(machine.growth_of, 49, 75), (partial(machine.own_growth_of, every=0.001), 35, 90)]
)
def test_growth_is_what_a_task_holds_at_its_peak(measure: Any, low: float, high: float) -> None:
    def task() -> None:
        for _ in range(20):
            np.ones(50 * 2**20, np.uint8).sum()

    task()
    growth = measure(task)
    if not Path("/proc/self/status").exists():
        assert growth is None
    else:
        assert low * 2**20 < growth < high * 2**20
