"""`rankwise bench training`: what a fit costs, and how much of it is inference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise import RankSVM, RankSVMCV
from rankwise.metrics import LossLike
from rankwise_lab import pieces
from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_least, at_most, over
from rankwise_lab.benchmarks.tasks import w8a
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.measuring.opponents import LogarithmicNDCG
from rankwise_lab.measuring.timing import compare, fastest

# The gap at which fits stop.
_TOL = 1e-3
# Values of C for LinearSVC; the best one counts.
_SVC_CS = np.logspace(-3, 2, 11)
# Methods for the same fit, by loss: ours, then the published ones, and the target for their total time over ours.
_OURS = ("bucketed", "quicksort")
_PUBLISHED: dict[str, dict[str, tuple[LossLike, str, float | None]]] = {
    "ap": {"yue": ("ap", "yue", 10.0), "mohapatra2014": ("ap", "mohapatra2014", None)},
    "ndcg": {
        "chakrabarti": ("ndcg", "chakrabarti", 10.0),
        "chakrabarti, logarithms in the loop": (LogarithmicNDCG(), "chakrabarti", 10.0),
    },
}


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """Rows of w8a (None: all), folds to choose C by, and how often each fit is timed."""

    rows: int | None = None
    folds: int = 5
    repeats: int = 5

    @classmethod
    def quick(cls) -> Sizes:
        return cls(rows=3000, folds=2, repeats=1)


class Problem(NamedTuple):
    """w8a, and for each model the C that ranks held-out folds best."""

    X: Any
    y: NDArray[np.bool_]
    C: dict[str, float]
    svc_C: float


def _cases(rows: dict[str, Callable[[Sizes], Iterator[Row]]]) -> Callable[[Sizes], list[Case]]:
    return lambda sizes: [Case(label, partial(of, sizes)) for label, of in rows.items()]


@cache
def _problem(sizes: Sizes) -> Problem:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import LinearSVC

    X, y = w8a(sizes.rows)
    folds = StratifiedKFold(sizes.folds, shuffle=True, random_state=0)
    C = {loss: RankSVMCV(loss, cv=folds, scoring="ap", tol=_TOL).fit(X, y).C_ for loss in _PUBLISHED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a C too large to converge is not the best one
        search = GridSearchCV(LinearSVC(), {"C": _SVC_CS}, scoring="average_precision", cv=folds).fit(X, y)
    return Problem(X, y, C, float(search.best_params_["C"]))


def _fit(X: Any, y: NDArray[np.bool_], loss: LossLike, C: float, method: str = "auto") -> RankSVM:
    return RankSVM(loss, C, tol=_TOL, method=method).fit(X, y)


def _against_linear_svc(sizes: Sizes) -> Iterator[Row]:
    what = "w8a, AP, gap 1e-3: RankSVM fit over LinearSVC fit, each at its best C"
    share = "  share of the fit in inference"
    try:
        problem = _problem(sizes)
    except MissingDataError:
        yield Row(what, None, target=at_most(10))
        yield Row(share, None, "%", at_most(40))
        return
    from sklearn.svm import LinearSVC

    tasks = {
        "RankSVM": lambda: _fit(problem.X, problem.y, "ap", problem.C["ap"]),
        "LinearSVC": lambda: LinearSVC(C=problem.svc_C).fit(problem.X, problem.y),
    }
    found = compare(tasks, sizes.repeats)
    parts = {**found, "C": problem.C["ap"], "LinearSVC C": problem.svc_C}
    yield Row(what, found["RankSVM"] / found["LinearSVC"], target=at_most(10), parts=parts)
    fits = [_fit(problem.X, problem.y, "ap", problem.C["ap"]).timing_ for _ in range(sizes.repeats)]
    best = min(fits, key=lambda timing: timing["total"])
    yield Row(share, 100 * best["inference"] / best["total"], "%", at_most(40), parts=best)


def _linear_in_rows(sizes: Sizes) -> Iterator[Row]:
    what = "w8a, AP, fixed C: a fit to all rows over one to a quarter of them"
    try:
        problem = _problem(sizes)
    except MissingDataError:
        yield Row(what, None, target=at_most(6))
        return
    quarter = np.random.default_rng(0).permutation(problem.y.size)[: problem.y.size // 4]
    few, C = (problem.X[quarter], problem.y[quarter]), problem.C["ap"]
    tasks = {"all": partial(_fit, problem.X, problem.y, "ap", C), "a quarter": partial(_fit, *few, "ap", C)}
    found = compare(tasks, sizes.repeats)
    yield over(what, found, *found, target=at_most(6))


def _digits(sizes: Sizes) -> Iterator[Row]:
    from sklearn.datasets import load_digits
    from sklearn.multiclass import OneVsRestClassifier

    X, y = load_digits(return_X_y=True)
    model = OneVsRestClassifier(RankSVM("ap", C=1000.0))
    found = compare({"ten fits": lambda: model.fit(X / 16, y)}, sizes.repeats)
    yield Row("digits, AP, one against the rest: ten fits", found["ten fits"], " s", at_most(1), parts=found)


def _inference_of_a_fit(loss: str, sizes: Sizes) -> Iterator[Row]:
    """Total inference time of the same fit, by method, from the fit's own accounting."""
    name = loss.upper()
    ways = {**{method: (loss, method, None) for method in _OURS}, **_PUBLISHED[loss]}
    try:
        problem = _problem(sizes)
    except MissingDataError:
        yield Row(f"w8a, {name}: inference in a fit", None, target=at_least(10))
        return
    C = problem.C[loss]
    fits = {way: partial(_fit, problem.X, problem.y, of, C, method) for way, (of, method, _) in ways.items()}
    for fit in fits.values():  # once before, so that nothing is compiled while it is timed
        fit()
    best = fastest(fits, max(1, sizes.repeats // 2), lambda model: model.timing_["inference"])
    found = {way: model.timing_["inference"] for way, model in best.items()}
    n_pos = int(problem.y.sum())
    size = f"w8a, {name}, P = {n_pos:,}, N = {problem.y.size - n_pos:,}"
    for way in ways:
        calls = best[way].timing_["calls"]
        yield Row(f"{size}: {way}, {calls} calls", found[way], " s", parts={"calls": calls})
        yield Row("  one call", 1e3 * found[way] / calls, " ms")
    for way, (_, _, bound) in _PUBLISHED[loss].items():
        for ours in _OURS:
            target = None if bound is None else at_least(bound)
            yield Row(f"  {way} over {ours}, totals", found[way] / found[ours], target=target)
    objectives = [model.objective_ for model in best.values()]
    apart = float(np.ptp(objectives)) / min(objectives)
    yield Row("  largest relative difference of their objectives", apart, "", at_most(1e-3))


BENCHMARK = Benchmark(
    "training",
    (
        Section(
            3,
            "What a fit costs",
            _cases({"against LinearSVC": _against_linear_svc, "rows": _linear_in_rows, "digits": _digits}),
        ),
        Section(
            4,
            "Inference within a fit: published methods against ours",
            _cases({loss: partial(_inference_of_a_fit, loss) for loss in _PUBLISHED}),
        ),
    ),
    Sizes,
)
