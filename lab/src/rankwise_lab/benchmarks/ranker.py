"""`rankwise bench ranker`: what a fit of LinearRanker costs, and what it gains."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from rankwise import LinearRanker
from rankwise_lab import pieces
from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_least, at_most, over
from rankwise_lab.benchmarks.processes import ranker_memory
from rankwise_lab.benchmarks.tasks import w8a
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.measuring.machine import growth_of
from rankwise_lab.measuring.timing import THREADS, compare, unconverged

_NOISE = (0.0, 0.01, 0.02)
_MEGABYTES = 500.0
# Bounds on data with more features than samples: of time, over the baseline; of memory beyond X, over that of X.
_WIDE_TIME, _WIDE_MEMORY = 6.0, 4.0


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """Rows of w8a (None: all), and how many times the baseline a fit may take; of a memory-mapped file; draws.

    wide: samples and features of data with more features than samples, and the filled part of them, 1 if dense.
    samples, folds: of made data, and of their cross-validation. cv: folds of LinearRanker itself.
    """

    rows: tuple[tuple[int | None, float], ...] = ((12_000, 5.0), (None, 6.0))
    wide: tuple[tuple[int, int, float], ...] = ((2000, 10_000, 1.0), (2000, 100_000, 0.01))
    mapped: int = 10**6
    seeds: int = 8
    samples: int = 4000
    folds: int = 5
    cv: int = 5
    halves: int = 10
    repeats: int = 3

    @classmethod
    def quick(cls) -> Sizes:
        wide = ((100, 200, 1.0), (100, 1000, 0.02))
        return cls(((1000, 5.0),), wide, 2000, seeds=1, samples=1500, folds=2, cv=2, halves=1, repeats=1)


def _costs(sizes: Sizes) -> list[Case]:
    """Section 1: a whole fit against LogisticRegressionCV of the same rows, one thread each, and its memory."""
    cases = [
        Case(f"w8a, {rows or 'all'} rows", partial(_over_logistic, rows, bound, sizes.repeats))
        for rows, bound in sizes.rows
    ]
    wide = [Case(f"{n:,} × {d:,}", partial(_wide, n, d, filled, sizes.repeats)) for n, d, filled in sizes.wide]
    return [*cases, *wide, Case("memory", partial(_memory, sizes.mapped))]


def _over_logistic(rows: int | None, bound: float, repeats: int) -> Iterator[Row]:
    what = f"w8a, {rows or 49_749:,} rows: LinearRanker over LogisticRegressionCV(Cs=6, cv=5)"
    try:
        X, y = w8a(rows)
    except MissingDataError:
        yield Row(what, None, target=at_most(bound))
        return
    yield over(what, _compared(X, y, repeats), "ranker", "logistic", target=at_most(bound))


def _compared(X: Any, y: NDArray[Any], repeats: int) -> dict[str, float]:
    """Seconds of a fit of LinearRanker and of the baseline, one thread each."""
    with threadpool_limits(THREADS), unconverged(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of other defaults to come
        fits = {
            "ranker": lambda: LinearRanker().fit(X, y),
            "logistic": lambda: LogisticRegressionCV(Cs=6, cv=5).fit(X, y),
        }
        return compare(fits, repeats)


def _wide(n: int, d: int, filled: float, repeats: int) -> Iterator[Row]:
    """Time and memory of a fit to data with more features than samples."""
    X, y = _wide_data(n, d, filled)
    kind, parts = ("dense", [X]) if isinstance(X, np.ndarray) else ("CSR", [X.data, X.indices, X.indptr])
    what = f"{n:,} × {d:,} {kind}:"
    found = _compared(X, y, repeats)
    yield over(
        f"{what} LinearRanker over LogisticRegressionCV(Cs=6, cv=5)",
        found,
        "ranker",
        "logistic",
        target=at_most(_WIDE_TIME),
    )
    with threadpool_limits(THREADS):
        grown = growth_of(lambda: LinearRanker().fit(X, y))
    size = sum(part.nbytes for part in parts)
    yield Row(
        f"{what} peak memory of a fit, over that of X",
        None if grown is None else grown / size,
        "",
        at_most(_WIDE_MEMORY),
    )


def _wide_data(n: int, d: int, filled: float) -> tuple[Any, NDArray[np.bool_]]:
    """Features of which a twentieth decides who is among the 7 % positives."""
    rng = np.random.default_rng(0)
    if filled == 1.0:
        X = rng.standard_normal((n, d))
    else:
        X = sparse.random(n, d, filled, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    scores = X @ (rng.standard_normal(d) * (rng.random(d) < 0.05))
    scores = scores / scores.std() + 0.3 * rng.standard_normal(n)
    return X, scores > np.quantile(scores, 0.93)


def _memory(rows: int) -> Iterator[Row]:
    """Peak memory of a fit to a memory-mapped file of float32, beyond the file."""
    found = ranker_memory(rows)
    what = f"memory-mapped {rows:,} × 100 float32: peak memory of a fit"
    yield Row(what, None if found is None else found / 1e6, " MB", at_most(_MEGABYTES))


def _gains(sizes: Sizes) -> list[Case]:
    """Section 2: test AP on rare positives with some labels wrong, against classifiers with default settings."""
    return [Case(f"flip_y {noise:g}", partial(_above_defaults, noise, sizes)) for noise in _NOISE]


def _above_defaults(noise: float, sizes: Sizes) -> Iterator[Row]:
    from sklearn.datasets import make_classification

    models = {"ranker": partial(LinearRanker, cv=sizes.cv), "logistic": LogisticRegression, "svc": LinearSVC}
    seeds, folds = range(sizes.seeds), sizes.folds
    found: dict[str, list[float]] = {name: [] for name in models}
    with threadpool_limits(THREADS), unconverged():
        for seed in seeds:
            X, y = make_classification(
                sizes.samples, 20, n_informative=6, weights=[0.97], flip_y=noise, random_state=seed
            )
            for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y):
                for name, make in models.items():
                    scores = make().fit(X[train], y[train]).decision_function(X[test])
                    found[name].append(average_precision_score(y[test], scores))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    label = f"make_classification, flip_y {noise:g}, {len(seeds)} seeds: AP, LinearRanker minus"
    yield Row(f"{label} LogisticRegression()", means["ranker"] - means["logistic"], "", at_least(0.008), parts=means)
    yield Row(f"{label} LinearSVC()", means["ranker"] - means["svc"], "", at_least(0.0), parts=means)
    ahead = {
        other: sum(
            np.mean(found["ranker"][k : k + folds]) > np.mean(found[other][k : k + folds])
            for k in range(0, len(found["ranker"]), folds)
        )
        for other in ("logistic", "svc")
    }
    yield Row(f"  seeds ahead of LogisticRegression(), of {len(seeds)}", float(ahead["logistic"]), "")
    yield Row(f"  seeds ahead of LinearSVC(), of {len(seeds)}", float(ahead["svc"]), "")


def _small(sizes: Sizes) -> list[Case]:
    """Section 3: scikit-learn's own data, random halves, against a logistic regression of scaled features."""
    return [Case(name, partial(_over_halves, name, sizes)) for name in _of_scikit_learn()]


