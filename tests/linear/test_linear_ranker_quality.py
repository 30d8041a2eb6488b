"""What LinearRanker is for: how well it ranks what it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

import rankwise as rw


def against_logistic(seed: int) -> float:
    """Test AP less that of LogisticRegression(), on one split of a made task of some 140 positives."""
    X, y = make_classification(4000, 20, n_informative=6, weights=[0.97], flip_y=0.01, random_state=3)
    X, test, y, truth = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    models = rw.LinearRanker("ap").fit(X, y), LogisticRegression().fit(X, y)
    ours, theirs = (average_precision_score(truth, model.decision_function(test)) for model in models)
    return float(ours - theirs)


@pytest.mark.slow
def test_over_splits_it_is_level_with_a_logistic_regression_where_there_is_nothing_to_gain() -> None:
    assert abs(np.mean([against_logistic(seed) for seed in range(6)])) < 0.01
