"""Data that are wrong: an error names the argument, the partition, and the row among all samples."""

from __future__ import annotations

import re
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from dask_problems import in_parts
from distributed import Client
from numpy.typing import NDArray
from scipy import sparse

import rankwise as rw
from rankwise.dask import DaskLinearRanker, DaskRankSVM, average_precision, structured_hinge
from rankwise.dask.collections import as_dask_array

SIZES = [50, 30, 20]
X = np.random.default_rng(0).normal(size=(100, 4))
Y = X[:, 0] > 0.5
QID = np.arange(100) // 10
ROW_60 = r"60{} \(row 10 of partition 1\) is {}"


def put(values: Any, value: Any, dtype: Any = None, at: Any = 60) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array[at] = value
    return array


def blocks(*values: Any) -> Any:
    return as_dask_array([delayed(one) for one in values], [one.shape[0] for one in values], values[0][:0])


def parts(values: Any, known: bool = True) -> Any:
    return None if values is None else in_parts(values, SIZES, known)


def frame(values: Any) -> Any:
    pieces = [values.iloc[:50], values.iloc[50:80], values.iloc[80:]]
    return dd.from_delayed([delayed(one) for one in pieces], meta=values.iloc[:0])


def one_of_another_type(values: NDArray[Any], dtype: Any) -> Any:
    return blocks(values[:50], values[50:80].astype(dtype), values[80:])


FITS = [DaskRankSVM("ap", C=1.0).fit, DaskLinearRanker("ap", cv=2).fit]
both = pytest.mark.parametrize("fit", FITS, ids=["DaskRankSVM", "DaskLinearRanker"])
functions = pytest.mark.parametrize("function", [structured_hinge, average_precision])

NOT_A_NUMBER = "features must be finite numbers; impute or encode it, or drop the sample"
LABELS = "labels must be all finite numbers or all strings; drop the sample"
STRINGS = np.where(Y, "yes", "no")
WRONG_ROWS: dict[str, tuple[tuple[Any, ...], str]] = {
    "NaN in X": ((put(X, np.nan, at=(60, 3)), Y), ROW_60.format(", 3]", "nan: " + NOT_A_NUMBER)),
    "infinity in CSR": ((sparse.csr_matrix(put(X, np.inf, at=(60, 3))), Y), ROW_60.format(", 3]", "inf: ")),
    "None in X": ((put(X, None, object, (60, 1)), Y), ROW_60.format(", 1]", "None: " + NOT_A_NUMBER)),
    "a word in X": ((put(X, "n/a", object, (60, 1)), Y), ROW_60.format(", 1]", "'n/a': " + NOT_A_NUMBER)),
    "NaN in y": ((X, put(Y, np.nan, float)), r"y\[" + ROW_60.format("]", "nan: " + LABELS)),
    "infinity in y": ((X, put(Y, -np.inf, float)), r"y\[" + ROW_60.format("]", "-inf: " + LABELS)),
    "None in words": ((X, put(STRINGS, None, object)), r"y\[" + ROW_60.format("]", "None: " + LABELS)),
    "None in y": ((X, put(Y, None, object)), r"y\[" + ROW_60.format("]", "None: " + LABELS)),
    "negative grade": ((X, put(QID % 3, -2), QID), r"y\[" + ROW_60.format("]", "-2: grades must be .* at least 0; ")),
    "NaN in qid": ((X, Y, put(QID, np.nan, float)), r"qid\[" + ROW_60.format("]", "nan; every sample needs a query")),
    "None in qid": ((X, Y, put(QID, None, object)), r"qid\[" + ROW_60.format("]", "None: qid must be all integers")),
    "NaN weight": ((X, Y, QID, put(np.ones(100), np.nan)), r"query_weight\[" + ROW_60.format("]", "nan; weights must")),
    "negative weight": ((X, Y, QID, put(np.ones(100), -1)), r"query_weight\[" + ROW_60.format("]", "-1.0; weights")),
    "weight of its own": (
        (X, Y, QID, put(np.ones(100), 2.0, at=63)),
        r"query_weight\[63\] \(row 13 of partition 1\) d",
    ),
}