def _of_scikit_learn() -> dict[str, Callable[[], tuple[NDArray[np.float64], NDArray[np.bool_]]]]:
    """Binary tasks that need no download, by name."""
    from sklearn import datasets

    def task(load: Callable[..., Any], is_positive: Callable[[Any], Any]) -> Any:
        def made() -> Any:
            X, y = load(return_X_y=True)
            return X, is_positive(y)

        return made

    digits = {f"digits, {k}": task(datasets.load_digits, partial(operator.eq, k)) for k in (8, 1, 3, 5, 9)}
    return digits | {
        "breast cancer": task(datasets.load_breast_cancer, partial(operator.eq, 0)),
        "diabetes above 200": task(datasets.load_diabetes, partial(operator.lt, 200)),
        "diabetes above 250": task(datasets.load_diabetes, partial(operator.lt, 250)),
        "iris, versicolor": task(datasets.load_iris, partial(operator.eq, 1)),
    }


def _over_halves(name: str, sizes: Sizes) -> Iterator[Row]:
    halves = sizes.halves
    X, y = _of_scikit_learn()[name]()
    models = {"ranker": LinearRanker(cv=sizes.cv), "logistic": make_pipeline(StandardScaler(), LogisticRegression())}
    splits = StratifiedShuffleSplit(halves, train_size=0.5, random_state=0)
    with threadpool_limits(THREADS), unconverged():
        found = {k: cross_val_score(model, X, y, cv=splits, scoring="average_precision") for k, model in models.items()}
    less = found["ranker"] - found["logistic"]
    parts = {k: float(values.mean()) for k, values in found.items()}
    parts["standard error"] = float(less.std(ddof=1) / np.sqrt(halves)) if halves > 1 else 0.0
    what = f"{name}, {int(y.sum())} of {y.size}, {halves} halves: AP, LinearRanker minus LogisticRegression()"
    yield Row(what, float(less.mean()), "", parts=parts)
    yield Row("  standard error of the difference", parts["standard error"], "")


BENCHMARK = Benchmark(
    "ranker",
    (
        Section(1, "What a fit costs", _costs),
        Section(2, "Rare positives, some labels wrong", _gains),
        Section(3, "scikit-learn's own data", _small),
    ),
    Sizes,
)
