"""The benchmark of quality: splits that all see, records that survive, numbers by hand, the command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.benchmarks import contenders
from rankwise_lab.benchmarks.contenders import BASELINES, OURS, Contender, Fitted
from rankwise_lab.benchmarks.quality import Plan, Record, run, summarise, table
from rankwise_lab.benchmarks.tasks import Data, Task
from rankwise_lab.data.folder import MissingDataError
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

from rankwise.cli.main import main

pytestmark = pytest.mark.usefixtures("one_thread")

TIGHT = {"rtol": 1e-12, "atol": 1e-15}


# --- Runs ------------------------------------------------------------------------------------------------------------


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
    """A contender that remembers what it was shown, and fails at the fit of number `fails_at`."""

    name: str
    ours: bool = False
    column: int = 0
    fails_at: int | None = None
    trained: list[Any] = field(default_factory=list)
    tested: list[Any] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    @property
    def contender(self) -> Contender:
        return Contender(self.name, self._fit, self.ours)

    def _fit(self, X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        if len(self.trained) == self.fails_at:
            raise KeyboardInterrupt
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


def _content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


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


def test_every_piece_is_kept_before_the_next_one_begins(tmp_path: Path) -> None:
    folder, counts = tmp_path / "r", []

    def fit(X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
        counts.append(len(_records_in(folder)))
        return Fitted(FirstFeature())

    run([_task("t")], [Contender("one", fit), Contender("two", fit)], folder, Plan(1, 3), n_jobs=1)
    assert counts == [0, 1, 2, 3, 4, 5]


def test_a_run_that_was_interrupted_keeps_its_pieces_and_goes_on_with_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    one, two = Dummy("one"), Dummy("two", fails_at=4)
    with pytest.raises(KeyboardInterrupt):
        _run(folder, [_task("t")], [one, two])
    assert len(_records_in(folder)) == 4 * 2 + 1, "four whole folds, and one of the fifth"
    before = _content(folder)
    again = [Dummy("one"), Dummy("two")]
    found = _run(folder, [_task("t")], again)
    assert [len(dummy.trained) for dummy in again] == [1, 2]
    assert again[1].trained[0] == one.trained[4], "the fifth fold is the same again"
    assert before.items() <= _content(folder).items()
    places = [(repeat, fold, name) for repeat in range(2) for fold in range(3) for name in ("one", "two")]
    assert [(r.repeat, r.fold, r.contender) for r in found] == places
    assert [asdict(r) for r in found] == list(_records_in(folder).values())


# Two tasks with contenders that take no time, killed when a piece is written for the n-th time.
KILLED = """
from pathlib import Path
{dying}
sys.path.insert(0, sys.argv[2])
import test_quality as tests
tests.measured(Path("r"))
"""


def measured(folder: Path) -> list[Record]:
    return _run(folder, [_task("s"), _task("t", n=36)], [Dummy("one"), Dummy("two", column=1)], Plan(1, 3))


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_that_is_killed_goes_on_to_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dying: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before: dict[str, tuple[bytes, int]] = {}
    for writes, records in ((6, 3), (4, 7)):  # the plan and what both tasks are come first
        killed = [sys.executable, "-c", KILLED.format(dying=dying), str(writes), str(Path(__file__).parent)]
        assert subprocess.run(killed, check=False, capture_output=True).returncode == -signal.SIGKILL
        assert len(_records_in(Path("r"))) == records
        now = _content(Path("r"))
        assert before.items() <= now.items()
        before = now
    found = measured(Path("r"))
    assert before.items() <= _content(Path("r")).items()
    whole = measured(Path("w"))
    assert [replace(r, seconds=0.0) for r in found] == [replace(r, seconds=0.0) for r in whole]


def test_what_is_complete_is_neither_loaded_nor_fitted_and_only_new_contenders_run(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    first = _run(folder, [_task("t")], [Dummy("one")])
    before = _content(folder)
    idle = Dummy("one")
    assert _run(folder, [_never_loaded("t")], [idle]) == first
    assert not idle.trained
    assert _content(folder) == before
    new = Dummy("new", column=1)
    found = _run(folder, [_task("t")], [idle, new])
    assert not idle.trained
    assert len(new.trained) == 6
    assert len(found) == 12
    fewer = _run(folder, [_never_loaded("t")], [idle, new], Plan(1, 3))
    assert fewer == [record for record in found if record.repeat == 0]


def test_other_tasks_and_contenders_in_the_folder_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    _run(folder, [_task("s"), _task("t")], [Dummy("one"), Dummy("two")])
    found = _run(folder, [_never_loaded("t")], [Dummy("two")])
    assert {(record.task, record.contender) for record in found} == {("t", "two")}
    assert len(found) == 6


@pytest.mark.parametrize(
    ("plan", "told"),
    [(Plan(2, 3, seed=1), "plan.seed is 0 there, 1 here"), (Plan(2, 4), "plan.folds is 3 there, 4 here")],
    ids=["seed", "folds"],
)
def test_results_of_other_splits_are_refused_and_kept(plan: Plan, told: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    _run(folder, [_task("t")], [Dummy("one")])
    before = _content(folder)
    idle = Dummy("one")
    with pytest.raises(ValueError, match=rf"results of another plan \({told}\): name another --results"):
        _run(folder, [_task("t")], [idle], plan)
    assert not idle.trained
    assert _content(folder) == before


@pytest.mark.parametrize(
    ("options", "told"), [({"n": 33}, "n is 30 there, 33 here"), ({"n_pos": 11}, "positives is 10")]
)
def test_a_task_that_changed_in_size_is_refused(options: dict[str, int], told: str, tmp_path: Path) -> None:
    _run(tmp_path / "r", [_task("t")], [Dummy("one")], Plan(1, 3))
    with pytest.raises(ValueError, match=rf"results of other data of t \({told}.*: name another --results"):
        _run(tmp_path / "r", [_task("t", **options)], [Dummy("one")])


@pytest.mark.parametrize("form", [lambda X: X, lambda X: X.toarray()], ids=["sparse", "dense"])
def test_a_task_of_the_same_size_with_another_number_is_refused(form: Callable[[Any], Any], tmp_path: Path) -> None:
    X, y = _data()
    other = X.copy()
    other[3, 0] += 1e-9
    first, second = (Task("t", lambda kind=kind: Data(form(kind), y)) for kind in (X, other))
    _run(tmp_path / "r", [first], [Dummy("one")], Plan(1, 3))
    with pytest.raises(ValueError, match=r"results of other data of t \(digest is "):
        _run(tmp_path / "r", [second], [Dummy("one")])


def test_a_piece_of_something_else_is_refused_by_name(tmp_path: Path) -> None:
    _run(tmp_path / "r", [_task("t")], [Dummy("one")])
    (tmp_path / "r" / "t-0-1-one.json").write_text('{"ap": 1}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"t-0-1-one\.json is not a finished piece: delete it, or name another"):
        _run(tmp_path / "r", [_task("t")], [Dummy("one")])


def test_a_task_without_data_is_told_and_the_others_run(tmp_path: Path) -> None:
    def absent() -> Data:
        raise MissingDataError("no file: fetch it")

    told: list[tuple[str, str]] = []
    given = [Task("gone", absent), _task("t")]
    found = _run(tmp_path / "r", given, [Dummy("one")], on_skip=lambda *what: told.append(what))
    assert told == [("gone", "no file: fetch it")]
    assert {record.task for record in found} == {"t"}
    assert [task["task"] for task in summarise(found, [Dummy("one").contender], PLAN)["tasks"]] == ["t"]


@pytest.mark.distributed
def test_folds_in_processes_of_their_own_find_the_same(tmp_path: Path) -> None:
    plan, fits = Plan(1, 2), BASELINES[:1]
    alone, apart = (run([_task("t")], fits, tmp_path / f"{jobs}", plan, n_jobs=jobs) for jobs in (1, 2))
    assert [replace(r, seconds=0.0) for r in alone] == [replace(r, seconds=0.0) for r in apart]
    assert _records_in(tmp_path / "1").keys() == _records_in(tmp_path / "2").keys()


# --- Numbers by hand -------------------------------------------------------------------------------------------------

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


def test_summary_does_not_depend_on_the_order_of_records() -> None:
    named = [Dummy(name).contender for name in ("a", "b", "mine")]
    found = summarise(_records(APS), named, HAND)
    turned = summarise(_records({t: dict(reversed(cells.items())) for t, cells in APS.items()})[::-1], named, HAND)
    assert turned["ap"] == pytest.approx(found["ap"])
    assert turned["reference"] == found["reference"]
    for name, of in found["differences"].items():
        for task, interval in of["tasks"].items():
            assert turned["differences"][name]["tasks"][task] == pytest.approx(interval)


def test_summary_is_json_even_with_nothing_in_it() -> None:
    for found in (_three(APS), _three({"s": APS["s"]}), _three({})):
        assert json.loads(json.dumps(found, allow_nan=False)) == found


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


def test_table_of_nothing_says_so() -> None:
    assert table(_three({})) == "no task is finished"


# --- Command line ----------------------------------------------------------------------------------------------------


def _unfit(X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
    raise AssertionError("fitted though nothing was left to do")


@pytest.mark.slow
def test_quick_benchmark_keeps_its_results_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results, document = tmp_path / "r", tmp_path / "q.json"
    arguments = ["bench", "quality", "--quick", "--tasks", "digits-3-of-400", "--results", str(results)]
    arguments += ["--contenders", "svc", "rank-ap"]
    assert main([*arguments, "--json", str(document)]) == 0
    printed = capsys.readouterr().out
    assert "digits-3-of-400" in printed
    assert "rank-ap minus svc" in printed
    assert "MQ2008" not in printed
    assert sorted(tmp_path.iterdir()) == [document, results]
    assert len(_records_in(results)) == 5 * 2
    written = json.loads(document.read_text(encoding="utf-8"))
    assert (written["quick"], written["repeats"], written["reference"]) == (True, 1, "svc")
    assert all(ap > 0.8 for ap in written["ap"].values())

    before = _content(results)
    for kind, some in {"BASELINES": BASELINES, "OURS": OURS}.items():
        monkeypatch.setattr(contenders, kind, tuple(Contender(one.name, _unfit, one.ours) for one in some))
    assert main(arguments) == 0
    assert capsys.readouterr().out == printed
    assert _content(results) == before
    assert main([*arguments, "--seed", "1"]) == 2
    assert "results of another plan (plan.seed is 0 there, 1 here): name another --results" in capsys.readouterr().err


def test_what_has_no_data_is_left_out_with_the_reason_and_exit_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "nothing"))
    document = tmp_path / "q.json"
    arguments = ["--tasks", "w8a-12000", "mq2008", "--results", str(tmp_path / "r"), "--json", str(document)]
    assert main(["bench", "quality", *arguments]) == 0
    printed = capsys.readouterr().out
    for name in ("w8a-12000", "mq2008"):
        (line,) = (line for line in printed.splitlines() if line.startswith(f"{name}: left out, "))
        assert "set RANKWISE_DATA" in line
    assert "no task is finished" in printed
    assert json.loads(document.read_text(encoding="utf-8"))["tasks"] == []


def test_a_file_for_results_and_one_place_for_both_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.jsonl").write_text("kept\n", encoding="utf-8")
    assert main(["bench", "quality", "--quick", "--results", "r.jsonl"]) == 2
    assert "--results r.jsonl is a file; name a folder" in capsys.readouterr().err
    assert main(["bench", "quality", "--json", "rankwise-quality"]) == 2
    assert "--json and --results cannot both be rankwise-quality" in capsys.readouterr().err
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["kept\n"]
