"""The benchmark behind `rankwise bench quality`: test AP of contenders on real tasks, on the same splits.

Repeated stratified folds; hyper-parameters are chosen on the training part of each. Every result is a line of a file
as soon as its fold is done, so that a run that was interrupted goes on where it stopped. A contender that fits
otherwise than it did wants a new name or a new file.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from rankwise_lab.benchmarks.contenders import Contender
from rankwise_lab.benchmarks.report import as_text, interval_cells
from rankwise_lab.benchmarks.results_file import begun, not_ours
from rankwise_lab.benchmarks.tasks import Task
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.measuring.timing import THREADS, Progress
from rankwise_lab.report.table import Table

__all__ = ["Interval", "Plan", "Record", "overall_interval", "paired_interval", "read", "run", "summarise", "table"]

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Plan:
    """How often, and how, every task is split; a repeat's splits depend on its number and the seed alone.

    benchmark: whose file of results it is.
    """

    repeats: int = 2
    folds: int = 5
    seed: int = 0
    benchmark: str = "quality"

    def split(self, y: NDArray[np.bool_], repeat: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and test rows of each fold."""
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=1000 * self.seed + repeat)
        return list(folds.split(np.zeros(y.size), y))


@dataclass(frozen=True)
class Record:
    """One contender on one fold. `seconds` include the choice of C; `warnings` counts those of all its fits."""

    task: str
    n: int
    d: int
    n_pos: int
    repeat: int
    fold: int
    contender: str
    ap: float
    ndcg: float
    C: float | None
    seconds: float
    warnings: int

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What a file holds at most one record of."""
        return self.task, self.repeat, self.fold, self.contender


def run(
    tasks: Sequence[Task],
    contenders: Sequence[Contender],
    path: Path,
    plan: Plan | None = None,
    n_jobs: int = 2,
    on_skip: Callable[[str, str], None] = lambda task, reason: None,
    progress: Progress | None = None,
) -> list[Record]:
    """Records of all contenders on all folds of the tasks at hand, those in the file at `path` taken from there.

    on_skip is told the name of each task without data, and the reason in a line.
    """
    plan = Plan() if plan is None else plan
    bar = Progress() if progress is None else progress
    done = {record.key: record for record in read(path, plan)}
    jobs = list(_jobs(tasks, contenders, plan, done, on_skip))
    bar.section(plan.benchmark.capitalize(), len(jobs))
    with path.open("a", encoding="utf-8") as file:
        for records in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
            for record in records:
                file.write(json.dumps(asdict(record), allow_nan=False) + "\n")
                done[record.key] = record
            file.flush()
            bar.step(f"{records[0].task}, repeat {records[0].repeat + 1}, fold {records[0].fold + 1}")
    bar.clear()
    names, known = {task.name for task in tasks}, {contender.name for contender in contenders}
    wanted = (r for r in done.values() if r.task in names and r.contender in known and r.repeat < plan.repeats)
    order = {task.name: i for i, task in enumerate(tasks)}
    return sorted(wanted, key=lambda r: (order[r.task], r.repeat, r.fold))


def read(path: Path, plan: Plan) -> list[Record]:
    """The records in a file of results, which is begun if it is not there; a last line cut short is taken off it."""
    lines = begun(path, {"benchmark": plan.benchmark, "folds": plan.folds, "seed": plan.seed}, "other splits")
    try:
        return [Record(**line) for line in lines]
    except TypeError:
        raise not_ours(path) from None


def _jobs(
    tasks: Sequence[Task],
    contenders: Sequence[Contender],
    plan: Plan,
    done: dict[tuple[str, int, int, str], Record],
    on_skip: Callable[[str, str], None],
) -> Iterator[Any]:
    """What is left to do, a fold at a time; a task with nothing left is not loaded."""
    before = {record.task: (record.n, record.d, record.n_pos) for record in done.values()}
    for task in tasks:
        left = {
            (repeat, fold): [c for c in contenders if (task.name, repeat, fold, c.name) not in done]
            for repeat in range(plan.repeats)
            for fold in range(plan.folds)
        }
        if not any(left.values()):
            continue
        try:
            X, y = task.data
        except MissingDataError as error:
            on_skip(task.name, str(error))
            continue
        size = (*X.shape, int(y.sum()))
        if before.get(task.name, size) != size:
            raise ValueError(f"{task.name}: (n, d, positives) is {size}, in the file {before[task.name]}: name another")
        for repeat in range(plan.repeats):
            for fold, (train, test) in enumerate(plan.split(y, repeat)):
                if left[repeat, fold]:
                    yield delayed(_evaluate)(task.name, X, y, train, test, left[repeat, fold], repeat, fold, plan)


def _evaluate(
    name: str,
    X: Any,
    y: NDArray[np.bool_],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    contenders: Sequence[Contender],
    repeat: int,
    fold: int,
    plan: Plan,
) -> list[Record]:
    """Fit each contender on the training rows, score it on the test rows."""
    X_train, X_test = X[train], X[test]
    if isinstance(X, np.ndarray):  # sparse data are left as they are
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    records = []
    for contender in contenders:
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(THREADS):
            warnings.simplefilter("always")
            model, C = contender.fit(X_train, y[train], 1000 * plan.seed + repeat * plan.folds + fold)
        seconds = time.perf_counter() - start
        scores = np.asarray(model.decision_function(X_test))
        ap = float(average_precision_score(y[test], scores))
        ndcg = float(ndcg_score(y[test][None].astype(int), scores[None]))
        n, d = X.shape
        n_pos, n_warnings = int(y.sum()), len(caught)
        records.append(Record(name, n, d, n_pos, repeat, fold, contender.name, ap, ndcg, C, seconds, n_warnings))
    return records


@dataclass(frozen=True)
class Interval:
    """A mean and the ends of its 95 % interval, None where one number is all there is."""

    mean: float
    low: float | None
    high: float | None


def paired_interval(differences: NDArray[np.float64], folds: int) -> Interval:
    """Nadeau and Bengio's corrected t: variance (1/J + n_test/n_train)·s², as training parts overlap; J differences."""
    return _t_interval(differences, 1 / differences.size + 1 / (folds - 1))


