"""Time in inference by method: what is trained and timed, its means and quotients, runs that are cut off, its page."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action, timing
from rankwise_lab.reproduce.action import ActionExperiment
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.beside import ratio
from rankwise_lab.reproduce.timing import METHODS, Plan, TimingExperiment
from rankwise_lab.reproduce.timing_page import conclusions, make_part
from rankwise_lab.reproduce.timing_results import PAPER, PAPER_SAMPLES, QUOTIENTS, faster_table, table1, table2
from threadpoolctl import threadpool_info, threadpool_limits

from rankwise import NDCG, RankSVM

PLAN = Plan(repeats=2)
ACTION_PLAN = action.Plan(Cs=2, ends=(1.0, 2.0), ends_zero_one=(0.0, 1.0), folds=2, draws=10)
CLASSES = ("emu", "yak")


@pytest.fixture(scope="module")
def data() -> ActionData:
    """Samples of two classes, each told, but not well, by a feature."""
    rng = np.random.default_rng(11)
    Y = rng.random((120, 2)) < 0.3
    X = rng.normal(size=(120, 6)).astype(np.float32)
    X[:, :2] += Y
    return ActionData(X[:80], Y[:80], X[80:], Y[80:], CLASSES, "noise", True, "abc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def part(data: ActionData, folder: Path) -> Part:
    return make_part(data, folder, PLAN, ACTION_PLAN, lambda line: None)


def test_every_method_trains_the_same_model_at_the_C_that_was_chosen(
    data: ActionData, folder: Path, part: Part
) -> None:
    chosen = ActionExperiment(data, folder / "action", ACTION_PLAN)
    for k, found in enumerate(part.found["classes"]):
        assert (found["positives"], found["negatives"]) == (data.Y[:, k].sum(), (~data.Y[:, k]).sum())
        for key, method in METHODS.items():
            one = found["methods"][key]
            assert one["C"] == chosen.chosen(k, method.loss, method.metric)
            model = RankSVM(method.loss, one["C"], tol=1e-6).fit(data.X.astype(float), data.Y[:, k])
            assert one["dual"] <= model.objective_ * (1.0 + 1e-9)
            assert model.dual_ <= one["objective"] * (1.0 + 1e-9)
            assert one["gap"] <= PLAN.tol
            assert one["calls"] >= 2


def test_methods_are_warmed_up_and_then_take_turns_with_one_thread(
    data: ActionData, folder: Path, part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    chosen = ActionExperiment(data, folder / "action", ACTION_PLAN)
    monkeypatch.setattr(timing, "structured_hinge", called)
    monkeypatch.setattr(timing, "RankSVM", Recorded)
    with threadpool_limits(limits=2):
        TimingExperiment(chosen, tmp_path, PLAN).run()
    expected = [(repr(method.trained_for()), method.how) for method in METHODS.values()]
    one = [("hinge", *pair) for pair in expected] + [("fit", *pair) for pair in expected] * PLAN.repeats
    assert [call for call in done if call[0] != "replay"] == one * len(CLASSES)
    last = [call[0] for call in done[len(one) :]].index("hinge")
    assert {call[0] for call in done[len(one) : len(one) + last]} == {"replay"}
    assert {call[1:] for call in done if call[0] == "replay"} == set(expected)
    assert threads == {1}


def test_the_calls_replayed_are_those_of_the_training(data: ActionData, folder: Path, tmp_path: Path) -> None:
    chosen = ActionExperiment(data, folder / "action", ACTION_PLAN)
    experiment = TimingExperiment(chosen, tmp_path, PLAN)
    for method in (METHODS["zero_one"], METHODS["ap_qs"], METHODS["ndcg_qs"]):
        calls = experiment._calls(0, method)
        model = RankSVM(method.loss, chosen.chosen(0, method.loss, method.metric), tol=PLAN.tol)
        model.fit(chosen.X, chosen.relevant(0))
        assert len(calls) == model.timing_["calls"]
        assert not np.array_equal(calls[0], calls[-1])
        last = chosen.X @ model.coef_[0] + (model.intercept_ if method.loss == "zero-one" else 0.0)
        assert any(np.allclose(scores, last, rtol=1e-9, atol=1e-9) for scores in calls)
        np.testing.assert_allclose(calls[0], calls[0][0])  # training begins at w = 0


def test_times_at_another_choice_of_C_are_not_mixed_in(data: ActionData, folder: Path, tmp_path: Path) -> None:
    TimingExperiment(ActionExperiment(data, folder / "action", ACTION_PLAN), tmp_path / "t", PLAN)
    other = ActionExperiment(data, tmp_path / "other", replace(ACTION_PLAN, folds=3))
    with pytest.raises(ValueError, match="results of another plan"):
        TimingExperiment(other, tmp_path / "t", PLAN)


def test_the_published_method_alone_takes_logarithms() -> None:
    alone = [key for key, method in METHODS.items() if isinstance(method.trained_for(), NDCG)]
    assert alone == ["ndcg"]
    assert {method.loss for method in METHODS.values()} == {"zero-one", "ap", "ndcg"}


def test_means_are_of_the_least_times_of_every_class(part: Part) -> None:
    for key, mean in part.found["mean"].items():
        methods = [one["methods"][key] for one in part.found["classes"]]
        assert all(len(method["seconds"]) == PLAN.repeats for method in methods)
        least = np.array([min(method["seconds"]) for method in methods])
        calls = np.array([method["calls"] for method in methods])
        assert mean["total"] == pytest.approx(least.mean())
        assert mean["calls"] == pytest.approx(calls.mean())
        assert mean["per_call"] == pytest.approx((1e3 * least / calls).mean())
        again = np.array([method["replayed"]["seconds"] for method in methods])
        by_call = 1e3 * again / [method["replayed"]["calls"] for method in methods]
        assert mean["replayed_total"] == pytest.approx(again.mean())
        assert [mean["replayed"], mean["replayed_deviation"]] == pytest.approx([by_call.mean(), by_call.std(ddof=1)])
        assert mean["deviation"] == pytest.approx((1e3 * least / calls).std(ddof=1))


def test_the_papers_times_are_those_of_its_tables() -> None:
    keys = ("zero_one", "ap", "ap_qs", "ndcg", "ndcg_qs")
    assert " & ".join(str(PAPER["total"][key]) for key in keys) == "0.0694 & 0.7154 & 0.0625 & 6.8019 & 0.0473"
    per_call = " & ".join("{:.2f}±{:.2f}".format(*PAPER["per_call"][key]) for key in keys)
    assert per_call == "0.48±0.03 & 16.29±0.18 & 1.48±0.39 & 71.07±1.57 & 0.55±0.11"


def test_quotients_are_of_means_and_the_papers_of_its_tables(part: Part) -> None:
    for one in QUOTIENTS:
        found, mean = part.found["faster"][one.name], part.found["mean"]
        for what, of in (("total", "total"), ("per_call", "per_call"), ("replayed", "replayed_total")):
            assert found[what] == pytest.approx(mean[one.slow][of] / mean[one.fast][of])
    papers = [(part.found["faster"][one.name]["paper_total"], one.least) for one in QUOTIENTS[:5]]
    assert papers == [
        (pytest.approx(0.7154 / 0.0625), 10.0),
        (pytest.approx(6.8019 / 0.0473), 100.0),
        (None, 100.0),
        (pytest.approx(1.576), None),
        (None, None),
    ]
    calls = [part.found["faster"][one.name]["paper_per_call"] for one in QUOTIENTS[:4]]
    assert calls == [pytest.approx(16.29 / 1.48), pytest.approx(71.07 / 0.55), None, None]


def test_tables_have_the_papers_number_ours_and_the_ratio(part: Part) -> None:
    for row, key in zip(table1(part.found).rows, METHODS, strict=True):
        ours, theirs = part.found["mean"][key]["total"], PAPER["total"].get(key)
        shown = ["-", f"{ours:.4f}", "-"] if theirs is None else [f"{theirs:.4f}", f"{ours:.4f}", ratio(ours, theirs)]
        assert list(row[1:4]) == shown
    rows = {row[0]: row for row in table2(part.found).rows}
    assert rows["AP_QS, Algorithm 1"][1] == "1.48 ± 0.39"
    assert rows["NDCG, our engine"][1] == "-"
    for table in part.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize(("total", "said"), [(10.0, "reached"), (9.99, "missed")])
def test_an_aim_is_judged_with_as_many_samples_as_the_paper_has(part: Part, total: float, said: str) -> None:
    found = deepcopy(part.found)
    found["faster"][QUOTIENTS[0].name] |= {"total": total, "replayed": 10.1}
    assert list(faster_table(found).rows[0][-3:]) == ["≥ 10", *["too few samples"] * 2]
    found["data"]["samples"]["train"] = PAPER_SAMPLES
    assert list(faster_table(found).rows[0][-3:]) == ["≥ 10", said, "reached"]
    assert conclusions(found)[0].endswith(f"Aim: at least 10, {said} in training, reached replayed.")


def test_methods_that_end_at_different_minima_are_told(part: Part) -> None:
    assert "all methods end at the same minimum" in conclusions(part.found)[-1]
    assert part.found["agreement"]["ap"]["spread"] <= PLAN.tol
    found = deepcopy(part.found)
    found["agreement"]["ndcg"]["bracketed"] = False
    assert "do not all end at the same minimum" in conclusions(found)[-1]


def test_a_method_that_is_slower_is_said_to_be(part: Part) -> None:
    found = deepcopy(part.found)
    found["faster"][QUOTIENTS[3].name]["total"] = 0.5
    assert "2.0 times slower than Mohapatra et al. 2014" in conclusions(found)[3]
    for key, seconds in (("zero_one", 1.0), ("ap_qs", 2.0), ("ndcg_qs", 0.5)):
        found["mean"][key]["total"] = seconds
    assert conclusions(found)[5].endswith("0-1 loss takes longer than NDCG_QS.")


def test_a_run_that_was_cut_off_does_not_time_a_class_again(
    data: ActionData, folder: Path, part: Part, tmp_path: Path
) -> None:
    chosen = ActionExperiment(data, folder / "action", ACTION_PLAN)

    def cut(line: str) -> None:
        if line.startswith("yak, AP_QS"):
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        TimingExperiment(chosen, tmp_path, PLAN, cut).run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00-emu-timing.json", "plan.json"]
    first = (tmp_path / "00-emu-timing.json").read_bytes()
    said: list[str] = []
    found = TimingExperiment(chosen, tmp_path, PLAN, said.append).run()
    assert [one["class"] for one in found] == list(CLASSES)
    assert (tmp_path / "00-emu-timing.json").read_bytes() == first
    assert len(said) == len(METHODS)
    assert TimingExperiment(chosen, tmp_path, PLAN).run() == found


def test_results_of_another_plan_are_refused(data: ActionData, folder: Path, part: Part) -> None:
    with pytest.raises(ValueError, match="another plan"):
        make_part(data, folder, replace(PLAN, repeats=3), ACTION_PLAN, lambda line: None)
    with pytest.raises(ValueError, match="another plan"):
        make_part(data, folder, PLAN, replace(ACTION_PLAN, folds=3), lambda line: None)


def test_the_csv_has_a_line_a_class_and_method(part: Part) -> None:
    rows = list(csv.DictReader(io.StringIO(part.csv)))
    assert [(row["class"], row["method"]) for row in rows] == [(c, key) for c in (*CLASSES, "mean") for key in METHODS]
    for row, key in zip(rows, METHODS, strict=False):
        one = part.found["classes"][0]["methods"][key]
        assert (float(row["seconds"]), int(row["calls"])) == (min(one["seconds"]), one["calls"])


def test_the_part_becomes_a_section_with_its_figure(part: Part, tmp_path: Path, page_of: Any) -> None:
    page = page_of(part)
    assert "NDCG_QS, Algorithm 1" in page.cells
    assert (tmp_path / "timing" / "calls.png").read_bytes() == part.figures["calls"].png
    assert any("Threads: 1 for inference" in line for line in part.facts)
