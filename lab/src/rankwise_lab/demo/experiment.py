"""`rankwise demo`: a ranker beside a classifier on real images, and what inference costs structured SVMs."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise.linear import INTERCEPT
from rankwise.metrics import average_precision, ndcg, precision_at
from rankwise_lab.demo.results import (
    Certificate,
    Comparison,
    Data,
    Demo,
    Fit,
    Model,
    Race,
    Ranked,
    Settings,
    Shown,
    Timed,
    typical,
)
from rankwise_lab.figures import Curve, curve_of
from rankwise_lab.measuring import machine
from rankwise_lab.measuring.timing import fastest
from rankwise_lab.progress import Progress

_OURS, _BASELINE, _UNTUNED = "LinearRanker", "LogisticRegression", "LogisticRegression, not tuned"
_LOSSES = {"0-1 loss": "zero-one", "AP loss": "ap", "NDCG loss": "ndcg"}
# How often the folds of the baseline are drawn: as LinearRanker does where there are few samples.
REPEATS = 3
_BASELINE_CS = (1e-4, 1e2)
# Methods of inference, ours first. The 0-1 loss ranks nothing: it has no method of its own, and is timed to compare.
_METHODS = {
    "ap": ["bucketed", "quicksort", "mohapatra2014", "yue"],
    "ndcg": ["bucketed", "quicksort", "yue", "chakrabarti"],
    "zero-one": ["auto"],
}
# Width and height of an image, in pixels.
_SHAPE = (8, 8)


class Images(NamedTuple):
    """Samples X (n, d), and which of them are relevant (n,)."""

    X: NDArray[np.float64]
    relevant: NDArray[np.bool_]


class Found(NamedTuple):
    """A model fitted to one split, its scores of the test images, and what is drawn of it."""

    fit: Fit
    scores: NDArray[np.float64]
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
    whole = Images(pixels / 16, digits == settings.digit)
    _load_kernels(bar)
    splitter = StratifiedShuffleSplit(settings.splits, train_size=settings.train, random_state=0)
    splits = list(splitter.split(*whole))
    found: dict[str, list[Found]] = {name: [] for name in [_OURS, _BASELINE, _UNTUNED, *_LOSSES]}
    for number, (train, test) in enumerate(splits, 1):
        bar.section(f"Split {number} of {len(splits)}: {', '.join(found)}", len(found))
        for name, so_far in found.items():
            bar.step(f"split {number}: {name}")
            so_far.append(_judge(name, Images(*(a[train] for a in whole)), Images(*(a[test] for a in whole)), settings))
    models = {name: Model(name, _LOSSES.get(name), [one.fit for one in so_far]) for name, so_far in found.items()}
    shown = typical(models[_OURS].ap - models[_BASELINE].ap)
    by_loss = {model.loss: model for model in models.values()}
    races = [_race(by_loss[loss], methods, whole, settings, bar) for loss, methods in _METHODS.items()]
    bar.close()
    at = {name: so_far[shown] for name, so_far in found.items()}
    return Demo(
        settings,
        _sizes(whole, *splits[0]),
        Comparison(models[_OURS], models[_BASELINE], models[_UNTUNED], _shown(shown, splits[shown], at, whole, digits)),
        [models[name] for name in _LOSSES],
        races,
        machine.describe(),
        [at[name].curve for name in _LOSSES],
        {name: one.history for name, one in at.items() if one.history is not None},
    )


def _load_kernels(bar: Progress) -> None:
    """Have every kernel compiled, or read from disk, before anything is timed."""
    pairs = [(loss, method) for loss, methods in _METHODS.items() for method in methods]
    bar.section("Loading kernels; the first time they are compiled, which takes a while", len(pairs) + 1)
    X, relevant = np.arange(8.0)[:, None] % 3, np.arange(8) % 3 == 2
    for loss, method in pairs:
        bar.step(f"{loss}, {method}")
        rw.RankSVM(loss, 1.0, method=method).fit(X, relevant)
    bar.step(_OURS)
    rw.LinearRanker("ap", cv=2).fit(X, relevant)


def _sizes(whole: Images, train: NDArray[np.intp], test: NDArray[np.intp]) -> Data:
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


def _shown(
    number: int,
    split: tuple[NDArray[np.intp], NDArray[np.intp]],
    found: dict[str, Found],
    whole: Images,
    digits: NDArray[np.intp],
) -> Shown:
    """The test images of a split in the order of both models."""
    train, test = split
    sought = int(digits[whole.relevant][0])

    def ranked(name: str) -> Ranked:
        scores = found[name].scores
        order = np.argsort(-scores, kind="stable")
        images = test[order]
        pixels = whole.X[images].reshape(-1, *_SHAPE)
        return Ranked(scores[order], images, digits[images], pixels, sought)

    return Shown(number, train, ranked(_OURS), ranked(_BASELINE), [found[name].curve for name in (_OURS, _BASELINE)])


def _race(model: Model, methods: list[str], whole: Images, settings: Settings, bar: Progress) -> Race:
    """Train with each method in turn, several times over, and keep each one's fit with the least time in inference."""
    assert model.loss is not None
    loss, C = model.loss, float(np.median(model.Cs))
    bar.section(f"Timing inference: {model.name}", settings.fits * len(methods))

    def fit(method: str) -> rw.RankSVM:
        bar.step(f"{model.name}, {method}")
        return rw.RankSVM(loss, C, method=method, tol=settings.tol).fit(*whole)

    fits = {method: partial(fit, method) for method in methods}
    best = fastest(fits, settings.fits, lambda fitted: fitted.timing_["inference"])
    scores = best[methods[0]].decision_function(whole.X)
    return Race(model.name, loss, C, [_timed(method, one, scores, whole, loss) for method, one in best.items()])


