"""Time in inference by method: what is trained and timed, its means and quotients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import timing
from rankwise_lab.reproduce.action import ActionExperiment
from rankwise_lab.reproduce.timing import METHODS, Plan, TimingExperiment
from rankwise_lab.reproduce.timing_results import QUOTIENTS
from small_experiments import ACTION, CLASSES, DATA
from threadpoolctl import threadpool_info, threadpool_limits

from rankwise import RankSVM


@pytest.fixture(scope="module")
def part(wholes: Any) -> Part:
    found: Part = wholes.part("timing")
    return found


@pytest.fixture(scope="module")
def chosen(wholes: Any, part: Part) -> ActionExperiment:
    return ActionExperiment(DATA, wholes.folder / "action", ACTION)


def test_every_method_trains_the_same_model_at_the_C_that_was_chosen(chosen: ActionExperiment, part: Part) -> None:
    for k, found in enumerate(part.found["classes"]):
        assert (found["positives"], found["negatives"]) == (DATA.Y[:, k].sum(), (~DATA.Y[:, k]).sum())
        for key, method in METHODS.items():
            one = found["methods"][key]
            assert one["C"] == chosen.chosen(k, method.loss, method.metric)
            model = RankSVM(method.loss, one["C"], tol=1e-6).fit(DATA.X.astype(float), DATA.Y[:, k])
            assert one["dual"] <= model.objective_ * (1.0 + 1e-9)
            assert model.dual_ <= one["objective"] * (1.0 + 1e-9)
            assert one["gap"] <= part.found["plan"]["tol"]
            assert one["calls"] >= 2


def test_methods_take_turns(chosen: ActionExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str, str]] = []
    threads: set[int] = set()
    hinge = timing.structured_hinge

    def called(scores: Any, relevant: Any, loss: Any, method: str, **more: Any) -> Any:
        done.append(("replay" if more else "hinge", repr(loss), method))
        return hinge(scores, relevant, loss, method=method, **more)

    class Recorded(RankSVM):
        def fit(self, X: Any, y: Any) -> RankSVM:
            done.append(("fit", repr(self.loss), self.method))
            threads.update({self.n_threads, *(pool["num_threads"] for pool in threadpool_info())})
            assert X.dtype == np.float64
            return super().fit(X, y)

    monkeypatch.setattr(timing, "structured_hinge", called)
    monkeypatch.setattr(timing, "RankSVM", Recorded)
    monkeypatch.setattr(timing, "ROUNDS", 1)
    with threadpool_limits(limits=2):
        TimingExperiment(chosen, tmp_path, Plan(repeats=2)).run()
    expected = [(repr(method.trained_for()), method.how) for method in METHODS.values()]
    one = [("hinge", *pair) for pair in expected] + [("fit", *pair) for pair in expected] * 2
    assert [call for call in done if call[0] != "replay"] == one * len(CLASSES)
    last = [call[0] for call in done[len(one) :]].index("hinge")
    assert {call[0] for call in done[len(one) : len(one) + last]} == {"replay"}
    assert {call[1:] for call in done if call[0] == "replay"} == set(expected)
    assert threads == {1}


@pytest.mark.parametrize("key", ["zero_one", "ap_qs", "ndcg_qs"])
def test_the_calls_replayed_are_those_of_the_training(chosen: ActionExperiment, tmp_path: Path, key: str) -> None:
    method, plan = METHODS[key], Plan(repeats=2)
    calls = TimingExperiment(chosen, tmp_path, plan)._calls(0, method)
    model = RankSVM(method.loss, chosen.chosen(0, method.loss, method.metric), tol=plan.tol)
    model.fit(chosen.X, chosen.relevant(0))
    assert len(calls) == model.timing_["calls"]
    assert not np.array_equal(calls[0], calls[-1])
    last = chosen.X @ model.coef_[0] + (model.intercept_ if method.loss == "zero-one" else 0.0)
    assert any(np.allclose(scores, last, rtol=1e-9, atol=1e-9) for scores in calls)
    np.testing.assert_allclose(calls[0], calls[0][0])  # training begins at w = 0


def test_means_and_quotients_are_of_the_least_times_of_every_class(part: Part) -> None:
    means = part.found["mean"]
    for key, mean in means.items():
        methods = [one["methods"][key] for one in part.found["classes"]]
        assert all(len(method["seconds"]) == part.found["plan"]["repeats"] for method in methods)
        least = np.array([min(method["seconds"]) for method in methods])
        calls = np.array([method["calls"] for method in methods])
        again = np.array([method["replayed"]["seconds"] for method in methods])
        by_call = 1e3 * again / [method["replayed"]["calls"] for method in methods]
        assert [mean["total"], mean["calls"]] == pytest.approx([least.mean(), calls.mean()])
        assert mean["per_call"] == pytest.approx((1e3 * least / calls).mean())
        assert mean["deviation"] == pytest.approx((1e3 * least / calls).std(ddof=1))
        assert mean["replayed_total"] == pytest.approx(again.mean())
        assert [mean["replayed"], mean["replayed_deviation"]] == pytest.approx([by_call.mean(), by_call.std(ddof=1)])
    for one in QUOTIENTS:
        for what, of in (("total", "total"), ("per_call", "per_call"), ("replayed", "replayed_total")):
            assert part.found["faster"][one.name][what] == pytest.approx(means[one.slow][of] / means[one.fast][of])
