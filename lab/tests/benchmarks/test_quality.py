"""The benchmark of quality: splits that all see, records, numbers by hand, and its contenders."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.benchmarks import contenders
from rankwise_lab.benchmarks.contenders import BASELINES, OURS, Contender, Fitted, choose
from rankwise_lab.benchmarks.quality import Plan, Record, run, summarise
from rankwise_lab.benchmarks.tasks import Data, Task
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score


class FirstFeature:
    """Ranks by its first feature, and remembers the rows that it was shown."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def decision_function(self, X: Any, /) -> NDArray[np.float64]:
        self.seen.append(_ids(X))
        return _column(X, 0)


class Dummy:
    """A contender that remembers what it was shown, and warns twice."""

    def __init__(self, name: str, ours: bool = False) -> None:
        self.contender = Contender(name, self._fit, ours)
        self.trained: list[Any] = []
        self.tested: list[Any] = []
        self.seeds: list[int] = []

    def _fit(self, X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        for _ in range(2):
            warnings.warn("not converged", ConvergenceWarning, stacklevel=1)
        self.trained.append(X)
        self.seeds.append(seed)
        return Fitted(FirstFeature(self.tested), 2.0)


def _column(X: Any, k: int) -> NDArray[np.float64]:
    return np.asarray(X[:, [k]].todense() if sparse.issparse(X) else X[:, k]).ravel()


def _ids(X: Any) -> frozenset[float]:
    """The last column: in sparse data, which are not scaled, the numbers of the rows."""
    return frozenset(_column(X, X.shape[1] - 1).tolist())


def _data() -> Data:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(30) < 10)
    X = np.column_stack([y + rng.normal(size=30), rng.normal(size=30), np.arange(30) + 1.0])
    return Data(sparse.csr_matrix(X), y)


TASK = Task("t", _data)
PLAN = Plan(repeats=2, folds=3)


def _run(folder: Path, given: list[Task], dummies: list[Dummy], plan: Plan = PLAN, **options: Any) -> list[Record]:
    return run(given, [dummy.contender for dummy in dummies], folder, plan, n_jobs=1, **options)


def test_all_contenders_see_the_same_splits_and_no_test_row_and_are_judged_by_the_others(tmp_path: Path) -> None:
    one, two = Dummy("one"), Dummy("two")
    found = _run(tmp_path / "r", [TASK], [one, two])
    assert list(map(_ids, one.trained)) == list(map(_ids, two.trained))
    assert (one.tested, one.seeds) == (two.tested, two.seeds)
    assert len(set(one.seeds)) == len(one.trained) == 6
    X, y = _data()
    for train, test in zip(one.trained, one.tested, strict=True):
        assert _ids(train) == _ids(X) - test
    for repeat in (one.tested[:3], one.tested[3:]):
        assert frozenset().union(*repeat) == _ids(X)
    assert set(one.tested[:3]).isdisjoint(one.tested[3:])
    assert [(r.repeat, r.fold) for r in found] == [(r, f) for r in range(2) for f in range(3) for _ in range(2)]
    for record, (_, test) in zip(found[:6:2], PLAN.split(y, 0), strict=True):
        ranks = 1 + np.flatnonzero(y[test][np.argsort(-_column(X[test], 0))])
        ap = np.mean(np.arange(1, ranks.size + 1) / ranks)
        ndcg = np.sum(1 / np.log2(1 + ranks)) / np.sum(1 / np.log2(2 + np.arange(ranks.size)))
        np.testing.assert_allclose([record.ap, record.ndcg], [ap, ndcg], rtol=1e-12)
        assert (record.n, record.d, record.n_pos, record.C, record.warnings) == (30, 3, 10, 2.0, 2)
        assert record.seconds >= 0


def test_dense_features_are_scaled_by_the_training_rows(tmp_path: Path) -> None:
    X, y = _data()
    dummy = Dummy("one")
    _run(tmp_path / "r", [Task("t", lambda: Data(100 + X.toarray(), y))], [dummy])
    for part in dummy.trained:
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(part.std(axis=0), 1, rtol=1e-12)


def test_a_task_of_the_same_size_with_another_number_is_refused(tmp_path: Path) -> None:
    X, y = _data()
    other = X.copy()
    other[3, 0] += 1e-9
    _run(tmp_path / "r", [TASK], [Dummy("one")], Plan(1, 3))
    with pytest.raises(ValueError, match=r"results of other data of t \(digest is "):
        _run(tmp_path / "r", [Task("t", lambda: Data(other, y))], [Dummy("one")])


# Numbers by hand

HAND = Plan(repeats=1, folds=2)
APS = {
    "s": {"a": [0.5, 0.7], "b": [0.4, 0.4], "mine": [0.6, 0.9]},
    "t": {"a": [0.3, 0.5], "b": [0.8, 0.6], "mine": [0.5, 0.5]},
}


