"""Every kind of wrong input is refused with a message that says what, where and what to do; every right one works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankwise as rw

SCORES = [0.5, 2.0, -1.0, 0.25]
RELEVANT = [True, False, True, False]
CALLS: dict[str, Callable[..., Any]] = {
    "structured_hinge": rw.structured_hinge,
    "most_violating_ranking": rw.most_violating_ranking,
    "ranking_loss": rw.ranking_loss,
    "count_work": lambda **given: rw.inference.count_work(**given),
    "trace": lambda **given: rw.inference.trace(**given),
}

WRONG_SCORES: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": ([0.5, 2.0, np.nan, 0.25], ValueError, r"scores\[2\] is nan: not finite; remove or mask it"),
    "inf": ([0.5, np.inf, -1.0, 0.25], ValueError, r"scores\[1\] is inf: not finite"),
    "-inf": ([0.5, 2.0, -1.0, -np.inf], ValueError, r"scores\[3\] is -inf: not finite"),
    "float16 inf": (np.array([0, 2, -1, np.inf], np.float16), ValueError, r"scores\[3\] is inf"),
    "too large": ([0.5, 2.0, 1e308, 0.25], ValueError, r"scores\[2\] is 1e\+308: too large.*rescale"),
    "matrix": (np.zeros((4, 1)), ValueError, r"one-dimensional, got shape \(4, 1\); pass scores\.ravel\(\)"),
    "ragged": ([[0.5, 2.0], [1.0]], ValueError, r"scores is not a one-dimensional array"),
    "strings": (["a", "b", "c", "d"], TypeError, r"real numbers, got dtype <U1; convert"),
    "one string": ("abcd", TypeError, r"scores must be an array, got str"),
    "none": (None, TypeError, r"scores must be an array, got NoneType"),
    "none inside": ([0.5, None, 1.0, 2.0], TypeError, r"real numbers, got dtype object"),
    "masked": (np.ma.array(SCORES, mask=[0, 0, 1, 0]), ValueError, r"scores is masked at \(2,\); drop masked samples"),
    "too few": (SCORES[:3], ValueError, r"relevant has 4 entries and scores has 3.*equal length"),
}


WRONG_RELEVANT: dict[str, tuple[Any, type[Exception], str]] = {
    "minus one": ([1, -1, 1, -1], ValueError, r"relevant\[1\] is -1"),
    "infinite": ([0.0, 1.0, np.inf, 0.0], ValueError, r"relevant\[2\] is inf"),
    "too many": ([1, 0, 1, 0, 1], ValueError, r"relevant has 5 entries and scores has 4"),
    "matrix": (np.zeros((2, 2), bool), ValueError, r"relevant has shape \(2, 2\) and scores has 4"),
    "strings": (["1", "0", "1", "0"], TypeError, r"boolean, or 0 and 1, got dtype <U1; convert"),
    "none": (None, TypeError, r"relevant must be an array, got NoneType"),
    "none inside": ([1, None, 0, 0], TypeError, r"got dtype object"),
    "masked": (np.ma.array(RELEVANT, mask=[1, 0, 0, 0]), ValueError, r"relevant is masked at \(0,\)"),
}


WRONG_QID: dict[str, tuple[Any, type[Exception], str]] = {
    "too few": ([0, 0, 1], ValueError, r"qid has 3 entries and scores has 4.*equal length"),
    "matrix": ([[0, 0], [1, 1]], ValueError, r"qid has shape \(2, 2\)"),
    "nan": ([0.0, 0.0, np.nan, 1.0], ValueError, r"qid\[2\] is nan; every sample needs a query"),
    "mixed": (np.array([0, "a", 1, "b"], object), TypeError, r"qid\[1\] is 'a': .* all strings, got int, str"),
    "none inside": ([0, None, 1, 1], TypeError, r"qid\[1\] is None: .* all strings, got NoneType, int"),
    "dates": (np.zeros(4, "M8[s]"), TypeError, r"integers or strings, got dtype datetime64"),
    "masked": (np.ma.array([0, 0, 1, 1], mask=[0, 0, 0, 1]), ValueError, r"qid is masked at \(3,\)"),
    "beyond 64 bits": ([2**70, 2**70, 1, 1], ValueError, r"qid"),
}


WRONG = {"scores": WRONG_SCORES, "relevant": WRONG_RELEVANT, "qid": WRONG_QID}


CASES = [(call, argument, kind) for call in CALLS for argument in WRONG for kind in WRONG[argument]]
OF_QUERIES = ("structured_hinge", "ranking_loss")


@pytest.mark.parametrize(
    ("call", "argument", "kind"), [case for case in CASES if case[1] != "qid" or case[0] in OF_QUERIES]
)
def test_wrong_arguments_are_refused(call: str, argument: str, kind: str) -> None:
    wrong, error, said = WRONG[argument][kind]
    with pytest.raises(error, match=said):
        CALLS[call](**{"scores": SCORES, "relevant": RELEVANT, argument: wrong})


WRONG_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"loss": "map"}, ValueError, r"unknown loss 'map'; use one of 'ap', 'ndcg'"),
    ({"loss": 3}, TypeError, r"loss must be a name or a Loss, got int"),
    ({"method": "fast"}, ValueError, r"unknown method 'fast'; use one of 'auto', 'bucketed', 'quicksort', 'yue'"),
    ({"method": None}, ValueError, r"unknown method None"),
    ({"empty": "none"}, ValueError, r"unknown empty='none'; use one of 'zero', 'skip', 'error'"),
    ({"scale": -1.0}, ValueError, r"scale must be finite and at least 0, got -1\.0"),
    ({"scale": np.nan}, ValueError, r"scale must be finite and at least 0, got nan"),
    ({"scale": np.inf}, ValueError, r"scale must be finite and at least 0, got inf"),
    ({"scale": "1"}, TypeError, r"scale must be a number, got str"),
    ({"scale": True}, TypeError, r"scale must be a number, got bool"),
    ({"scale": None}, TypeError, r"scale must be a number, got NoneType"),
    ({"n_threads": 0}, ValueError, r"n_threads must be at least 1, or -1 for all processors, got 0"),
    ({"n_threads": -2}, ValueError, r"n_threads must be at least 1, or -1 for all processors, got -2"),
    ({"n_threads": True}, TypeError, r"n_threads must be an integer, got bool"),
    ({"n_threads": 2.0}, TypeError, r"n_threads must be an integer, got float"),
    ({"cutoff": 5}, ValueError, r"cutoff=5 works only with method='chakrabarti', not 'auto'"),
    ({"cutoff": 5, "method": "yue"}, ValueError, r"cutoff=5 works only with method='chakrabarti', not 'yue'"),
    ({"cutoff": 0, "method": "chakrabarti"}, ValueError, r"cutoff must be a whole number of places, at least 1, got 0"),
    ({"cutoff": True, "method": "chakrabarti"}, ValueError, r"cutoff must be a whole number"),
    ({"cutoff": 2.0, "method": "chakrabarti"}, ValueError, r"cutoff must be a whole number"),
]


@pytest.mark.parametrize("qid", [None, [0, 0, 1, 1]], ids=["one query", "queries"])
@pytest.mark.parametrize(("options", "error", "said"), WRONG_OPTIONS, ids=lambda value: str(value)[:40])
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception], said: str, qid: Any) -> None:
    with pytest.raises(error, match=said):
        rw.structured_hinge(SCORES, RELEVANT, qid=qid, **options)
    with pytest.raises(ValueError, match=r"unknown ties='mean'; use one of 'worst', 'best'"):
        rw.ranking_loss(SCORES, RELEVANT, qid=qid, ties="mean")


def test_no_samples_in_no_queries_are_zero() -> None:
    found = rw.structured_hinge([], [], qid=[])
    assert (found.value, found.gradient.size, found.per_query.value.size) == (0.0, 0, 0)
    assert rw.ranking_loss([], [], qid=[]) == 0.0


BASE = np.array([0.5, 2.0, -1.0, 0.25, 3.0, -2.0])
TRUTH = np.array([True, False, True, False, False, True])
RIGHT_SCORES: dict[str, tuple[Any, type]] = {
    "float64": (BASE, np.float64),
    "float32": (BASE.astype(np.float32), np.float32),
    "float16": (BASE.astype(np.float16), np.float16),
    "longdouble": (BASE.astype(np.longdouble), np.float64),
    "big-endian float64": (BASE.astype(">f8"), np.float64),
    "big-endian float32": (BASE.astype(">f4"), np.float32),
    "list": (BASE.tolist(), np.float64),
    "tuple": (tuple(BASE), np.float64),
    "strided": (np.repeat(BASE, 3)[::3], np.float64),
    "reversed": (BASE[::-1].copy()[::-1], np.float64),
    "a column": (np.stack([BASE, BASE], axis=1)[:, 1], np.float64),
    "a row of Fortran order": (np.asfortranarray(np.stack([BASE, BASE]))[0], np.float64),
    "unaligned": (np.frombuffer(b"x" + BASE.tobytes(), np.float64, offset=1), np.float64),
    "read-only": (np.frombuffer(BASE.tobytes()), np.float64),
    "pandas": (pd.Series(BASE), np.float64),
    "pandas with an index": (pd.Series(BASE, index=[5, 3, 1, 0, 2, 4]), np.float64),
    "pandas float32": (pd.Series(BASE.astype(np.float32), index=list("abcdef")), np.float32),
    "unmasked": (np.ma.array(BASE, mask=False), np.float64),
}


@pytest.mark.parametrize("kind", RIGHT_SCORES)
def test_scores_may_come_in_any_form_and_give_gradients_of_their_type(kind: str) -> None:
    scores, dtype = RIGHT_SCORES[kind]
    expected = rw.structured_hinge(BASE, TRUTH, "ndcg")
    for qid in (None, np.zeros(6, int)):
        found = rw.structured_hinge(scores, TRUTH, "ndcg", qid=qid)
        assert type(found.gradient) is np.ndarray
        assert found.gradient.dtype == dtype
        assert found.gradient.dtype.isnative
        assert found.value == pytest.approx(expected.value, rel=1e-6)
        assert np.asarray(found.gradient, float) == pytest.approx(expected.gradient, rel=float(np.finfo(dtype).eps))
    assert rw.ranking_loss(scores, TRUTH) == rw.ranking_loss(BASE, TRUTH)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, bool])
def test_whole_scores_give_float64_gradients(dtype: type) -> None:
    scores = np.array([1, 0, 1, 0, 0, 1]).astype(dtype)
    found = rw.structured_hinge(scores, [0, 1, 1, 0, 1, 0])
    expected = rw.structured_hinge(scores.astype(float), [0, 1, 1, 0, 1, 0])
    assert found.gradient.dtype == np.float64
    assert found.value == expected.value
    assert np.array_equal(found.gradient, expected.gradient)


RIGHT_RELEVANT: dict[str, Any] = {
    "list": TRUTH.tolist(),
    "int8": TRUTH.astype(np.int8),
    "uint64": TRUTH.astype(np.uint64),
    "float": TRUTH.astype(np.float32),
    "big-endian": TRUTH.astype(">i4"),
    "strided": np.repeat(TRUTH, 2)[::2],
    "read-only": np.frombuffer(TRUTH.tobytes(), bool),
    "pandas": pd.Series(TRUTH, index=[5, 3, 1, 0, 2, 4]),
    "pandas integers": pd.Series(TRUTH.astype(int)),
    "unmasked": np.ma.array(TRUTH),
}


@pytest.mark.parametrize("kind", RIGHT_RELEVANT)
def test_relevance_may_come_in_any_form(kind: str) -> None:
    found = rw.structured_hinge(BASE, RIGHT_RELEVANT[kind])
    assert np.array_equal(found.gradient, rw.structured_hinge(BASE, TRUTH).gradient)


RIGHT_QID: dict[str, Any] = {
    "integers": [3, 3, 1, 1, 3, 1],
    "uint8": np.array([3, 3, 1, 1, 3, 1], np.uint8),
    "uint64": np.array([9, 9, 1, 1, 9, 1], np.uint64) + np.uint64(2**63),
    "int objects": np.array([3, 3, 1, 1, 3, 1], object),
    "booleans": [True, True, False, False, True, False],
    "strings": list("bbaaba"),
    "bytes": [b"b", b"b", b"a", b"a", b"b", b"a"],
    "str objects": np.array(list("bbaaba"), object),
    "pandas": pd.Series(list("bbaaba"), index=range(9, 3, -1)),
}


@pytest.mark.parametrize("qid", RIGHT_QID.values(), ids=RIGHT_QID)
def test_queries_may_be_named_by_integers_or_strings(qid: Any) -> None:
    found = rw.structured_hinge(BASE, TRUTH, qid=qid)
    expected = rw.structured_hinge(BASE, TRUTH, qid=[1, 1, 0, 0, 1, 0])
    assert np.array_equal(found.gradient, expected.gradient)
    assert found.per_query.value.tolist() == expected.per_query.value.tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_more_scores_than_fit_are_refused_before_they_are_read(dtype: type) -> None:
    scores = np.broadcast_to(np.zeros(1, dtype), 2**32)
    relevant = np.broadcast_to(np.zeros(1, bool), 2**32)
    for call in (rw.structured_hinge, rw.ranking_loss):
        with pytest.raises(ValueError, match=rf"{2**32} scores, but at most {2**32 - 1} are allowed; split"):
            call(scores, relevant)
