"""`rankwise bench quality`: test AP of contenders on real tasks, on the same splits.

Folds are stratified and repeated; hyper-parameters are chosen on the training part of each. Results are kept in a
folder, one file per fold and contender; a stopped run resumes from there. A contender whose fit changes needs a new
name or a new folder.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rankwise.io import fingerprint
from rankwise_lab import pieces
from rankwise_lab.benchmarks.contenders import Contender
from rankwise_lab.benchmarks.tasks import Task
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.intervals import bootstrap, corrected, interval_cells, paired_tests, student
from rankwise_lab.measuring.timing import THREADS
from rankwise_lab.progress import Progress
from rankwise_lab.report.table import Table, as_text

# Bootstrap draws of the tasks, for an interval of the mean over them.
_RESAMPLES = 10_000


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """How often, and how, every task is split; the splits of a repeat depend only on its number and the seed.

    benchmark: the name of the benchmark.
    """

    repeats: int = 2
    folds: int = 5
    seed: int = 0
    benchmark: str = "quality"

    @classmethod
    def quick(cls) -> Plan:
        return cls(repeats=1)

    def settled(self) -> dict[str, Any]:
        """More repeats leave the first ones as they are."""
        return {"benchmark": self.benchmark, "folds": self.folds, "seed": self.seed}

    def split(self, y: NDArray[np.bool_], repeat: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield training and test rows of each fold."""
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=1000 * self.seed + repeat)
        return list(folds.split(np.zeros(y.size), y))


@dataclass(frozen=True)
class Record:
    """One contender on one fold. `seconds` includes the choice of C; `warnings` counts those of all its fits."""

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


def run(
    tasks: Sequence[Task],
    contenders: Sequence[Contender],
    folder: Path,
    plan: Plan | None = None,
    n_jobs: int = 2,
    on_skip: Callable[[str, str], None] = lambda task, reason: None,
    progress: Progress | None = None,
) -> list[Record]:
    """Return records of all contenders on all folds of the available tasks; finished ones are in `folder`.

    on_skip gets the name of each task without data, and the reason in one line.
    """
    plan = Plan() if plan is None else plan
    done = pieces.Pieces(folder, plan, option="--results")
    jobs = list(_jobs(tasks, contenders, plan, done, on_skip))
    done.finish(plan.benchmark.capitalize(), _evaluate, jobs, n_jobs, progress)
    names = [
        _name(task.name, *place, contender.name)
        for task in tasks
        for place in _places(plan)
        for contender in contenders
    ]
    return [done.record(name, Record) for name in names if name in done]


def _places(plan: Plan) -> Iterator[tuple[int, int]]:
    """Every repeat and fold."""
    return itertools.product(range(plan.repeats), range(plan.folds))


def _name(task: str, repeat: int, fold: int, contender: str) -> str:
    """Return the name of a piece."""
    return f"{task}-{repeat}-{fold}-{contender}"


def _jobs(
    tasks: Sequence[Task],
    contenders: Sequence[Contender],
    plan: Plan,
    done: pieces.Pieces,
    on_skip: Callable[[str, str], None],
) -> Iterator[tuple[Any, ...]]:
    """Yield unfinished work, one fold at a time; a finished task is not loaded."""
    for task in tasks:
        left = {
            place: [c for c in contenders if _name(task.name, *place, c.name) not in done] for place in _places(plan)
        }
        if not any(left.values()):
            continue
        try:
            X, y = task.data
        except MissingDataError as error:
            on_skip(task.name, str(error))
            continue
        done.agree(f"{task.name}-data", _facts(X, y), f"other data of {task.name}")
        for repeat in range(plan.repeats):
            for fold, (train, test) in enumerate(plan.split(y, repeat)):
                if left[repeat, fold]:
                    yield task.name, X, y, train, test, left[repeat, fold], repeat, fold, plan


def _facts(X: Any, y: NDArray[np.bool_]) -> dict[str, Any]:
    """Return what identifies a task's data: for sparse features and bags, a digest of their arrays."""
    arrays = {"": X} if isinstance(X, np.ndarray) else vars(X)
    own = [value for _, value in sorted(arrays.items()) if isinstance(value, np.ndarray)]
    n, d = X.shape
    return {"n": n, "d": d, "positives": int(y.sum()), "digest": fingerprint({}, [*own, y])}


