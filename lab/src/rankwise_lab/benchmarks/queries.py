"""The part of `rankwise bench quality` with many queries: MQ2008, fold 1, mean AP and NDCG@10 of held-out queries.

Grades of 1 and more are relevant; NDCG@10 takes 2^grade − 1. Hyper-parameters are chosen by cross-validation over
training queries; queries without a relevant document have no average precision and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from rankwise import LinearRanker, RankSVMCV
from rankwise.boosting import RankObjective, objective
from rankwise.io import read_data
from rankwise.metrics import average_precision, per_query
from rankwise_lab.data.folder import data_folder, existing
from rankwise_lab.intervals import bootstrap, interval_cells
from rankwise_lab.measuring.timing import THREADS
from rankwise_lab.report.table import Table, as_text

_FOLDS = 10
_OUTER, _REPEATS = 5, 2
_RESAMPLES = 10_000
_TREES = (25, 50, 100, 200, 400)
_POINTWISE_CS = 10.0 ** np.arange(-4.0, 3.0)
# The model that all others are compared with.
REFERENCE = "logistic"


class Split(NamedTuple):
    """Documents with grades and queries."""

    X: NDArray[np.float64]
    grades: NDArray[np.float64]
    qid: NDArray[np.int64]

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Grades of 1 and more."""
        return self.grades >= 1

    def part(self, rows: NDArray[np.int64]) -> Split:
        return Split(self.X[rows], self.grades[rows], self.qid[rows])


@dataclass(frozen=True)
class Found:
    """One model: mean AP of test queries, its difference to the reference with an interval, and mean NDCG@10."""

    model: str
    map: float
    difference: float
    low: float
    high: float
    ndcg: float


@threadpool_limits.wrap(limits=THREADS)
def run(
    quick: bool = False, on_model: Callable[[str], None] = lambda name: None, names: Collection[str] | None = None
) -> dict[str, list[Found]]:
    """Judge models trained on the training queries: on the test queries ("given"), and in folds of all queries.

    "folds" is the mean of two repeats of five folds; models that take minutes are left out of it. names: some of
    `MODELS`, to which the reference is added.
    """
    train, test = (_read(part) for part in ("train", "test"))
    given, folds = {}, {}
    for name, fit in MODELS.items():
        if (quick and name not in _QUICK) or not (names is None or name in names or name == REFERENCE):
            continue
        on_model(name)
        given[name] = _aps(fit(train), test)
        if name not in _SLOW and not quick:
            on_model(f"{name}, in folds")
            folds[name] = _in_folds(fit, _joined(train, test))
    found = {"given": [_judged(name, given) for name in given]}
    return found | ({"folds": [_judged(name, folds) for name in folds]} if folds else {})


def _aps(model: Any, split: Split) -> NDArray[np.float64]:
    """AP and NDCG@10 of each query, (2, queries); NaN where no document is relevant."""
    scores = np.asarray(model.decision_function(split.X))
    return np.stack(
        [
            per_query("ap", scores, split.relevant, split.qid)[1],
            per_query("ndcg@10", scores, split.grades, split.qid)[1],
        ]
    )


def _joined(train: Split, test: Split) -> Split:
    other = test.qid + train.qid.max() + 1  # no query is in both
    parts = ((train.X, test.X), (train.grades, test.grades), (train.qid, other))
    return Split(*(np.concatenate(part) for part in parts))


def _in_folds(fit: Callable[[Split], Any], whole: Split) -> NDArray[np.float64]:
    """AP and NDCG of each query by models that have not seen it, the mean of repeats."""
    ids = np.unique(whole.qid)
    found = np.zeros((_REPEATS, 2, ids.size))
    for repeat in range(_REPEATS):
        folds = GroupKFold(_OUTER, shuffle=True, random_state=repeat)
        for train, test in folds.split(whole.X, whole.relevant, whole.qid):
            held = whole.part(test)
            found[repeat][:, np.isin(ids, held.qid)] = _aps(fit(whole.part(train)), held)
    return np.asarray(found.mean(axis=0))


