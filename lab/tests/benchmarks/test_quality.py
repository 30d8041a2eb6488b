"""The benchmark of quality: splits that all see, records that survive, numbers by hand, the command."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import content
from numpy.typing import NDArray
from rankwise_lab.benchmarks.contenders import Contender, Fitted
from rankwise_lab.benchmarks.quality import Plan, Record, run, summarise, table
from rankwise_lab.benchmarks.tasks import Data, Task
from rankwise_lab.data.folder import MissingDataError
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

TIGHT = {"rtol": 1e-12, "atol": 1e-15}


class FirstFeature:
    """Ranks by one feature."""

    def __init__(self, column: int = 0, seen: list[Any] | None = None) -> None:
        self.column, self.seen = column, seen

    def decision_function(self, X: Any, /) -> NDArray[np.float64]:
        if self.seen is not None:
            self.seen.append(_ids(X))
        return np.asarray(X[:, [self.column]].todense() if sparse.issparse(X) else X[:, self.column]).ravel()


@dataclass
class Dummy:
    """A contender that remembers what it was shown."""

    name: str
    ours: bool = False
    column: int = 0
    trained: list[Any] = field(default_factory=list)
    tested: list[Any] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    @property
    def contender(self) -> Contender:
        return Contender(self.name, self._fit, self.ours)

    def _fit(self, X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        self.trained.append(_ids(X))
        self.seeds.append(seed)
        return Fitted(FirstFeature(self.column, self.tested), None if self.column else 2.0)


def _ids(X: Any) -> tuple[float, ...]:
    """The last column: in sparse data, which are not scaled, the number of the row."""
    return tuple(np.asarray(X[:, [X.shape[1] - 1]].todense() if sparse.issparse(X) else X[:, -1]).ravel().tolist())


def _data(n: int = 30, n_pos: int = 10, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) < n_pos)
    X = np.column_stack([y + rng.normal(size=n), rng.normal(size=n), np.arange(n) + 1.0])
    return Data(sparse.csr_matrix(X), y)


def _task(name: str, **options: int) -> Task:
    return Task(name, lambda: _data(**options))


def _never_loaded(name: str) -> Task:
    def load() -> Data:
        raise AssertionError("loaded though nothing was left to do")

    return Task(name, load)


PLAN = Plan(repeats=2, folds=3)


def _run(folder: Path, given: list[Task], dummies: list[Dummy], plan: Plan = PLAN, **options: Any) -> list[Record]:
    return run(given, [dummy.contender for dummy in dummies], folder, plan, n_jobs=1, **options)


def _records_in(folder: Path) -> dict[str, dict[str, Any]]:
    """What is finished, by name."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    return {name: piece for name, piece in found.items() if "contender" in piece}


def test_all_contenders_see_the_same_splits_and_no_test_row(tmp_path: Path) -> None:
    one, two = Dummy("one"), Dummy("two", column=1)
    found = _run(tmp_path / "r", [_task("t")], [one, two])
    assert one.trained == two.trained
    assert one.tested == two.tested
    assert one.seeds == two.seeds
    assert len(set(one.seeds)) == len(one.trained) == 6
    every = set(_ids(_data().X))
    for train, test in zip(one.trained, one.tested, strict=True):
        assert set(train) == every - set(test)
    for repeat in (one.tested[:3], one.tested[3:]):
        assert set().union(*map(set, repeat)) == every
    assert set(map(frozenset, one.tested[:3])).isdisjoint(map(frozenset, one.tested[3:]))
    assert [(r.repeat, r.fold) for r in found] == [(r, f) for r in range(2) for f in range(3) for _ in range(2)]