def _evaluate(
    done: pieces.Pieces,
    name: str,
    X: Any,
    y: NDArray[np.bool_],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    contenders: Sequence[Contender],
    repeat: int,
    fold: int,
    plan: Plan,
) -> str:
    """Fit each contender on the training rows, score the test rows, and write the record; return the fold's label."""
    X_train, X_test = X[train], X[test]
    if isinstance(X, np.ndarray):  # sparse data are left as they are
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    n, d = X.shape
    for contender in contenders:
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(THREADS):
            warnings.simplefilter("always")
            model, C = contender.fit(X_train, y[train], 1000 * plan.seed + repeat * plan.folds + fold)
        seconds = time.perf_counter() - start
        scores = np.asarray(model.decision_function(X_test))
        ap = float(average_precision_score(y[test], scores))
        ndcg = float(ndcg_score(y[test][None].astype(int), scores[None]))
        n_pos, n_warnings = int(y.sum()), len(caught)
        record = Record(name, n, d, n_pos, repeat, fold, contender.name, ap, ndcg, C, seconds, n_warnings)
        done.write(_name(name, repeat, fold, contender.name), asdict(record))
    return f"{name}, repeat {repeat + 1}, fold {fold + 1}"


def summarise(records: Collection[Record], contenders: Sequence[Contender], plan: Plan) -> dict[str, Any]:
    """Return means by task and contender, and differences of AP to the best single baseline, by task and overall.

    Only tasks on which every contender has every fold count; the best baseline has the highest mean AP over these.
    """
    names = [contender.name for contender in contenders]
    by_task = of_whole_tasks(records, names, plan)
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


def of_whole_tasks(records: Collection[Record], names: Sequence[str], plan: Plan) -> dict[str, dict[str, list[Record]]]:
    """Return the records by task and contender, fold by fold, of tasks on which every contender has every fold."""
    found: dict[str, dict[str, list[Record]]] = {}
    for record in sorted(records, key=lambda r: (r.repeat, r.fold)):
        found.setdefault(record.task, {name: [] for name in names})[record.contender].append(record)
    whole = plan.repeats * plan.folds
    return {task: cells for task, cells in found.items() if all(len(cell) == whole for cell in cells.values())}


def _task_summary(task: str, cells: dict[str, list[Record]]) -> dict[str, Any]:
    first = next(iter(cells.values()))[0]
    summary: dict[str, Any] = {"task": task, "n": first.n, "d": first.d, "n_pos": first.n_pos}
    for field in ("ap", "ndcg", "seconds"):
        summary[field] = {name: float(np.mean([getattr(r, field) for r in found])) for name, found in cells.items()}
    return {**summary, "C": {name: [r.C for r in found] for name, found in cells.items()}}


def _differences(
    ours: dict[str, NDArray[np.float64]], theirs: dict[str, NDArray[np.float64]], plan: Plan
) -> dict[str, Any]:
    found = {task: corrected(values - theirs[task], plan.folds) for task, values in ours.items()}
    return {
        "overall": asdict(student([interval.mean for interval in found.values()])),
        "bootstrap": bootstrap(np.array([interval.mean for interval in found.values()]), _RESAMPLES),
        "wilcoxon": paired_tests([(float(theirs[t].mean()), float(ours[t].mean())) for t in found])["p_w"],
        "worst": min(found, key=lambda task: found[task].mean),
        "better": sum(interval.low is not None and interval.low > 0 for interval in found.values()),
        "worse": sum(interval.high is not None and interval.high < 0 for interval in found.values()),
        "tasks": {task: asdict(interval) for task, interval in found.items()},
    }


def table(summary: dict[str, Any]) -> str:
    """Return the summary as text: mean test AP by task, the best marked; then differences to the best baseline."""
    if not summary["tasks"]:
        return "no task is finished"
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
    counts = f"better on {found['better']}, worse on {found['worse']} of {len(found['tasks'])} tasks"
    title = f"{name} minus {summary['reference']}, test AP: {counts}"
    shown = less_table(title, "task", found["tasks"], found["overall"])
    low, high = found["bootstrap"]
    drawn = {"mean": found["overall"]["mean"], "low": low, "high": high}
    rows = [["the same, tasks resampled", *interval_cells(drawn)]]
    if found["wilcoxon"] is not None:
        rows.append(["Wilcoxon's signed-rank test over tasks", f"p = {found['wilcoxon']:.3g}", ""])
    return replace(shown, rows=[*shown.rows, *rows], totals=1 + len(rows))


def less_table(title: str, kind: str, each: Mapping[str, Any], overall: Mapping[str, Any], digits: int = 4) -> Table:
    """Make a table of differences by task or set (the kind) and of their mean, with intervals."""
    rows = [[name, *interval_cells(interval, digits)] for name, interval in each.items()]
    rows.append([f"mean over {kind}s", *interval_cells(overall, digits)])
    return Table(title, [kind, "difference", "95 % interval"], rows, totals=1)