@both
@pytest.mark.parametrize("case", WRONG_ROWS)
def test_a_row_of_a_fit(near_client: Client, fit: Any, case: str) -> None:
    given, expected = WRONG_ROWS[case]
    with pytest.raises((TypeError, ValueError), match=expected):
        fit(*map(parts, given))


def test_rows_are_counted_over_partitions_of_unknown_size(near_client: Client) -> None:
    with pytest.raises(ValueError, match=r"^X\[80, 0\] \(row 0 of partition 2\) is nan"):
        DaskRankSVM().fit(parts(put(X, np.nan, at=(80, 0)), False), parts(Y, False))
    with pytest.raises(ValueError, match=r"^scores\[80\] \(row 0 of partition 2\) is nan"):
        structured_hinge(parts(put(X[:, 0], np.nan, at=80), False), parts(Y, False))


def test_the_first_of_several_wrong_rows_is_named(near_client: Client) -> None:
    scores = put(X[:, 0], np.nan, at=[55, 85, 90])
    with pytest.raises(ValueError, match=r"^y\[45\] \(row 45 of partition 0\) is nan"):
        DaskRankSVM().fit(parts(scores[:, None]), parts(put(Y, np.nan, float, 45)))


@both
def test_columns_of_a_dataframe_are_named(near_client: Client, fit: Any) -> None:
    table, labels = pd.DataFrame(X, columns=list("abcd")), frame(pd.Series(Y))
    for wrong, said, dtype in ((np.nan, "nan", float), ("n/a", "'n/a'", object)):
        with pytest.raises(ValueError, match=rf"^X\[60, 'b'\] \(row 10 of partition 1\) is {said}"):
            fit(frame(table.assign(b=put(X[:, 1], wrong, dtype))), labels)
    missing = pd.array(put(X[:, 1], None, object), dtype="Float64")
    with pytest.raises(ValueError, match=r"^X\[60, 'b'\] \(row 10 of partition 1\) is "):
        fit(frame(table.assign(b=missing)), labels)
    with pytest.raises(ValueError, match=r"^y\[60\] \(row 10 of partition 1\) is <NA>"):
        fit(frame(table), frame(pd.Series(pd.array(put(STRINGS, None, object), dtype="string"))))


@functions
def test_a_row_of_vectors(near_client: Client, function: Any) -> None:
    scores = X[:, 0]
    for wrong, said in ((np.nan, "nan: not finite"), (np.inf, "inf: not finite"), (1e305, r"1e\+305: too large")):
        with pytest.raises(ValueError, match=r"^scores\[" + ROW_60.format("]", said)):
            function(parts(put(scores, wrong)), parts(Y))
    for wrong, said in ((np.nan, "nan: grades must"), (-1.0, "-1.0: grades must")):
        with pytest.raises(ValueError, match=r"^relevant\[" + ROW_60.format("]", said)):
            function(parts(scores), parts(put(Y, wrong, float)))
    with pytest.raises(ValueError, match=r"^qid\[" + ROW_60.format("]", "nan; every sample needs a query")):
        function(parts(scores), parts(Y), qid=parts(put(QID, np.nan, float)))
    with pytest.raises(ValueError, match=r"^partition 1: relevant has shape \(20,\), but scores has 30 rows"):
        function(parts(scores, False), in_parts(Y[:90], [50, 20, 20], False))


@functions
@pytest.mark.parametrize("dtype", [str, complex, object])
def test_scores_that_are_no_numbers(near_client: Client, function: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"partition 1: scores must be real numbers, got dtype .*; convert them with"):
        function(one_of_another_type(X[:, 0], dtype), parts(Y))
    with pytest.raises(TypeError, match=r"partition 1: relevant must be boolean, or 0 and 1, got dtype .*; convert it"):
        function(parts(X[:, 0]), one_of_another_type(Y.astype(int), dtype))