def _records(aps: dict[str, dict[str, list[float]]]) -> list[Record]:
    return [
        Record(task, 40, 3, 10, 0, fold, name, ap, ap / 2, 0.25, 1.0 + fold, 0)
        for task, cells in aps.items()
        for name, values in cells.items()
        for fold, ap in enumerate(values)
    ]


def _three(records: list[Record], ours: Sequence[str] = ("mine",)) -> dict[str, Any]:
    return summarise(records, [Dummy(name, name in ours).contender for name in ("a", "b", "mine")], HAND)


def test_summary_is_what_arithmetic_says() -> None:
    found = _three(_records(APS))
    assert found["ap"] == pytest.approx({"a": 0.5, "b": 0.55, "mine": 0.625})
    assert found["reference"] == "b", "the best by its mean over tasks, though a is better on one"
    assert found["ours"] == ["mine"]
    first = found["tasks"][0]
    assert (first["task"], first["n"], first["d"], first["n_pos"]) == ("s", 40, 3, 10)
    assert first["ap"] == pytest.approx({"a": 0.6, "b": 0.4, "mine": 0.75})
    assert first["ndcg"] == pytest.approx({"a": 0.3, "b": 0.2, "mine": 0.375})
    assert first["seconds"] == pytest.approx({"a": 1.5, "b": 1.5, "mine": 1.5})
    assert first["C"] == {name: [0.25, 0.25] for name in ("a", "b", "mine")}
    assert set(found["differences"]) == {"a", "mine"}
    mine = found["differences"]["mine"]
    half = stats.t.ppf(0.975, 1) * np.sqrt((1 / 2 + 1) * 0.045)  # 0.045: the variance of 0.2 and 0.5
    assert mine["tasks"]["s"] == pytest.approx({"mean": 0.35, "low": 0.35 - half, "high": 0.35 + half})
    assert mine["tasks"]["t"]["mean"] == pytest.approx(-0.2)
    half = stats.t.ppf(0.975, 1) * np.sqrt(1 / 2 * 0.55**2 / 2)  # of 0.35 and −0.2
    assert mine["overall"] == pytest.approx({"mean": 0.075, "low": 0.075 - half, "high": 0.075 + half})
    assert (mine["better"], mine["worse"]) == (0, 0)
    sure = {"a": [0.5, 0.5], "b": [0.25, 0.25], "mine": [0.75, 0.75]}  # an interval off zero
    cut_off = [r for r in _records(APS | {"u": sure}) if (r.task, r.contender, r.fold) != ("t", "a", 1)]
    found = _three(cut_off)
    assert [task["task"] for task in found["tasks"]] == ["s", "u"], "a task with a fold missing does not count"
    assert found["differences"]["mine"]["better"] == 1


# Contenders: how C is chosen, and that each ranks better than chance

ALL_CONTENDERS = (*BASELINES, *OURS)


class _OneGoodFeature:
    """Ranks perfectly with some C, else at random."""

    def __init__(self, good: bool) -> None:
        self.column = 0 if good else 1

    def fit(self, X: Any, y: NDArray[np.bool_], /) -> _OneGoodFeature:
        return self

    def decision_function(self, X: Any, /) -> NDArray[np.float64]:
        return np.asarray(X[:, self.column])


def _good_at(*good: float) -> Callable[[float, int], _OneGoodFeature]:
    return lambda C, seed: _OneGoodFeature(C in good)


Samples = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture
def one_good_feature(rng: np.random.Generator) -> Samples:
    y = np.arange(100) % 5 == 0
    return np.column_stack([y, rng.normal(size=100)]).astype(float), y


def test_the_best_C_is_chosen_and_the_smallest_of_equals(one_good_feature: Samples) -> None:
    best, found = choose(_good_at(4.0, 16.0), [64.0, 16.0, 0.25, 4.0, 1.0], *one_good_feature, 0)
    assert best == 4.0
    assert list(found) == [0.25, 1.0, 4.0, 16.0, 64.0]
    assert found[4.0] == found[16.0] == 1.0
    assert found[0.25] == found[1.0] < contenders.GIVE_UP
    everywhere, _ = choose(_good_at(1.0, 2.0, 3.0), [3.0, 2.0, 1.0], *one_good_feature, 0)
    assert everywhere == 1.0


@pytest.fixture(scope="module")
def noisy() -> Samples:
    rng = np.random.default_rng(1)
    y = np.arange(160) % 4 == 0
    X = rng.normal(size=(160, 5))
    X[:, 0] += 1.5 * y
    X[:, 1] -= y
    return X, y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("contender", ALL_CONTENDERS, ids=lambda contender: contender.name)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_contenders_rank_better_than_chance(contender: Contender, form: Callable[[Any], Any], noisy: Samples) -> None:
    X, y = noisy
    model, C = contender.fit(form(X[:80]), y[:80], 3)
    scores = model.decision_function(form(X[80:]))
    assert scores.shape == (80,)
    if contender.name == "linear-ranker":
        assert C is None, "it has several"
    else:
        assert C is not None
        assert C > 0
    assert average_precision_score(y[80:], scores) > 0.25 + 0.2, "chance is a quarter"
