"""What is compared on each task: a name and a fit; only the training part chooses hyper-parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from rankwise import LinearRanker, RankSVMCV

# C of Σ loss + |w|²/2C: factors of 4, wide enough that the best lies inside unless the curve is flat.
GRID = tuple(4.0**e for e in range(-9, 4))
INNER_FOLDS = 5
# The search goes up through the grid, and ends after two values in a row with AP below this share of the best so far.
GIVE_UP = 0.9


# From C and a seed to a scikit-learn estimator.
Make = Callable[[float, int], Any]


class Fitted(NamedTuple):
    """A model with a decision_function, and its chosen C, None if there is none to choose."""

    model: Any
    C: float | None = None


@dataclass(frozen=True)
class Contender:
    """A name and fit(X, y, seed) → Fitted; ours: False for a baseline."""

    name: str
    fit: Callable[[Any, NDArray[np.bool_], int], Fitted]
    ours: bool = False


def tuned(make: Make, grid: Sequence[float], X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
    """Fit make(C, seed), with the C of `grid` that has the best AP in cross-validation."""
    best, _ = choose(make, grid, X, y, seed)
    return Fitted(make(best, seed).fit(X, y), best)


def choose(
    make: Make, grid: Sequence[float], X: Any, y: NDArray[np.bool_], seed: int
) -> tuple[float, dict[float, float]]:
    """Return the C with the highest mean AP over stratified folds (the smallest if tied), and the mean AP of each C."""
    folds = list(StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed).split(X, y))
    parts = [(X[train], y[train], X[test], y[test]) for train, test in folds]
    found: dict[float, float] = {}
    for C in sorted(grid):
        found[C] = float(np.mean([_ap(make(C, seed), *part) for part in parts]))
        last_two = list(found.values())[-2:]
        if max(last_two) < GIVE_UP * max(found.values()):
            break
    return max(found, key=found.__getitem__), found


def _ap(model: Any, X: Any, y: NDArray[np.bool_], X_test: Any, y_test: NDArray[np.bool_]) -> float:
    model.fit(X, y)
    return float(average_precision_score(y_test, model.decision_function(X_test)))


def _svc(class_weight: str | None, intercept_scaling: float, C: float, seed: int) -> Any:
    return LinearSVC(
        C=C, class_weight=class_weight, intercept_scaling=intercept_scaling, dual="auto", random_state=seed
    )


def logistic(class_weight: str | None, C: float, seed: int) -> Any:
    """Scikit-learn's logistic regression."""
    return LogisticRegression(C=C, class_weight=class_weight, max_iter=2000, random_state=seed)


# LinearSVC penalises its intercept, which costs AP where classes are unequal in number and C is small: 10 makes the
# penalty a hundredth. With balanced weights the intercept is near 0, and the default does as well or better.
BASELINES = (
    Contender("svc", partial(tuned, partial(_svc, None, 10.0), GRID)),
    Contender("svc-balanced", partial(tuned, partial(_svc, "balanced", 1.0), GRID)),
    Contender("logistic", partial(tuned, partial(logistic, None), GRID)),
    Contender("logistic-balanced", partial(tuned, partial(logistic, "balanced"), GRID)),
)


def _rank_svm(loss: str, X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
    model = RankSVMCV(loss, cv=INNER_FOLDS, scoring="ap", random_state=seed).fit(X, y)
    return Fitted(model, model.C_)


def _linear_ranker(X: Any, y: NDArray[np.bool_], seed: int) -> Fitted:
    return Fitted(LinearRanker("ap", cv=INNER_FOLDS, random_state=seed).fit(X, y))


OURS = (
    Contender("linear-ranker", _linear_ranker, ours=True),
    Contender("rank-01", partial(_rank_svm, "zero-one"), ours=True),
    Contender("rank-ap", partial(_rank_svm, "ap"), ours=True),
    Contender("rank-ndcg", partial(_rank_svm, "ndcg"), ours=True),
)