def _read(part: str) -> Split:
    path = data_folder() / "mq2008-fold1" / f"{part}.txt.gz"
    found = read_data(existing(path), n_features=46, first_index=1)
    assert found.y is not None
    assert found.qid is not None
    return Split(found.X, found.y, found.qid)


def _judged(name: str, by_query: dict[str, NDArray[np.float64]]) -> Found:
    """The difference is paired by query; its interval is by resampling queries."""
    judged = np.isfinite(by_query[name][0])
    mine, theirs = by_query[name][0, judged], by_query[REFERENCE][0, judged]
    low, high = bootstrap(mine - theirs, _RESAMPLES)
    gain = float(np.nanmean(by_query[name][1]))
    return Found(name, float(mine.mean()), float((mine - theirs).mean()), low, high, gain)


def _pointwise(make: Callable[[float], Any], train: Split) -> Any:
    """Fit a classifier of documents, with C chosen by mean AP over folds of queries."""
    folds = list(GroupKFold(_FOLDS, shuffle=True, random_state=0).split(train.X, train.relevant, train.qid))
    y = train.relevant

    def score(C: float) -> float:
        found = []
        for fit, held in folds:
            scores = make(C).fit(train.X[fit], y[fit]).decision_function(train.X[held])
            found.append(average_precision(scores, y[held], qid=train.qid[held]))
        return float(np.mean(found))

    best = max(_POINTWISE_CS, key=score)
    return make(best).fit(train.X, y)


def _rank_svm(loss: str, train: Split) -> Any:
    return RankSVMCV(loss, cv=_FOLDS, scoring="ap").fit(train.X, train.relevant, qid=train.qid)


def _splines(loss: str, train: Split) -> Any:
    """The same on four tent functions of every feature."""
    tents = SplineTransformer(n_knots=4, degree=1, knots="quantile", extrapolation="constant")
    model = RankSVMCV(loss, Cs=8, cv=_FOLDS, scoring="ap", tol=3e-3)
    return make_pipeline(tents, StandardScaler(with_std=False), model).fit(
        train.X, train.relevant, ranksvmcv__qid=train.qid
    )


def _linear_ranker(metric: str, graded: bool, train: Split) -> Any:
    return LinearRanker(metric).fit(train.X, train.grades if graded else train.relevant, qid=train.qid)


# From documents and a number of trees to scores.
Predict = Callable[[Any, int], Any]


class _Boosted:
    """Fit trees with a library's own objective or ours; leaves, rate and number are chosen in folds of queries."""

    def __init__(self, library: str, chosen: str | RankObjective, train: Split) -> None:
        begin: Callable[..., Predict] = partial({"LightGBM": _lightgbm, "XGBoost": _xgboost}[library], chosen)
        folds = list(GroupKFold(_OUTER, shuffle=True, random_state=0).split(train.X, train.relevant, train.qid))

        def curve(setting: tuple[int, float]) -> NDArray[np.float64]:
            """Return NDCG@10 on the left-out queries by number of trees, the mean over folds."""
            found = []
            for fit, held in folds:
                predict, left = begin(setting, train.part(fit), _TREES[-1]), train.part(held)
                scores = [predict(left.X, n) for n in _TREES]
                found.append([np.nanmean(per_query("ndcg@10", s, left.grades, left.qid)[1]) for s in scores])
            return np.asarray(np.mean(found, axis=0))

        curves = {(leaves, rate): curve((leaves, rate)) for leaves in (7, 15, 31) for rate in (0.03, 0.1)}
        best = max(curves, key=lambda setting: float(curves[setting].max()))
        self._n_trees = _TREES[int(np.argmax(curves[best]))]
        self._predict = begin(best, train, self._n_trees)

    def decision_function(self, X: Any, /) -> NDArray[np.float64]:
        return np.asarray(self._predict(X, self._n_trees))


