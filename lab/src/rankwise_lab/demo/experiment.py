"""`rankwise demo`: rankers trained for what they are judged by, on real images, and what inference costs them."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise.figures import Curve, curve_of
from rankwise.linear import INTERCEPT
from rankwise.metrics import average_precision, ndcg
from rankwise_lab.demo.results import Certificate, Data, Demo, Fit, Model, Race, Settings, Timed
from rankwise_lab.measuring import machine
from rankwise_lab.measuring.timing import fastest
from rankwise_lab.progress import Progress

__all__ = ["Demo", "Settings", "run"]

_LOSSES = {"0-1 loss": "zero-one", "AP loss": "ap", "NDCG loss": "ndcg"}
# Methods of inference, ours first. The 0-1 loss ranks nothing: it has no method of its own, and is timed to compare.
_METHODS = {
    "ap": ["bucketed", "quicksort", "mohapatra2014", "yue"],
    "ndcg": ["bucketed", "quicksort", "yue", "chakrabarti"],
    "zero-one": ["auto"],
}
_REFERENCE = "LinearSVC"
_REFERENCE_CS = (1e-3, 1e2)


class _Part(NamedTuple):
    """Samples X (n, d), and which of them are relevant (n,)."""

    X: NDArray[np.float64]
    relevant: NDArray[np.bool_]


class _Found(NamedTuple):
    """A model fitted to one split, with what is drawn of it."""

    fit: Fit
    curve: Curve
    history: dict[str, NDArray[Any]] | None


def run(settings: Settings | None = None, progress: Progress | None = None) -> Demo:
    """Train on splits of scikit-learn's digits, one of them against the rest; then time inference on all of them."""
    import matplotlib.figure  # noqa: F401  # missing: say so now, not when the page is drawn
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedShuffleSplit

    settings = Settings() if settings is None else settings
    bar = Progress() if progress is None else progress
    pixels, digits = load_digits(return_X_y=True)
    whole = _Part(pixels / 16, digits == settings.digit)
    _load_kernels(bar)
    splitter = StratifiedShuffleSplit(settings.splits, train_size=settings.train, random_state=0)
    splits = list(splitter.split(*whole))
    found: dict[str, list[_Found]] = {name: [] for name in [*_LOSSES, _REFERENCE]}
    for number, (train, test) in enumerate(splits, 1):
        bar.section(f"Split {number} of {len(splits)}: {', '.join(found)}", len(found))
        for name, so_far in found.items():
            bar.step(f"split {number}: {name}")
            so_far.append(_judge(name, _Part(*(a[train] for a in whole)), _Part(*(a[test] for a in whole)), settings))
    models = [Model(name, _LOSSES.get(name), [one.fit for one in so_far]) for name, so_far in found.items()]
    by_loss = {model.loss: model for model in models}
    races = [_race(by_loss[loss], methods, whole, settings, bar) for loss, methods in _METHODS.items()]
    bar.close()
    return Demo(
        settings,
        _sizes(whole, *splits[0]),
        models,
        races,
        machine.describe(),
        [so_far[0].curve for so_far in found.values()],
        {name: so_far[0].history for name, so_far in found.items() if so_far[0].history is not None},
    )


def _load_kernels(bar: Progress) -> None:
    """Have every kernel compiled, or read from disk, before anything is timed."""
    pairs = [(loss, method) for loss, methods in _METHODS.items() for method in methods]
    bar.section("Loading kernels; the first time they are compiled, which takes a while", len(pairs))
    X, relevant = np.arange(8.0)[:, None] % 3, np.arange(8) % 3 == 2
    for loss, method in pairs:
        bar.step(f"{loss}, {method}")
        rw.RankSVM(loss, 1.0, method=method).fit(X, relevant)


def _sizes(whole: _Part, train: NDArray[np.intp], test: NDArray[np.intp]) -> Data:
    relevant = whole.relevant
    return Data(
        n=relevant.size,
        n_pos=int(relevant.sum()),
        n_features=whole.X.shape[1],
        n_train=train.size,
        n_train_pos=int(relevant[train].sum()),
        n_test=test.size,
        n_test_pos=int(relevant[test].sum()),
    )


def _judge(name: str, train: _Part, test: _Part, settings: Settings) -> _Found:
    """The model of that name, its C chosen by cross-validation for AP, fitted to `train` and judged on `test`."""
    started = time.perf_counter()
    certificate, history = None, None
    if name == _REFERENCE:
        model, C = _fit_reference(train, settings)
    else:
        loss = _LOSSES[name]
        model = rw.RankSVMCV(loss, settings.n_Cs, cv=settings.folds, scoring="ap", tol=settings.tol).fit(*train)
        C, history, certificate = model.C_, model.history_, _certify(model, loss, train)
    seconds = time.perf_counter() - started
    scores = model.decision_function(test.X)
    curve = curve_of(name, scores, test.relevant)
    ap, gain = average_precision(scores, test.relevant), ndcg(scores, test.relevant)
    return _Found(Fit(C, ap, curve.ap, gain, seconds, certificate), curve, history)


def _fit_reference(train: _Part, settings: Settings) -> tuple[Any, float]:
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    Cs = np.geomspace(*_REFERENCE_CS, settings.n_Cs)
    search = GridSearchCV(LinearSVC(), {"C": Cs.tolist()}, scoring="average_precision", cv=settings.folds)
    search.fit(*train)
    return search.best_estimator_, float(search.best_params_["C"])


def _certify(model: rw.RankSVMCV, loss: str, train: _Part) -> Certificate:
    scores = model.decision_function(train.X)
    hinge = float(rw.structured_hinge(scores, train.relevant, loss).value)
    # The intercept is a coefficient only of the 0-1 loss; J of a ranking does not depend on it.
    learnt = np.append(model.coef_, model.intercept_ / INTERCEPT if loss == "zero-one" else 0.0)
    return Certificate(
        objective=float(model.objective_),
        dual=float(model.dual_),
        gap=float(model.gap_),
        n_iter=int(model.n_iter_),
        planes=int(model.history_["planes"][-1]),
        objective_again=float(0.5 * learnt @ learnt + model.C_ * hinge),
        hinge=hinge,
        loss=float(rw.ranking_loss(scores, train.relevant, loss)),
    )


def _race(model: Model, methods: list[str], whole: _Part, settings: Settings, bar: Progress) -> Race:
    """Train with each method in turn, several times over, and keep each one's fit with the least time in inference."""
    assert model.loss is not None
    loss, C = model.loss, float(np.median([fit.C for fit in model.fits]))
    bar.section(f"Timing inference: {model.name}", settings.fits * len(methods))

    def fit(method: str) -> rw.RankSVM:
        bar.step(f"{model.name}, {method}")
        return rw.RankSVM(loss, C, method=method, tol=settings.tol).fit(*whole)

    fits = {method: partial(fit, method) for method in methods}
    best = fastest(fits, settings.fits, lambda fitted: fitted.timing_["inference"])
    scores = best[methods[0]].decision_function(whole.X)
    return Race(model.name, loss, C, [_timed(method, one, scores, whole, loss) for method, one in best.items()])


def _timed(method: str, model: rw.RankSVM, scores: NDArray[np.float64], whole: _Part, loss: str) -> Timed:
    return Timed(
        method=method,
        calls=int(model.timing_["calls"]),
        inference=float(model.timing_["inference"]),
        total=float(model.timing_["total"]),
        objective=float(model.objective_),
        dual=float(model.dual_),
        gap=float(model.gap_),
        hinge=float(rw.structured_hinge(scores, whole.relevant, loss, method=method).value),
    )
