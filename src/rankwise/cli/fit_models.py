"""The models that `rankwise fit` trains, made from its arguments, and standardised features for RankSVM."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arguments import first_true

RANKER, RANK_SVM = "linear-ranker", "rank-svm"
FOLDS = 5


def is_ranker(arguments: argparse.Namespace) -> bool:
    """Whether a LinearRanker is trained; else it is a RankSVM, or with C to be chosen a RankSVMCV."""
    return bool(arguments.model == RANKER)


def estimator(arguments: argparse.Namespace) -> Any:
    """The model, to be fitted."""
    return _linear_ranker(arguments) if is_ranker(arguments) else _rank_svm(arguments)


def _linear_ranker(arguments: argparse.Namespace) -> Any:
    from rankwise.linear.linear_ranker import LinearRanker

    return LinearRanker(
        arguments.metric,
        cv=FOLDS if arguments.cv is None else arguments.cv,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        verbose=0 if arguments.quiet else 1,
    )


def _rank_svm(arguments: argparse.Namespace) -> Any:
    from rankwise.linear.rank_svm import RankSVM
    from rankwise.linear.rank_svm_cv import RankSVMCV

    common: dict[str, Any] = {
        "solver": arguments.solver,
        "method": arguments.method,
        "tol": arguments.tol,
        "max_iter": arguments.max_iter,
        "n_threads": arguments.threads,
        "random_state": arguments.seed,
        "verbose": 0 if arguments.quiet else 1,
    }
    if arguments.C is not None:
        return RankSVM(arguments.loss, arguments.C, prior=_prior(arguments.prior), **common)
    return RankSVMCV(
        arguments.loss,
        cv=FOLDS if arguments.cv is None else arguments.cv,
        scoring=arguments.scoring,
        refit="average" if arguments.refit == "average" else True,
        n_jobs=arguments.jobs,
        prior="logistic" if arguments.prior == "logistic" else None,
        **common,
    )


def _prior(name: str) -> Any:
    if name == "none":
        return None
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def standardized(X: Any, source: str) -> tuple[Any, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """X with features of deviation 1, and of mean 0 unless it is sparse; and the means and deviations."""
    from sklearn.preprocessing import StandardScaler

    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler(copy=False, with_mean=isinstance(X, np.ndarray)).fit(X)
    mean = scaler.mean_ if isinstance(X, np.ndarray) else np.zeros(X.shape[1])
    if (k := first_true(~(np.isfinite(mean) & np.isfinite(scaler.scale_)))) is not None:
        raise ValueError(f"{source}: feature {k + 1} is too large to standardize; rescale it")
    return scaler.transform(X), (mean, scaler.scale_)


def fold(model: Any, mean: NDArray[np.float64], scale: NDArray[np.float64], source: str) -> None:
    """((x − mean)/scale)·w + b as x·w′ + b′."""
    with np.errstate(over="ignore"):
        coef = model.coef_ / scale
    intercept = model.intercept_ - coef @ mean
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(f"{source}: a feature varies too little to standardize; rescale or remove it")
    model.coef_, model.intercept_ = coef, intercept