def test_another_seed_is_another_split_and_more_repeats_keep_the_first_ones() -> None:
    y = _data().y
    (first, _), (other, _) = Plan(seed=0).split(y, 0)[0], Plan(seed=1).split(y, 0)[0]
    assert not np.array_equal(first, other)
    for (a, _), (b, _) in zip(Plan(1).split(y, 0), Plan(7).split(y, 0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_records_have_the_metrics_of_the_test_rows(tmp_path: Path) -> None:
    plan = Plan(repeats=1, folds=3)
    found = _run(tmp_path / "r", [_task("t")], [Dummy("one")], plan)
    X, y = _data()
    for record, (_, test) in zip(found, plan.split(y, 0), strict=True):
        order = np.argsort(-X.toarray()[test, 0])
        ranks = 1 + np.flatnonzero(y[test][order])
        ap = np.mean(np.arange(1, ranks.size + 1) / ranks)
        ndcg = np.sum(1 / np.log2(1 + ranks)) / np.sum(1 / np.log2(2 + np.arange(ranks.size)))
        np.testing.assert_allclose([record.ap, record.ndcg], [ap, ndcg], **TIGHT)
        assert (record.n, record.d, record.n_pos, record.C, record.warnings) == (30, 3, 10, 2.0, 0)
        assert record.seconds >= 0


def test_dense_features_are_scaled_by_the_training_rows(tmp_path: Path) -> None:
    X, y = _data()
    seen: list[NDArray[np.float64]] = []

    def fit(X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        seen.append(X)
        return Fitted(FirstFeature())

    task = Task("t", lambda: Data(100 + X.toarray(), y))
    run([task], [Contender("one", fit)], tmp_path / "r", Plan(1, 3), n_jobs=1)
    for part in seen:
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(part.std(axis=0), 1, rtol=1e-12)


def test_warnings_are_counted_and_not_shown(tmp_path: Path) -> None:
    def fit(X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        for _ in range(2):
            warnings.warn("not converged", ConvergenceWarning, stacklevel=1)
        return Fitted(FirstFeature())

    found = run([_task("t")], [Contender("one", fit)], tmp_path / "r", Plan(1, 3), n_jobs=1)
    assert [record.warnings for record in found] == [2, 2, 2]


def test_what_is_complete_is_neither_loaded_nor_fitted_and_only_new_contenders_run(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    first = _run(folder, [_task("t")], [Dummy("one")])
    before = content(folder)
    idle = Dummy("one")
    assert _run(folder, [_never_loaded("t")], [idle]) == first
    assert not idle.trained
    assert content(folder) == before
    new = Dummy("new", column=1)
    found = _run(folder, [_task("t")], [idle, new])
    assert not idle.trained
    assert len(new.trained) == 6
    assert len(found) == 12
    fewer = _run(folder, [_never_loaded("t")], [idle, new], Plan(1, 3))
    assert fewer == [record for record in found if record.repeat == 0]


@pytest.mark.parametrize("form", [lambda X: X, lambda X: X.toarray()], ids=["sparse", "dense"])
def test_a_task_of_the_same_size_with_another_number_is_refused(form: Callable[[Any], Any], tmp_path: Path) -> None:
    X, y = _data()
    other = X.copy()
    other[3, 0] += 1e-9
    first, second = (Task("t", lambda kind=kind: Data(form(kind), y)) for kind in (X, other))
    _run(tmp_path / "r", [first], [Dummy("one")], Plan(1, 3))
    with pytest.raises(ValueError, match=r"results of other data of t \(digest is "):
        _run(tmp_path / "r", [second], [Dummy("one")])


def test_a_task_without_data_is_told_and_the_others_run(tmp_path: Path) -> None:
    def absent() -> Data:
        raise MissingDataError("no file: fetch it")

    told: list[tuple[str, str]] = []
    given = [Task("gone", absent), _task("t")]
    found = _run(tmp_path / "r", given, [Dummy("one")], on_skip=lambda *what: told.append(what))
    assert told == [("gone", "no file: fetch it")]
    assert {record.task for record in found} == {"t"}
    assert [task["task"] for task in summarise(found, [Dummy("one").contender], PLAN)["tasks"]] == ["t"]


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


def _three(aps: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    named = [Dummy("a").contender, Dummy("b").contender, Dummy("mine", ours=True).contender]
    return summarise(_records(aps), named, HAND)


def test_summary_is_what_arithmetic_says() -> None:
    found = _three(APS)
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


def test_intervals_off_zero_count_as_better_or_worse() -> None:
    level = {"a": [0.5, 0.5], "b": [0.25, 0.25]}
    aps = {"s": {**level, "mine": [0.75, 0.75]}, "t": {**level, "mine": [0.25, 0.25]}, "u": {**level, "mine": [1, 1]}}
    mine = _three(aps)["differences"]["mine"]
    assert (mine["better"], mine["worse"]) == (2, 1)


def test_a_task_with_a_fold_missing_does_not_count() -> None:
    records = [record for record in _records(APS) if (record.task, record.contender, record.fold) != ("t", "a", 1)]
    named = [Dummy(name).contender for name in ("a", "b", "mine")]
    found = summarise(records, named, HAND)
    assert [task["task"] for task in found["tasks"]] == ["s"]
    assert found["ap"]["b"] == pytest.approx(0.4)


def test_table_has_every_task_the_best_marked_and_the_differences() -> None:
    lines = table(_three(APS)).splitlines()
    assert lines[0] == "Mean test AP"
    assert lines[1].split() == ["task", "n", "d", "pos", "a", "b", "mine"]
    assert lines[2].split() == ["s", "40", "3", "10", "0.6000", "0.4000", "0.7500*"]
    assert lines[3].split() == ["t", "40", "3", "10", "0.4000", "0.7000*", "0.5000"]
    assert lines[4].split() == ["mean", "over", "tasks", "0.5000", "0.5500", "0.6250"]
    assert lines[6] == "mine minus b, test AP: better on 0, worse on 0 of 2 tasks"
    assert lines[7].endswith("95 % interval")
    assert lines[8].split()[:2] == ["s", "+0.3500"]
    assert lines[9].split()[:2] == ["t", "-0.2000"]
    assert lines[10].split()[:4] == ["mean", "over", "tasks", "+0.0750"]
    assert lines[11].split() == ["the", "same,", "tasks", "resampled", "+0.0750", "[-0.2000,", "+0.3500]"]
    assert lines[12].split() == ["Wilcoxon's", "signed-rank", "test", "over", "tasks", "p", "=", "1"]
    assert len(lines) == 13


def test_table_without_ours_compares_the_baselines_and_without_baselines_nothing() -> None:
    baselines = summarise(_records(APS), [Dummy(name).contender for name in ("a", "b", "mine")], HAND)
    assert baselines["reference"] == "mine"
    assert "a minus mine" in table(baselines)
    assert "b minus mine" in table(baselines)
    alone = summarise(_records(APS), [Dummy(name, ours=True).contender for name in ("a", "b", "mine")], HAND)
    assert alone["reference"] is None
    assert "minus" not in table(alone)
    assert "0.7500*" in table(alone)
