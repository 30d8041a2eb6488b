"""Ten classes by loss: C, values and intervals computed otherwise; runs that are cut off; their part of the report."""

from __future__ import annotations

import csv
import io
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.action import MEASURES, ActionExperiment, Plan
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.action_page import conclusions, draw, make_part
from rankwise_lab.reproduce.action_results import PAPER, PAPER_MEANS, measure_table, paper_table
from sklearn.metrics import average_precision_score, ndcg_score

from rankwise import RankSVM, RankSVMCV
from rankwise.linear.cross_validation import Search

PLAN = Plan(Cs=3, ends=(0.5, 2.5), ends_zero_one=(-0.5, 1.5), folds=3, draws=30)
CLASSES = ("emu", "sea cow", "yak")
PAIRS = [(loss, metric) for loss, metrics in MEASURES.items() for metric in metrics]


def draw_samples(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Samples that may be of several classes, each told, but not well, by a feature."""
    Y = rng.random((n, len(CLASSES))) < 0.25
    X = rng.normal(size=(n, 7))
    X[:, : len(CLASSES)] += Y
    return X.astype(np.float32), Y


@pytest.fixture(scope="module")
def data() -> ActionData:
    rng = np.random.default_rng(7)
    return ActionData(*draw_samples(rng, 150), *draw_samples(rng, 120), CLASSES, "noise", True, "abc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def part(data: ActionData, folder: Path) -> Part:
    return make_part(data, folder, PLAN, lambda line: None)


def measured(metric: str, scores: NDArray[Any], relevant: NDArray[np.bool_]) -> float:
    """The measure by scikit-learn."""
    if metric == "ap":
        return float(average_precision_score(relevant, scores))
    return float(ndcg_score(relevant[None].astype(float), scores[None]))


@pytest.mark.parametrize(("loss", "metric"), PAIRS)
def test_a_model_trained_anew_at_the_kept_C_has_the_kept_value_on_test(
    data: ActionData, part: Part, loss: str, metric: str
) -> None:
    for k, found in enumerate(part.found["classes"]):
        model = RankSVM(loss, found[loss][metric]["C"]).fit(data.X.astype(float), data.Y[:, k])
        value = measured(metric, model.decision_function(data.X_test), data.Y_test[:, k])
        assert found[loss][metric]["test"] == pytest.approx(value, rel=1e-12)
        assert found[loss][metric]["gap"] <= PLAN.tol


@pytest.mark.parametrize(("loss", "metric"), PAIRS)
def test_C_is_chosen_as_RankSVMCV_chooses_it(data: ActionData, part: Part, loss: str, metric: str) -> None:
    for k, found in enumerate(part.found["classes"]):
        judge = RankSVMCV(loss, found[loss]["Cs"], cv=PLAN.folds, scoring=metric, tol=PLAN.tol)
        judge.fit(data.X.astype(float), data.Y[:, k])
        np.testing.assert_allclose(found[loss][metric]["folds"], judge.scores_[0], rtol=1e-12)
        assert found[loss][metric]["C"] == judge.C_
        assert found[loss][metric]["cv"] == pytest.approx(judge.best_score_)
        assert found[loss][metric]["at_edge"] == (judge.C_ in (found[loss]["Cs"][0], found[loss]["Cs"][-1]))


def test_grids_lie_around_the_natural_C(data: ActionData, part: Part) -> None:
    for k, found in enumerate(part.found["classes"]):
        for loss, ends in (("ap", PLAN.ends), ("zero-one", PLAN.ends_zero_one)):
            y = data.Y[:, k]
            natural = RankSVM(loss).fit(data.X.astype(float), y).C_ / 256.0
            np.testing.assert_allclose(found[loss]["Cs"], natural * 10.0 ** np.linspace(*ends, PLAN.Cs))


def test_the_folds_of_a_class_and_loss_are_trained_once(
    data: ActionData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    run = Search.run
    monkeypatch.setattr(
        Search, "run", lambda self, *jobs: ran.append(self.names[0].removesuffix(" loss")) or run(self, *jobs)
    )
    experiment = ActionExperiment(data, tmp_path, PLAN)
    values = [experiment.chosen(1, loss, metric) for loss, metric in PAIRS]
    assert ran == list(MEASURES)
    again = ActionExperiment(data, tmp_path, PLAN)
    assert [again.chosen(1, loss, metric) for loss, metric in PAIRS] == values
    assert ran == list(MEASURES)
    model = again.model(1, "zero-one", "ndcg")
    assert values[1] == model.C


@pytest.mark.parametrize("metric", PAPER)
def test_intervals_are_quantiles_of_differences_over_the_same_redrawn_samples(
    data: ActionData, folder: Path, part: Part, metric: str
) -> None:
    experiment = ActionExperiment(data, folder / "action", PLAN)
    rng, n = np.random.default_rng(PLAN.seed), len(data.X_test)
    rows = [rng.integers(n, size=n) for _ in range(PLAN.draws)]
    differences = []
    for k in range(len(CLASSES)):
        zero_one, own = (
            experiment.model(k, loss, metric).decision_function(data.X_test) for loss in ("zero-one", metric)
        )
        truth = data.Y_test[:, k]
        differences.append([measured(metric, own[r], truth[r]) - measured(metric, zero_one[r], truth[r]) for r in rows])
    found = part.found["difference"][metric]
    for name, values in zip(CLASSES, differences, strict=True):
        np.testing.assert_allclose(found["classes"][name], np.quantile(values, [0.025, 0.975]), rtol=1e-9, atol=1e-12)
    mean = np.quantile(np.mean(differences, axis=0), [0.025, 0.975])
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", PAPER)
def test_the_papers_means_are_those_of_its_classes(metric: str) -> None:
    assert np.mean(list(PAPER[metric].values()), axis=0) == pytest.approx(PAPER_MEANS[metric], abs=1e-9)
    assert list(PAPER[metric]) == list(PAPER["ap"])


def test_a_run_that_was_cut_off_goes_on_to_the_same_document(data: ActionData, part: Part, tmp_path: Path) -> None:
    said = []

    def cut(line: str) -> None:
        said.append(line)
        if line.startswith("sea cow, ndcg loss"):
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        make_part(data, tmp_path, PLAN, cut)
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "action").glob("*.json")}
    assert sorted(path.name for path in done) == [
        *(f"00-emu-{loss}.json" for loss in ("ap", "ndcg", "zero-one")),
        "01-sea-cow-ap.json",
        "01-sea-cow-zero-one.json",
        "plan.json",
    ]
    again = make_part(data, tmp_path, PLAN, said.append)
    assert again.found == part.found
    assert again.csv == part.csv
    assert again.body == part.body
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert sum(line.startswith("emu, ap loss") for line in said) == 1


def test_results_of_another_plan_or_of_other_samples_are_refused(data: ActionData, part: Part, folder: Path) -> None:
    with pytest.raises(ValueError, match=r"another plan or of other samples \(plan.tol is .* there, 0.01 here\)"):
        make_part(data, folder, replace(PLAN, tol=1e-2), lambda line: None)
    with pytest.raises(ValueError, match=r"another plan or of other samples \(samples is .* there, abd here\)"):
        make_part(data._replace(digest="abd"), folder, PLAN, lambda line: None)


def test_classes_with_too_few_positives_are_left_out(data: ActionData, tmp_path: Path) -> None:
    few = data.Y.copy()
    few[:, 1] = np.arange(len(few)) < PLAN.folds - 1
    experiment = ActionExperiment(data._replace(Y=few), tmp_path, PLAN)
    assert (experiment.classes, experiment.left_out) == ([0, 2], ["sea cow"])
    few[:] = False
    with pytest.raises(ValueError, match="no class has 3 positives and 3 negatives in both"):
        ActionExperiment(data._replace(Y=few), tmp_path, PLAN)


def test_tables_have_our_classes_the_means_and_the_papers(part: Part) -> None:
    for metric in PAPER:
        table = measure_table(part.found, metric)
        values = [[100.0 * one[loss][metric]["test"] for loss in ("zero-one", metric)] for one in part.found["classes"]]
        means = np.mean(values, axis=0)
        assert [row[0] for row in table.rows] == [*CLASSES, "mean", "paper, mean", "ours / paper"]
        assert [row[1:3] for row in table.rows[:3]] == [[f"{value:.2f}" for value in pair] for pair in values]
        assert table.rows[3][1:4] == [f"{means[0]:.2f}", f"{means[1]:.2f}", f"{means[1] - means[0]:+.2f}"]
        assert table.rows[4][1:3] == [f"{value:.2f}" for value in PAPER_MEANS[metric]]
        assert table.rows[5][1:3] == [f"{m / p:.3f}" for m, p in zip(means, PAPER_MEANS[metric], strict=True)]
        assert {len(row) for row in table.rows} == {len(table.columns)}
    assert paper_table().title in {table.title for table in part.tables}


def test_the_papers_classes_have_its_numbers_beside_ours(part: Part) -> None:
    found = json.loads(json.dumps(part.found).replace("sea cow", "ridinghorse"))
    for name, other in zip(("emu", "yak"), ("Phoning", "usingcomputer"), strict=True):
        found = json.loads(json.dumps(found).replace(f'"{name}"', f'"{other}"'))
    table = measure_table(found, "ap")
    ours = 100.0 * found["classes"][1]["zero-one"]["ap"]["test"]
    assert table.columns[-4:] == [f"{a}, {b}" for a in ("paper", "ours / paper") for b in ("0-1 loss", "AP loss")]
    assert table.rows[1][-4:-1] == ["79.82", "83.29", f"{ours / 79.82:.3f}"]
    assert table.rows[0][-4:-2] == ["32.09", "32.63"]
    assert {len(row) for row in table.rows} == {len(table.columns)}
    means = [np.mean(pair) for pair in ((32.09, 79.82, 30.62), (32.63, 83.29, 32.05))]
    mean = next(row for row in table.rows if row[0] == "mean")
    assert mean[-4:-2] == [f"{value:.2f}" for value in means]


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ([0.01, 0.02], "AP loss is better beyond chance, as in the paper"),
        ([-0.02, -0.01], "0-1 loss is better beyond chance, unlike in the paper"),
        ([-0.02, 0.01], "within chance"),
    ],
)
def test_conclusions_follow_the_interval(part: Part, interval: list[float], said: str) -> None:
    found = deepcopy(part.found)
    found["difference"]["ap"]["mean"] = interval
    assert said in conclusions(found)[0]


@pytest.mark.parametrize(
    ("p", "said"),
    [((0.01, 0.02), "beyond chance;"), ((0.01, 0.2), "by one test only;"), ((0.1, 0.2), "within chance;")],
)
def test_conclusions_follow_the_tests(part: Part, p: tuple[float, float], said: str) -> None:
    found = deepcopy(part.found)
    found["tests"]["ndcg"]["ours"] |= {"p_t": p[0], "p_w": p[1]}
    assert said in conclusions(found)[3]


def test_a_C_at_the_end_of_its_grid_is_told(part: Part) -> None:
    found = deepcopy(part.found)
    for one in found["classes"]:
        for loss, metric in PAIRS:
            one[loss][metric]["at_edge"] = False
    assert not any("end of its grid" in line for line in conclusions(found))
    found["classes"][2]["zero-one"]["ndcg"]["at_edge"] = True
    assert conclusions(found)[-1].endswith("for yak (0-1 loss by NDCG).")


def test_the_csv_has_a_line_a_class_loss_and_measure(part: Part) -> None:
    rows = list(csv.DictReader(io.StringIO(part.csv)))
    keys = [(row["class"], row["loss"], row["metric"]) for row in rows[:-4]]
    assert keys == [(name, *pair) for name in CLASSES for pair in PAIRS]
    for row in rows[:-4]:
        found = part.found["classes"][CLASSES.index(row["class"])][row["loss"]][row["metric"]]
        assert (float(row["C"]), float(row["test"])) == (found["C"], found["test"])
    assert [row["class"] for row in rows[-4:]] == ["mean"] * 4


def test_the_part_becomes_a_section_with_its_figure(part: Part, tmp_path: Path, page_of: Any) -> None:
    page = page_of(part)
    assert "sea cow" in page.cells
    assert (tmp_path / "action" / "differences.png").read_bytes() == part.figures["differences"].png
    assert json.loads((tmp_path / "action.json").read_text(encoding="utf-8"))["mean"] == part.found["mean"]


def test_a_name_with_a_dollar_is_drawn_as_it_is(part: Part) -> None:
    pytest.importorskip("matplotlib")
    text = json.dumps(part.found).replace("sea cow", "a$x_{$b")
    assert "a$x_{$b" in text
    assert draw(json.loads(text))["differences"].png.startswith(b"\x89PNG")


def test_without_matplotlib_a_line_says_that_there_are_no_figures(
    data: ActionData, part: Part, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankwise_lab.report.figure.have_matplotlib", lambda: False)
    plain = make_part(data, folder, PLAN, lambda line: None)
    assert plain.figures == {}
    assert plain.lines[-1].startswith("No figures")