@functions
def test_a_dataframe_for_a_column(near_client: Client, function: Any) -> None:
    table = frame(pd.DataFrame(X))
    for given, name in (((table, table[0]), "scores"), ((table[0], table), "relevant")):
        with pytest.raises(ValueError, match=f"{name} must be one-dimensional, got 2 dimensions; pass one column"):
            function(*given)


@both
@pytest.mark.parametrize("dtype", [complex, bytes])
def test_labels_that_are_neither_numbers_nor_strings(near_client: Client, fit: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"partition 0: y must be numbers or strings, got dtype .*; convert it with"):
        fit(parts(X), parts(Y.astype(int).astype(dtype)))


@both
def test_types_that_do_not_go_together(near_client: Client, fit: Any) -> None:
    y, rows = Y.astype(int), parts(X)
    told = "has dtype int64 in partition 0, but <U21 in partition 1; convert all partitions to one of them"
    with pytest.raises(TypeError, match=f"^y {told}"):
        fit(rows, one_of_another_type(y, str))
    with pytest.raises(TypeError, match=f"^qid {told}"):
        fit(rows, parts(y), one_of_another_type(QID, str))
    with pytest.raises(TypeError, match=r"^qid has dtype int64 in partition 0, but uint64 in partition 1"):
        fit(rows, parts(y), one_of_another_type(QID + 2**60, np.uint64))  # as floats, all would be equal


def test_types_that_go_together(near_client: Client) -> None:
    labels = blocks(Y[:50], Y[50:80].astype(int), np.empty(0, object), Y[80:].astype(np.float32))
    ids = blocks(QID[:50], QID[50:80].astype(np.int32), np.empty(0, object), QID[80:].astype(np.float32))
    rows = blocks(X[:50], X[50:80].astype(np.float32), X[:0], X[80:])
    found = DaskRankSVM("ap", C=0.1, tol=0.5).fit(rows, labels, ids)
    local = rw.RankSVM("ap", C=0.1, tol=0.5).fit(X, Y, QID)
    np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-5)
    words = structured_hinge(parts(X[:, 0]), parts(Y), qid=blocks(*np.split(QID.astype(str).astype(object), [50, 80])))
    assert words.value == structured_hinge(parts(X[:, 0]), parts(Y), qid=parts(QID)).value


def test_features_that_do_not_go_together(near_client: Client) -> None:
    labels, narrow = parts(Y), X[50:80, :3]
    for kind in (np.asarray, sparse.csr_matrix):
        with pytest.raises(ValueError, match="X has 4 features in partition 0, but 3 in partition 1; give all part"):
            DaskRankSVM().fit(blocks(kind(X[:50]), kind(narrow), kind(X[80:])), labels)
    with pytest.raises(ValueError, match="X has 4 features in partition 0, but 7 in partition 1"):
        DaskRankSVM().fit(blocks(X, np.empty((0, 7))), blocks(Y, Y[:0]))
    mixed = blocks(X[:50], sparse.csr_matrix(X[50:80]), X[80:])
    with pytest.raises(ValueError, match="X is dense in partition 0, but sparse in partition 1; make all of them"):
        DaskLinearRanker().fit(mixed, labels)


def test_columns_in_another_order(near_client: Client) -> None:
    table = pd.DataFrame(X, columns=list("abcd"))
    pieces = [delayed(table[:50]), delayed(table[list("dcba")][50:80]), delayed(table[80:])]
    mixed = dd.from_delayed(pieces, meta=table[:0], verify_meta=False)
    told = "partition 1: X has the columns ['d', 'c', 'b', 'a'], but its Dask dataframe has ['a', 'b', 'c', 'd']"
    with pytest.raises(ValueError, match=re.escape(told)):
        DaskRankSVM().fit(mixed, frame(pd.Series(Y)))


