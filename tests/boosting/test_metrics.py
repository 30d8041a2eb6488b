"""Metrics: what rankwise.metrics says, in the form that each library expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankwise import metrics
from rankwise.boosting import metric

EXACT = {"rtol": 1e-12}


@pytest.mark.parametrize("name", ["ndcg@10", "ndcg", "err", "ap", "mrr", "precision@5"])
def test_the_value_is_that_of_the_metric(name: str, train: Any, dmatrix: Any) -> None:
    scores = np.random.default_rng(0).normal(size=train.y.size)
    expected = np.nanmean(metrics.per_query(name, scores, train.y, train.qid)[1])
    found = metric(name)(train.y, scores, None, train.group)
    assert (found[0], found[2]) == (name, True), "higher is better"
    np.testing.assert_allclose(found[1], expected, **EXACT)
    assert metric(name)(scores, dmatrix(train.y, train.group)) == found[:2], "XGBoost expects a pair"
    mixed = train.in_any_order()
    order = np.random.default_rng(0).permutation(train.y.size)
    np.testing.assert_allclose(metric(name, qid=mixed.qid)(mixed.y, scores[order])[1], expected, **EXACT)


def test_data_sets_are_told_apart_by_their_lengths(train: Any, valid: Any) -> None:
    f = metric("ap", qid=[train.qid, valid.qid])
    for data in (train, valid, train):
        scores = data.X[:, 0]
        expected = metrics.average_precision(scores, data.y > 0, qid=data.qid)
        np.testing.assert_allclose(f(data.y, scores)[1], expected, **EXACT)


def test_empty_queries_and_weights_of_queries() -> None:
    y, scores, group = [1, 0, 0, 0], [2.0, 1.0, 2.0, 1.0], [2, 2]
    for empty, expected in {"skip": 1.0, "zero": 0.5, "one": 1.0}.items():
        assert metric("ap", empty=empty)(y, scores, None, group)[1] == expected
    with pytest.raises(ValueError, match="query 1 has 0 positives"):
        metric("ap", empty="error")(y, scores, None, group)
    with pytest.raises(ValueError, match="ap cannot judge any query of this data set; pass queries with labels"):
        metric("ap")([0, 0], [1.0, 2.0], None, [2])
    found = metric("ap")([1, 0, 0, 1], scores, [3.0, 3.0, 1.0, 1.0], group)[1]
    assert found == (3 * 1.0 + 1 * 0.5) / 4