def overall_interval(differences: NDArray[np.float64]) -> Interval:
    """Student's t over tasks, one mean difference each."""
    return _t_interval(differences, 1 / differences.size)


def _t_interval(values: NDArray[np.float64], factor: float) -> Interval:
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean, None, None)
    half = float(stdtrit(values.size - 1, 0.5 + _CONFIDENCE / 2)) * math.sqrt(factor * float(values.var(ddof=1)))
    return Interval(mean, mean - half, mean + half)


def summarise(records: Collection[Record], contenders: Sequence[Contender], plan: Plan) -> dict[str, Any]:
    """Plain data: means by task and contender, and differences of AP to the best single baseline, by task and overall.

    Only tasks on which every contender has every fold count; the best baseline is that of highest mean AP over these.
    """
    names = [contender.name for contender in contenders]
    complete = plan.repeats * plan.folds
    by_task: dict[str, dict[str, list[Record]]] = {}
    for r in sorted(records, key=lambda r: (r.repeat, r.fold)):
        by_task.setdefault(r.task, {name: [] for name in names})[r.contender].append(r)
    by_task = {task: cells for task, cells in by_task.items() if all(len(c) == complete for c in cells.values())}
    ap = {n: {task: np.array([r.ap for r in cells[n]]) for task, cells in by_task.items()} for n in names}
    overall = {n: float(np.mean([values.mean() for values in ap[n].values()])) for n in names} if by_task else {}
    baselines = {c.name: overall[c.name] for c in contenders if not c.ours and overall}
    reference = max(baselines, key=baselines.__getitem__) if baselines else None
    return {
        "benchmark": "quality",
        **asdict(plan),
        "tasks": [_task_summary(task, cells) for task, cells in by_task.items()],
        "ap": overall,
        "ours": [contender.name for contender in contenders if contender.ours],
        "reference": reference,
        "differences": {
            name: _differences(ap[name], ap[reference], plan) for name in names if reference and name != reference
        },
    }


def _task_summary(task: str, cells: dict[str, list[Record]]) -> dict[str, Any]:
    first = next(iter(cells.values()))[0]
    summary: dict[str, Any] = {"task": task, "n": first.n, "d": first.d, "n_pos": first.n_pos}
    for field in ("ap", "ndcg", "seconds"):
        summary[field] = {name: float(np.mean([getattr(r, field) for r in found])) for name, found in cells.items()}
    return {**summary, "C": {name: [r.C for r in found] for name, found in cells.items()}}


def _differences(
    ours: dict[str, NDArray[np.float64]], theirs: dict[str, NDArray[np.float64]], plan: Plan
) -> dict[str, Any]:
    found = {task: paired_interval(values - theirs[task], plan.folds) for task, values in ours.items()}
    return {
        "overall": asdict(overall_interval(np.array([interval.mean for interval in found.values()]))),
        "better": sum(interval.low is not None and interval.low > 0 for interval in found.values()),
        "worse": sum(interval.high is not None and interval.high < 0 for interval in found.values()),
        "tasks": {task: asdict(interval) for task, interval in found.items()},
    }


def table(summary: dict[str, Any]) -> str:
    """The summary as text: mean test AP by task, the best marked; then differences to the best baseline."""
    if not summary["tasks"]:
        return "no task was run to its end"
    rows = []
    for task in summary["tasks"]:
        best = max(task["ap"].values())
        marked = (f"{ap:.4f}" + ("*" if ap == best else " ") for ap in task["ap"].values())
        rows.append([task["task"], task["n"], task["d"], task["n_pos"], *marked])
    rows.append(["mean over tasks", "", "", "", *(f"{ap:.4f} " for ap in summary["ap"].values())])
    tables = [Table("Mean test AP", ["task", "n", "d", "pos", *summary["ap"]], rows, totals=1)]
    names = summary["ours"] or list(summary["differences"])
    # Without a baseline there are no differences.
    tables += [_less(summary, name) for name in names if name in summary["differences"]]
    return as_text(tables)


def _less(summary: dict[str, Any], name: str) -> Table:
    found = summary["differences"][name]
    rows = [[task, *interval_cells(interval)] for task, interval in found["tasks"].items()]
    rows.append(["mean over tasks", *interval_cells(found["overall"])])
    counts = f"better on {found['better']}, worse on {found['worse']} of {len(found['tasks'])} tasks"
    title = f"{name} less {summary['reference']}, test AP: {counts}"
    return Table(title, ["task", "difference", "95 % interval"], rows, totals=1)