def _lightgbm(chosen: str | RankObjective, setting: tuple[int, float], train: Split, n_trees: int) -> Predict:
    import lightgbm

    order = np.argsort(train.qid, kind="stable")
    _, sizes = np.unique(train.qid, return_counts=True)
    data = lightgbm.Dataset(train.X[order], train.grades[order], group=sizes)
    fixed = {"objective": chosen, "num_threads": THREADS, "verbose": -1, "seed": 0, "min_data_in_leaf": 20}
    model = lightgbm.train(fixed | {"num_leaves": setting[0], "learning_rate": setting[1]}, data, n_trees)
    return lambda X, n: model.predict(X, num_iteration=n)


def _xgboost(chosen: str | RankObjective, setting: tuple[int, float], train: Split, n_trees: int) -> Predict:
    import xgboost

    order = np.argsort(train.qid, kind="stable")
    data = xgboost.DMatrix(train.X[order], train.grades[order], qid=train.qid[order])
    grown: dict[str, Any] = {"grow_policy": "lossguide", "max_depth": 0, "nthread": THREADS, "seed": 0}
    grown |= {"max_leaves": setting[0], "learning_rate": setting[1]}
    own = isinstance(chosen, str)
    model = xgboost.train(grown | ({"objective": chosen} if own else {}), data, n_trees, obj=None if own else chosen)
    return lambda X, n: model.predict(xgboost.DMatrix(X), output_margin=True, iteration_range=(0, n))


def _trees(train: Split) -> Any:
    return HistGradientBoostingClassifier(learning_rate=0.05, max_leaf_nodes=8, random_state=0).fit(
        train.X, train.relevant
    )


_OURS: dict[str, RankObjective] = {
    "our smooth ndcg@30": objective("ndcg@30"),
    "our error-driven ap": objective("ap", "error-driven"),
    "our hinge ap": objective("ap", "hinge"),
}
_BOOSTED: dict[str, dict[str, str | RankObjective]] = {
    "LightGBM": {"lambdarank": "lambdarank", "rank_xendcg": "rank_xendcg", **_OURS},
    "XGBoost": {"rank:ndcg": "rank:ndcg", **_OURS},
}
MODELS: dict[str, Callable[[Split], Any]] = {
    REFERENCE: partial(_pointwise, lambda C: LogisticRegression(C=C, max_iter=5000)),
    "LinearSVC": partial(_pointwise, lambda C: LinearSVC(C=C, intercept_scaling=10.0, max_iter=10_000)),
    "gradient-boosted trees": _trees,
    "LinearRanker, map": partial(_linear_ranker, "map", False),
    "LinearRanker, map, grades": partial(_linear_ranker, "map", True),
    "LinearRanker, ndcg@10": partial(_linear_ranker, "ndcg@10", False),
    "LinearRanker, ndcg@10, grades": partial(_linear_ranker, "ndcg@10", True),
    **{
        f"{library}, {name}": partial(_Boosted, library, chosen)
        for library, objectives in _BOOSTED.items()
        if find_spec(library.lower())
        for name, chosen in objectives.items()
    },
    "RankSVM, AP": partial(_rank_svm, "ap"),
    "RankSVM, NDCG": partial(_rank_svm, "ndcg"),
    "RankSVM, AP, splines": partial(_splines, "ap"),
    "RankSVM, NDCG, splines": partial(_splines, "ndcg"),
}
_QUICK = (REFERENCE, "RankSVM, AP")
_SLOW = ("LinearSVC", "RankSVM, AP, splines", "RankSVM, NDCG, splines")


def table(found: dict[str, list[Found]]) -> str:
    """The results as text."""
    titles = {"given": "MQ2008, fold 1, test queries", "folds": "The same, all queries, 2 × 5 folds"}
    columns = ["model", "MAP", "NDCG@10", f"minus {REFERENCE}", "95 % interval over queries"]
    return as_text(Table(titles[part], columns, [_row(one) for one in models]) for part, models in found.items())


def _row(one: Found) -> list[str]:
    less = {"mean": one.difference, "low": one.low, "high": one.high}
    return [one.model, f"{one.map:.4f}", f"{one.ndcg:.4f}", *interval_cells(None if one.model == REFERENCE else less)]
