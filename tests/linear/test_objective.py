"""The risk is the weighted sum of its queries' hinges, and its planes touch it and lie under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rankwise as rw
from rankwise.linear.features import as_features
from rankwise.linear.objective import Objective
from rankwise.linear.task import pose
from rankwise.metrics.registry import as_loss

LOSSES = ("ap", "ndcg", "mrr", "auc", "zero-one")
RTOL = 1e-12  # of max(1, |risk|)

N, D = 120, 6
AP = as_loss("ap")


class Case:
    """Features, relevance and what else poses a risk, all drawn."""

    def __init__(self, rng: np.random.Generator, **options: Any) -> None:
        self.X, self.relevant = rng.normal(size=(N, D)), rng.random(N) < 0.35
        self.X[:, 0] += self.relevant
        self.qid = self.weight = self.rows = None
        self.scale, self.intercept = options.get("scale", 1.0), options.get("intercept", False)
        if "queries" in options:
            self.qid = rng.integers(0, options["queries"], N) * 7 - 3
            self.qid = np.sort(self.qid) if options.get("sorted") else self.qid
            ids, inverse = np.unique(self.qid, return_inverse=True)
            self.relevant[self.qid == ids[0]] = True  # a query of one class
            self.relevant[self.qid == ids[-1]] = False  # and one of the other
            if options.get("weighted"):
                self.weight = rng.choice([0.0, 0.5, 1.0, 3.0], ids.size)[inverse]
                self.weight[self.qid == ids[1]] = 2.0
        if options.get("rows"):
            self.rows = rng.choice(N, 80, replace=False)

    def objective(self, loss: Any) -> Objective:
        task = pose(self.relevant, as_loss(loss), self.qid, self.weight, self.rows, surrogate=rw.Hinge(self.scale))
        return Objective(as_features(self.X, self.intercept), task)

    def scores(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.X @ v[:D] + (v[D] if self.intercept else 0.0))

    def risk(self, v: np.ndarray, loss: Any) -> float:
        """Σ ω J, query by query."""
        scores, rows = self.scores(v), np.arange(N) if self.rows is None else self.rows
        qid = np.zeros(N, int) if self.qid is None else self.qid
        total = weights = 0.0
        for q in np.unique(qid):
            mine = rows[qid[rows] == q]
            if 0 < np.count_nonzero(self.relevant[mine]) < mine.size:
                weight = 1.0 if self.weight is None else self.weight[mine[0]]
                total += weight * rw.structured_hinge(scores[mine], self.relevant[mine], loss, scale=self.scale).value
                weights += weight
        return total / weights


CASES: dict[str, dict[str, Any]] = {
    "one query": {},
    "intercept": {"intercept": True},
    "scale": {"scale": 2.5, "intercept": True},
    "rows": {"rows": True},
    "queries": {"queries": 9},
    "queries in order": {"queries": 9, "sorted": True},
    "weighted queries": {"queries": 9, "weighted": True, "intercept": True},
    "rows of queries": {"queries": 5, "rows": True},
    "everything": {"queries": 6, "weighted": True, "rows": True, "scale": 0.4, "intercept": True},
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, rng: np.random.Generator) -> Case:
    """A test that asks for this runs once for each way to pose a risk."""
    return Case(rng, **CASES[request.param])


def points(rng: np.random.Generator, objective: Objective) -> list[np.ndarray]:
    d = objective.n_coefs
    return [np.zeros(d), *(size * rng.normal(size=d) for size in [1e-3, 0.1, 1.0, 1.0, 1.0, 30.0])]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_risk_is_the_weighted_sum_of_the_hinges_of_its_queries(
    loss: str, case: Case, rng: np.random.Generator
) -> None:
    objective = case.objective(loss)
    for v in points(rng, objective):
        expected = case.risk(v, loss)
        assert objective.evaluate(v).risk == pytest.approx(expected, abs=RTOL * max(1.0, abs(expected)))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_plane_touches_the_risk_at_its_point_and_lies_under_it_elsewhere(
    loss: str, case: Case, rng: np.random.Generator
) -> None:
    objective = case.objective(loss)
    here = points(rng, objective)
    there = [*here, *(v + 1e-3 * rng.normal(size=v.size) for v in here)]
    risks = [case.risk(v, loss) for v in there]
    for v, risk in zip(here, risks, strict=False):
        offset, normal = objective.evaluate(v).cut
        assert offset + normal @ v == pytest.approx(risk, abs=RTOL * max(1.0, risk))
        for other, above in zip(there, risks, strict=True):
            assert offset + normal @ other <= above + RTOL * max(1.0, above)


def test_weights_sum_to_one_and_only_their_ratios_matter(rng: np.random.Generator) -> None:
    case = Case(rng, queries=6, weighted=True)
    task = pose(case.relevant, AP, case.qid, case.weight)
    assert task.weights.sum() == pytest.approx(1.0)
    for factor in (1e-300, 3.0, 5e307):
        scaled = pose(case.relevant, AP, case.qid, case.weight * factor).weights
        np.testing.assert_allclose(scaled, task.weights, rtol=1e-12)
    even = pose(case.relevant, AP, case.qid, np.full(N, 4.0)).weights
    np.testing.assert_allclose(even, pose(case.relevant, AP, case.qid).weights, rtol=1e-15)


def test_calls_of_inference_are_counted_by_query(rng: np.random.Generator) -> None:
    objective = Case(rng, queries=6).objective("ap")
    objective.evaluate(np.zeros(D))
    objective.evaluate(np.ones(D))
    assert objective.clock.calls == 2 * objective.task.n_queries
    assert objective.clock.inference > 0.0
    assert objective.clock.products > 0.0


RELEVANT = np.array([True, False, True, False, True, True])
QID = np.array([1, 1, 2, 2, 3, 3])

BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "weights that differ, shuffled": (
        lambda: pose(RELEVANT, AP, [2, 1, 1, 2, 3, 3], [1, 5, 4, 1, 0, 0]),
        r"query_weight\[2\] differs",
    ),
    "weights that differ without queries": (
        lambda: pose(RELEVANT, AP, None, [1, 1, 1, 1, 1, 2]),
        r"query_weight\[5\] differs",
    ),
    "weight only on one class": (
        lambda: pose(RELEVANT, AP, QID, [0, 0, 0, 0, 1, 1]),
        "0 for every query that has both",
    ),
    "one class in every query": (lambda: pose(RELEVANT, AP, RELEVANT), "every query has only one class"),
    "no rows": (lambda: pose(RELEVANT, AP, rows=np.arange(0)), "only one class"),
    "no rows of queries": (lambda: pose(RELEVANT, AP, QID, rows=np.arange(0)), "only one class"),
    "rows of one class": (lambda: pose(RELEVANT, AP, rows=np.array([0, 2])), "only one class"),
    "too many queries, with rows": (lambda: pose(RELEVANT, AP, [1] * 9, rows=np.arange(4)), r"qid has shape \(9,\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_posed_is_refused_with_the_reason(name: str) -> None:
    action, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        action()
