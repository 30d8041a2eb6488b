"""Objectives: the core's gradients of any order of rows, whatever form they are called in, and clear refusals."""

from __future__ import annotations

import copy
import pickle
from inspect import signature
from typing import Any

import numpy as np
import pytest

import rankwise as rw
from rankwise.boosting import SURROGATES, objective

EXACT = {"rtol": 1e-12, "atol": 1e-14}
LOSSES = ("ap", "ndcg", "ndcg@10", "ap@20")


def core_gradient(surrogate: str, scores: Any, y: Any, loss: Any, qid: Any, width: float = 1.0) -> Any:
    """Of the sum over queries, by the core's public functions, which give means."""
    if surrogate == "hinge":
        found: Any = rw.structured_hinge(scores, y, loss, qid=qid)
    else:
        function = rw.smooth_loss if surrogate == "smooth" else rw.error_driven_loss
        found = function(scores, y, loss, qid=qid, width=width)
    return found.gradient * np.unique(qid).size


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("binary", [True, False], ids=["binary", "grades"])
def test_the_gradient_is_the_cores_of_the_sum_times_the_rows_of_a_query(
    surrogate: str, binary: bool, train: Any
) -> None:
    y = (train.y > 0).astype(float) if binary else train.y
    scores = np.random.default_rng(1).normal(size=y.size)
    for loss in ("ap", "ndcg"):
        gradient, second = objective(loss, surrogate, width=0.7)(y, scores, None, train.group)
        expected = core_gradient(surrogate, scores, y, loss, train.qid, 0.7) * y.size / train.group.size
        np.testing.assert_allclose(gradient, expected, **EXACT)
        np.testing.assert_array_equal(second, np.abs(gradient))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_under_a_cut_off_only_queries_that_it_hides_are_given_another_loss(surrogate: str, train: Any) -> None:
    scores = np.random.default_rng(2).normal(size=train.y.size)
    scores[train.qid % 3 == 0] = 0.0
    gradient = objective("ndcg@2", surrogate, width=1.0)(train.y, scores, None, train.group)[0]
    gradient *= train.group.size / train.y.size
    cut = core_gradient(surrogate, scores, train.y, "ndcg@2", train.qid)
    whole = core_gradient(surrogate, scores, train.y, rw.NDCG(gain="exp2"), train.qid)
    hidden = 0
    for q in np.unique(train.qid):
        rows = train.qid == q
        seen = cut[rows].any()
        hidden += not seen and whole[rows].any()
        np.testing.assert_allclose(gradient[rows], (cut if seen else whole)[rows], **EXACT)
    assert hidden > 0 or surrogate != "smooth"
    nothing, _ = objective("ndcg@1", surrogate)([0, 0, 2, 2, 1], np.zeros(5), None, [2, 2, 1])
    assert not nothing.any()


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_in_any_order_by_qid_are_as_rows_in_groups(surrogate: str, loss: str, train: Any) -> None:
    rng = np.random.default_rng(3)
    scores, order = rng.normal(size=train.y.size), rng.permutation(train.y.size)
    in_groups = objective(loss, surrogate)(train.y, scores, None, train.group)
    named = np.array([f"query {q}" for q in train.qid])
    mixed = objective(loss, surrogate, qid=named[order])(train.y[order], scores[order])
    for a, b in zip(in_groups, mixed, strict=True):
        np.testing.assert_allclose(a[order], b, **EXACT)


def test_all_forms_agree(train: Any, dmatrix: Any) -> None:
    scores = np.random.default_rng(4).normal(size=train.y.size)
    f = objective("ndcg@10")
    by_arrays, second = f(train.y, scores, None, train.group)
    by_data, _ = f(scores, dmatrix(train.y, train.group))
    assert second.shape == train.y.shape
    np.testing.assert_array_equal(by_arrays, by_data)
    in_single, _ = f(scores.astype(np.float32)[:, None], dmatrix(train.y, train.group))
    assert in_single.dtype == np.float32
    np.testing.assert_allclose(in_single, by_arrays, rtol=2e-3, atol=2e-5)
    assert len(signature(f).parameters) == 4, "so LightGBM hands weights and groups to it"


