"""Models that the demonstration trains: the ranker, the baseline beside it, and the structured SVMs of the paper."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise.figures import Curve, curve_of
from rankwise.linear import INTERCEPT
from rankwise.metrics import average_precision, ndcg, precision_at
from rankwise_lab.demo.fits import Certificate, Fit, Settings

__all__ = ["BASELINE", "LOSSES", "OURS", "REPEATS", "UNTUNED", "Found", "Images", "judge"]

OURS, BASELINE, UNTUNED = "LinearRanker", "LogisticRegression", "LogisticRegression, not tuned"
LOSSES = {"0-1 loss": "zero-one", "AP loss": "ap", "NDCG loss": "ndcg"}
# How often the folds of the baseline are drawn: as LinearRanker does where there are few samples.
REPEATS = 3
_BASELINE_CS = (1e-4, 1e2)


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


def judge(name: str, train: Images, test: Images, settings: Settings) -> Found:
    """The model of that name, tuned for AP by cross-validation, fitted to `train` and judged on `test`."""
    started = time.perf_counter()
    C, certificate, history = None, None, None
    if name == OURS:
        model: Any = rw.LinearRanker("ap", cv=settings.folds).fit(*train)
    elif name == BASELINE:
        model, C = _fit_baseline(train, settings)
    elif name == UNTUNED:
        model, C = _baseline().fit(*train), 1.0
    else:
        loss = LOSSES[name]
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
