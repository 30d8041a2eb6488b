"""Ten classes by loss: C, values and intervals computed otherwise, and tables beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce.action import MEASURES, ActionExperiment
from rankwise_lab.reproduce.action_results import PAPER, PAPER_MEANS, measure_table
from sklearn.metrics import average_precision_score, ndcg_score
from small_experiments import ACTION, CLASSES, DATA

from rankwise import RankSVM, RankSVMCV

PAIRS = [(loss, metric) for loss, metrics in MEASURES.items() for metric in metrics]


@pytest.fixture(scope="module")
def part(wholes: Any) -> Part:
    found: Part = wholes.part("action")
    return found


def measured(metric: str, scores: NDArray[Any], relevant: NDArray[np.bool_]) -> float:
    """The measure by scikit-learn."""
    if metric == "ap":
        return float(average_precision_score(relevant, scores))
    return float(ndcg_score(relevant[None].astype(float), scores[None]))


@pytest.mark.parametrize(("loss", "metric"), PAIRS)
def test_C_is_chosen_as_RankSVMCV_chooses_it(part: Part, loss: str, metric: str) -> None:
    X = DATA.X.astype(float)
    for k, one in enumerate(part.found["classes"]):
        found, Cs, y = one[loss][metric], one[loss]["Cs"], DATA.Y[:, k]
        natural = RankSVM(loss).fit(X, y).C_ / 256.0
        ends = ACTION.ends_zero_one if loss == "zero-one" else ACTION.ends
        np.testing.assert_allclose(Cs, natural * 10.0 ** np.linspace(*ends, ACTION.Cs))
        judge = RankSVMCV(loss, Cs, cv=ACTION.folds, scoring=metric, tol=ACTION.tol).fit(X, y)
        np.testing.assert_allclose(found["folds"], judge.scores_, rtol=1e-12)
        assert found["C"] == judge.C_
        assert found["cv"] == pytest.approx(judge.best_score_)
        assert found["at_edge"] == (judge.C_ in (Cs[0], Cs[-1]))
        model = RankSVM(loss, found["C"]).fit(X, y)
        value = measured(metric, model.decision_function(DATA.X_test), DATA.Y_test[:, k])
        assert found["test"] == pytest.approx(value, rel=1e-12)
        assert found["gap"] <= ACTION.tol


@pytest.mark.parametrize("metric", PAPER)
def test_intervals_are_quantiles_over_the_same_redrawn_samples(wholes: Any, part: Part, metric: str) -> None:
    experiment = ActionExperiment(DATA, wholes.folder / "action", ACTION)
    rng, n = np.random.default_rng(ACTION.seed), len(DATA.X_test)
    rows = [rng.integers(n, size=n) for _ in range(ACTION.draws)]
    differences = []
    for k in range(len(CLASSES)):
        zero_one, own = (
            experiment.model(k, loss, metric).decision_function(DATA.X_test) for loss in ("zero-one", metric)
        )
        truth = DATA.Y_test[:, k]
        differences.append([measured(metric, own[r], truth[r]) - measured(metric, zero_one[r], truth[r]) for r in rows])
    found = part.found["difference"][metric]
    for name, values in zip(CLASSES, differences, strict=True):
        np.testing.assert_allclose(found["classes"][name], np.quantile(values, [0.025, 0.975]), rtol=1e-9, atol=1e-12)
    mean = np.quantile(np.mean(differences, axis=0), [0.025, 0.975])
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9, atol=1e-12)


def test_results_of_other_samples_are_refused(part: Part, wholes: Any) -> None:
    with pytest.raises(ValueError, match=r"another plan or of other samples \(samples is .* there, abd here\)"):
        ActionExperiment(DATA._replace(digest="abd"), wholes.folder / "action", ACTION)


def test_classes_with_too_few_positives_are_left_out(tmp_path: Path) -> None:
    few = DATA.Y.copy()
    few[:, 1] = np.arange(len(few)) < ACTION.folds - 1
    experiment = ActionExperiment(DATA._replace(Y=few), tmp_path, ACTION)
    assert (experiment.classes, experiment.left_out) == ([0, 2], ["sea cow"])
    few[:] = False
    with pytest.raises(ValueError, match="no class has 3 positives and 3 negatives in both"):
        ActionExperiment(DATA._replace(Y=few), tmp_path, ACTION)


@pytest.mark.parametrize("metric", PAPER)
def test_tables_have_our_classes_the_means_and_the_papers(part: Part, metric: str) -> None:
    assert np.mean(list(PAPER[metric].values()), axis=0) == pytest.approx(PAPER_MEANS[metric], abs=1e-9)
    table = measure_table(part.found, metric)
    values = [[100.0 * one[loss][metric]["test"] for loss in ("zero-one", metric)] for one in part.found["classes"]]
    means = np.mean(values, axis=0)
    assert [row[0] for row in table.rows] == [*CLASSES, "mean", "paper, mean", "ours / paper"]
    assert [row[1:3] for row in table.rows[:3]] == [[f"{value:.2f}" for value in pair] for pair in values]
    assert table.rows[3][1:4] == [f"{means[0]:.2f}", f"{means[1]:.2f}", f"{means[1] - means[0]:+.2f}"]
    assert table.rows[4][1:3] == [f"{value:.2f}" for value in PAPER_MEANS[metric]]
    assert table.rows[5][1:3] == [f"{m / p:.3f}" for m, p in zip(means, PAPER_MEANS[metric], strict=True)]