def test_blocks_that_are_broken(near_client: Client) -> None:
    broken = sparse.csr_matrix(X[50:80])
    broken.indices[3] = 99
    with pytest.raises(ValueError, match=r"partition 1: X is not a valid CSR matrix: .*; build it again"):
        DaskRankSVM().fit(blocks(sparse.csr_matrix(X[:50]), broken, sparse.csr_matrix(X[80:])), parts(Y))
    masked: Any = np.ma.masked_array(X[50:80], mask=X[50:80] > 2.0)
    with pytest.raises(ValueError, match="partition 1: X has masked entries; fill them or drop their rows"):
        DaskRankSVM().fit(blocks(X[:50], masked, X[80:]), parts(Y))


def test_a_partition_that_is_missing(near_client: Client) -> None:
    for k, name in enumerate(("y", "qid", "query_weight"), 1):
        given = [parts(X), parts(Y), parts(QID), parts(np.ones(100))]
        pieces = [delayed(one) for one in (given[k].blocks[0].compute(), None, given[k].blocks[2].compute())]
        given[k] = as_dask_array(pieces, SIZES, np.empty(0))
        with pytest.raises(TypeError, match=f"partition 1: {name} must be an array, got NoneType"):
            DaskRankSVM("ap", C=1.0).fit(*given)


def test_no_rows_at_all(near_client: Client) -> None:
    nothing, labels = blocks(X[:0], X[:0]), blocks(Y[:0], Y[:0])
    for fit in FITS:
        with pytest.raises(ValueError, match="X has no rows; pass at least one sample of each class"):
            fit(nothing, labels, labels)
    assert structured_hinge(nothing[:, 0], labels, qid=labels).value == 0.0
    assert np.isnan(average_precision(nothing[:, 0], labels))


@pytest.mark.parametrize("method", ["decision_function", "predict", "rank"])
def test_rows_that_are_scored(near_client: Client, method: str) -> None:
    score = getattr(DaskRankSVM("ap", C=1.0, tol=0.5).fit(parts(X), parts(Y)), method)
    wrong = put(X, np.nan, at=(60, 3))
    with pytest.raises(ValueError, match=r"^X\[60, 3\] \(row 10 of partition 1\) is nan: " + NOT_A_NUMBER):
        score(parts(wrong)).compute()
    with pytest.raises(ValueError, match=r"^X\[10, 3\] of partition 1 is nan: "):  # sizes are not known yet
        score(parts(wrong, False)).compute()
    with pytest.raises(ValueError, match=r"^partition 1: X has 3 features, but RankSVM is expecting 4"):
        score(blocks(X[:50], X[50:80, :3], X[80:])).compute()
    with pytest.raises(ValueError, match=r"^X has 3 features, but DaskRankSVM was fitted to 4; pass the same features"):
        score(parts(X[:, :3]))
    with pytest.raises(ValueError, match="X must be two-dimensional, got 1 dimensions; pass a column for each feature"):
        score(parts(X[:, 0]))


def test_queries_of_rows_that_are_ranked(near_client: Client) -> None:
    model = DaskRankSVM("ap", C=1.0, tol=0.5).fit(parts(X), parts(Y))
    with pytest.raises(ValueError, match="qid has 90 entries, but X has 100 rows; pass one per row"):
        model.rank(parts(X), in_parts(QID[:90], [50, 20, 20])).compute()
    with pytest.raises(TypeError, match="qid has dtype int64 in partition 0, but <U21 in partition 1"):
        model.rank(parts(X), one_of_another_type(QID, str)).compute()


def test_a_query_that_has_two_weights(near_client: Client) -> None:
    weight = np.repeat([1.0, 2.0], [80, 20])
    told = "query 0 has query_weight 1.0 in partition 0, but 2.0 in partition 2; give all its samples one weight"
    with pytest.raises(ValueError, match=re.escape(told)):
        DaskRankSVM().fit(*map(parts, (X, Y, QID % 2, weight)))