def test_weights_are_of_queries(train: Any, dmatrix: Any) -> None:
    rng = np.random.default_rng(5)
    scores, weight = rng.normal(size=train.y.size), rng.integers(0, 4, train.group.size).astype(float)
    plain = objective("ap")(train.y, scores, None, train.group)[0]
    by_row = objective("ap")(train.y, scores, weight[train.qid], train.group)[0]
    by_group = objective("ap")(scores, dmatrix(train.y, train.group, weight))[0]
    np.testing.assert_allclose(by_row, plain * weight[train.qid], **EXACT)
    np.testing.assert_array_equal(by_row, by_group)
    uneven = weight[train.qid]
    uneven[train.qid == 7] = np.arange(np.count_nonzero(train.qid == 7))
    with pytest.raises(ValueError, match=r"query 7 has rows with weights 0 and 1; .* the same weight"):
        objective("ap")(train.y, scores, uneven, train.group)


def test_data_sets_are_known_by_what_they_hold_and_never_taken_for_another(train: Any, valid: Any) -> None:
    f = objective("ap")
    for data in (train, valid, train):
        scores = np.random.default_rng(6).normal(size=data.y.size)
        expected = objective("ap")(data.y.copy(), scores, None, data.group)[0]
        np.testing.assert_array_equal(f(data.y.copy(), scores, None, data.group)[0], expected)
    assert len(f._data_sets._kept) == 2
    labels = train.y.copy()  # one array, whose content changes
    scores = np.random.default_rng(6).normal(size=labels.size)
    for _ in range(40):
        labels[:] = np.roll(labels, 1)
        expected = objective("ap")(labels, scores, None, train.group)[0]
        np.testing.assert_array_equal(f(labels, scores, None, train.group)[0], expected)
    assert len(f._data_sets._kept) == 16


def test_copies_and_pickles_work_and_carry_no_data(train: Any) -> None:
    f = objective("ap", qid=train.qid)
    scores = np.random.default_rng(7).normal(size=train.y.size)
    expected = f(train.y, scores)[0]
    for other in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert not other._data_sets._kept
        np.testing.assert_array_equal(other(train.y, scores)[0], expected)
    assert f._data_sets._kept


@pytest.mark.parametrize(
    ("y", "group", "qid", "match"),
    [
        ([0, 1, 2], [2], None, r"add up to the 3 rows, got a sum of 2"),
        ([0, 1, 2], [3, 0], None, r"sizes of at least 1"),
        ([0, 1, 2], None, None, r"no queries; give it group= .* or pass qid="),
        ([0, 1, 2], None, [1, 1], r"qid= has 2 rows, but this data set has 3"),
        ([0, 1, 2], [3], [1, 1, 2], r"given twice"),
        ([0, np.nan, 2], [3], None, r"label\[1\] is nan: grades must be finite and at least 0"),
        ([0, 1, -2], [3], None, r"label\[2\] is -2"),
        ([0, 1], [3], None, r"label has 2 entries and predictions has 3"),
        (None, [3], None, r"no labels"),
    ],
)
def test_what_cannot_be_ranked_is_refused_with_a_reason(y: Any, group: Any, qid: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        objective("ap", qid=qid)(y, np.zeros(3), None, group)


def test_labels_predictions_and_arguments_of_other_kinds_are_refused() -> None:
    with pytest.raises(TypeError, match="label must be real numbers or booleans"):
        objective("ap")(np.array(["a", "b"]), np.zeros(2), None, [2])
    with pytest.raises(ValueError, match=r"shape \(2, 3\); a ranking needs one score per row"):
        objective("ap")([0, 1], np.zeros((2, 3)), None, [2])
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):  # in the order of the rows, not of the queries
        objective("ap", qid=["b", "a", "b"])([0, 1, 1], [0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="unknown surrogate='logistic'; use one of 'hinge', 'smooth'"):
        objective("ap", "logistic")
    with pytest.raises(ValueError, match="cannot be smoothed"):
        objective("zero-one")
    with pytest.raises(ValueError, match="equal length"):
        objective("ap", qid=[[1, 2], [3, 4]])
    assert repr(objective("ap", "hinge")) == "rankwise.boosting.objective('ap', 'hinge')"