def _timed(method: str, model: rw.RankSVM, scores: NDArray[np.float64], whole: Images, loss: str) -> Timed:
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


def _judge(name: str, train: Images, test: Images, settings: Settings) -> Found:
    """The model of that name, tuned for AP by cross-validation, fitted to `train` and judged on `test`."""
    started = time.perf_counter()
    C, certificate, history = None, None, None
    if name == _OURS:
        model: Any = rw.LinearRanker("ap", cv=settings.folds).fit(*train)
    elif name == _BASELINE:
        model, C = _fit_baseline(train, settings)
    elif name == _UNTUNED:
        model, C = _baseline().fit(*train), 1.0
    else:
        loss = _LOSSES[name]
        model = rw.RankSVMCV(loss, settings.n_Cs, cv=settings.folds, scoring="ap", tol=settings.tol).fit(*train)
        C, history, certificate = float(model.C_), model.history_, _certify(model, loss, train)
    seconds = time.perf_counter() - started
    scores = model.decision_function(test.X)
    curve = curve_of(name, scores, test.relevant)
    fit = Fit(
        C=C,
        ap=average_precision(scores, test.relevant),
        ap_sklearn=curve.ap,
        ndcg=ndcg(scores, test.relevant),
        errors=settings.first * (1.0 - precision_at(scores, test.relevant, settings.first)),
        seconds=seconds,
        certificate=certificate,
    )
    return Found(fit, scores, curve, history)


def _baseline() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000))


def _fit_baseline(train: Images, settings: Settings) -> tuple[Any, float]:
    """Logistic regression of scaled features, tuned as LinearRanker tunes itself: as many folds, as often drawn."""
    from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold

    Cs = {"logisticregression__C": np.geomspace(*_BASELINE_CS, settings.n_baseline_Cs).tolist()}
    folds = RepeatedStratifiedKFold(n_splits=settings.folds, n_repeats=REPEATS, random_state=0)
    search = GridSearchCV(_baseline(), Cs, scoring="average_precision", cv=folds).fit(*train)
    (C,) = search.best_params_.values()
    return search.best_estimator_, float(C)


def _certify(model: rw.RankSVMCV, loss: str, train: Images) -> Certificate:
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
