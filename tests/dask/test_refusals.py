"""What cannot be fitted is refused with the remedy; an error names the argument, the partition and the row of all."""

from __future__ import annotations

import asyncio
import pickle
import re
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import bag, delayed
from dask_problems import in_parts
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

import rankwise as rw
from rankwise.dask import DaskRankSVM, SchedulerLostError, average_precision, structured_hinge
from rankwise.dask.collections import as_dask_array

SIZES = [50, 30, 20]
X = np.random.default_rng(0).normal(size=(100, 4))
Y = X[:, 0] > 0.5
STRINGS = np.where(Y, "yes", "no")
QID = np.arange(100) // 10
TABLE = pd.DataFrame(X, columns=list("abcd"))
IN_THIS_PROCESS: Any = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}


def put(values: Any, value: Any, dtype: Any = None, at: Any = 60) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array[at] = value
    return array


def blocks(*values: Any) -> Any:
    return as_dask_array([delayed(one) for one in values], [one.shape[0] for one in values], values[0][:0])


def parts(values: Any, known: bool = True) -> Any:
    return in_parts(values, SIZES, known)


def given(values: Any) -> Any:
    """Arrays in partitions, and all else as it is."""
    return parts(values) if isinstance(values, np.ndarray) or sparse.issparse(values) else values


def frame(values: Any) -> Any:
    pieces = [values.iloc[:50], values.iloc[50:80], values.iloc[80:]]
    return dd.from_delayed([delayed(one) for one in pieces], meta=values.iloc[:0])


def of_another_type(values: NDArray[Any], dtype: Any) -> Any:
    return blocks(values[:50], values[50:80].astype(dtype), values[80:])


def without(values: Any) -> Any:
    """The same whose second partition is None."""
    given = parts(values)
    return as_dask_array([delayed(one) for one in (given.blocks[0].compute(), None, values[80:])], SIZES, values[:0])


def swapped() -> Any:
    pieces = [delayed(TABLE[:50]), delayed(TABLE[list("dcba")][50:80]), delayed(TABLE[80:])]
    return dd.from_delayed(pieces, meta=TABLE[:0], verify_meta=False)


def broken() -> Any:
    wrong = sparse.csr_matrix(X[50:80])
    wrong.indices[3] = 99
    return blocks(sparse.csr_matrix(X[:50]), wrong, sparse.csr_matrix(X[80:]))


functions = pytest.mark.parametrize("function", [structured_hinge, average_precision])

NUMBER = "features must be finite numbers; impute or encode it, or drop the sample"
LABELS = "labels must be all finite numbers or all strings; drop the sample"
MASKED: Any = np.ma.masked_array(X[50:80], mask=X[50:80] > 2.0)


def row_60(name: str, column: str, told: str) -> str:
    return rf"^{name}\[60{column}\] \(row 10 of partition 1\) is {told}"


# By case: X, y, qid and query_weight as arrays, or as Dask collections, and the error.
WRONG: dict[str, tuple[Any, ...]] = {
    "NaN in X": (put(X, np.nan, at=(60, 3)), Y, row_60("X", ", 3", "nan: " + NUMBER)),
    "infinity in CSR": (sparse.csr_matrix(put(X, np.inf, at=(60, 3))), Y, row_60("X", ", 3", "inf: ")),
    "None in X": (put(X, None, object, (60, 1)), Y, row_60("X", ", 1", "None: " + NUMBER)),
    "a word in X": (put(X, "n/a", object, (60, 1)), Y, row_60("X", ", 1", "'n/a': " + NUMBER)),
    "NaN in a column": (frame(TABLE.assign(b=put(X[:, 1], np.nan))), parts(Y), row_60("X", ", 'b'", "nan")),
    "a word in a column": (frame(TABLE.assign(b=put(X[:, 1], "?", object))), parts(Y), row_60("X", ", 'b'", r"'\?'")),
    "NaN in y": (X, put(Y, np.nan, float), row_60("y", "", "nan: " + LABELS)),
    "None in words": (X, put(STRINGS, None, object), row_60("y", "", "None: " + LABELS)),
    "negative grade": (X, put(QID % 3, -2), QID, row_60("y", "", "-2: grades must be .* at least 0; ")),
    "NaN in qid": (X, Y, put(QID, np.nan, float), row_60("qid", "", "nan; every sample needs a query")),
    "None in qid": (X, Y, put(QID, None, object), row_60("qid", "", "None: qid must be all integers")),
    "NaN weight": (X, Y, QID, put(np.ones(100), np.nan), row_60("query_weight", "", "nan; weights must")),
    "weight of its own": (X, Y, QID, put(np.ones(100), 2.0, at=63), r"query_weight\[63\] \(row 13 of partition 1\) d"),
    "two weights": (
        *(X, Y, QID % 2, np.repeat([1.0, 2.0], [80, 20])),
        r"query 0 has query_weight 1.0 in partition 0, but 2.0 in partition 2",
    ),
    "the first of several": (
        *(put(X, np.nan, at=([55, 85, 90], 0)), put(Y, np.nan, float, 45)),
        r"^y\[45\] \(row 45 of partition 0\) is nan",
    ),
    "unknown sizes": (
        *(parts(put(X, np.nan, at=(80, 0)), False), parts(Y, False)),
        r"^X\[80, 0\] \(row 0 of partition 2\) is nan",
    ),
    "complex labels": (X, Y.astype(complex), r"partition 0: y must be numbers or strings, got dtype .*; convert it"),
    "numbers and words": (
        *(parts(X), of_another_type(Y.astype(int), str)),
        "^y has dtype int64 in partition 0, but <U21 in partition 1; convert all partitions to one of them",
    ),
    "queries that are numbers and words": (
        *(parts(X), parts(Y), of_another_type(QID, str)),
        "^qid has dtype int64 in partition 0, but <U21 in partition 1; convert all partitions to one of them",
    ),
    "queries that would be equal as floats": (
        *(parts(X), parts(Y), of_another_type(QID + 2**60, np.uint64)),
        r"^qid has dtype int64 in partition 0, but uint64 in partition 1",
    ),
    "fewer features": (
        *(blocks(X[:50], X[50:80, :3], X[80:]), parts(Y)),
        "X has 4 features in partition 0, but 3 in partition 1; give all partitions the same number",
    ),
    "columns in another order": (
        *(swapped(), frame(pd.Series(Y))),
        re.escape("partition 1: X has the columns ['d', 'c', 'b', 'a'], but its Dask dataframe has ['a', 'b', 'c',"),
    ),
    "a broken matrix": (broken(), parts(Y), "partition 1: X is not a valid CSR matrix: .*; build it again"),
    "masked": (blocks(X[:50], MASKED, X[80:]), parts(Y), "partition 1: X has masked entries; fill them or drop"),
    "no y": (parts(X), without(Y), "partition 1: y must be an array, got NoneType"),
    "no rows": (blocks(X[:0], X[:0]), blocks(Y[:0], Y[:0]), "X has no rows; pass at least one sample of each class"),
    "data in memory": (da.from_array(X), Y.tolist(), None, "y must be a Dask array or dataframe, got list"),
    "a bag": (bag.from_sequence([[1.0, 2.0]]), parts(Y), "X must be a Dask array or dataframe, got Bag"),
    "labels of another length": (da.from_array(X), da.from_array(Y[:99]), "y has 99 entries, but X has 100 rows"),
    "partitions of another length": (
        *(parts(X, False), in_parts(Y[:90], [50, 20, 20], False)),
        r"partition 1: y has shape \(20,\), but X has 30 rows",
    ),
    "more partitions": (
        *(in_parts(X, [50, 50], False), in_parts(Y, [30, 30, 40])),
        "y has 3 partitions, but X has 2, of unknown sizes; call compute_chunk_sizes",
    ),
    "one class": (X, np.ones(100), "only one class is present"),
    "a query of one class each": (X, Y, np.arange(100), "every query has only one class"),
    "grades without queries": (X, QID % 5, "Only binary classification is supported"),
}


@pytest.mark.parametrize("case", WRONG)
def test_data_of_a_fit(near_client: Client, case: str) -> None:
    *data, expected = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=expected):
        DaskRankSVM("ap", C=1.0).fit(*map(given, data))


def test_data_in_memory(near_client: Client) -> None:
    with pytest.raises(TypeError, match=r"X must be a Dask array or dataframe, got ndarray; .* use rankwise.RankSVM"):
        DaskRankSVM("ap", C=1.0).fit(X, Y)


def test_types_that_go_together(near_client: Client) -> None:
    labels = blocks(Y[:50], Y[50:80].astype(int), np.empty(0, object), Y[80:].astype(np.float32))
    ids = blocks(QID[:50], QID[50:80].astype(np.int32), np.empty(0, object), QID[80:].astype(np.float32))
    rows = blocks(X[:50], X[50:80].astype(np.float32), X[:0], X[80:])
    found = DaskRankSVM("ap", C=0.1, tol=0.5).fit(rows, labels, ids)
    local = rw.RankSVM("ap", C=0.1, tol=0.5).fit(X, Y, QID)
    np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-5)
    words = structured_hinge(parts(X[:, 0]), parts(Y), qid=blocks(*np.split(QID.astype(str).astype(object), [50, 80])))
    assert words.value == structured_hinge(parts(X[:, 0]), parts(Y), qid=parts(QID)).value


@functions
def test_rows_of_vectors(near_client: Client, function: Any) -> None:
    scores, table = X[:, 0], frame(pd.DataFrame(X))
    wrong: list[tuple[Any, Any, Any, str]] = [
        (put(scores, np.nan), Y, None, row_60("scores", "", "nan: not finite")),
        (put(scores, np.inf), Y, None, row_60("scores", "", "inf: not finite")),
        (put(scores, 1e305), Y, None, row_60("scores", "", r"1e\+305: too large")),
        (scores, put(Y, np.nan, float), None, row_60("relevant", "", "nan: grades must")),
        (scores, put(Y, -1.0, float), None, row_60("relevant", "", "-1.0: grades must")),
        (scores, Y, put(QID, np.nan, float), row_60("qid", "", "nan; every sample needs a query")),
        (parts(put(scores, np.nan, at=80), False), Y, None, r"^scores\[80\] \(row 0 of partition 2\) is nan"),
        (table, table[0], None, "scores must be one-dimensional, got 2 dimensions; pass one column"),
        (table[0], table, None, "relevant must be one-dimensional, got 2 dimensions; pass one column"),
    ]
    short = in_parts(Y[:90], [50, 20, 20], False)
    wrong.append((parts(scores, False), short, None, r"^partition 1: relevant has shape \(20,\), but scores has 30"))
    for dtype in (str, complex, object):
        told = "partition 1: scores must be real numbers, got dtype .*; convert them with"
        wrong.append((of_another_type(scores, dtype), Y, None, told))
        told = "partition 1: relevant must be boolean, or 0 and 1, got dtype .*; convert it"
        wrong.append((scores, of_another_type(Y.astype(int), dtype), None, told))
    for *given, told in wrong:
        s, y, qid = (parts(one) if isinstance(one, np.ndarray) else one for one in given)
        with pytest.raises((TypeError, ValueError), match=told):
            function(s, y, qid=qid)


def test_nothing_to_rank(near_client: Client) -> None:
    scores, nobody = parts(X[:, 0]), parts(np.zeros(100, bool))
    empty = blocks(Y[:0], Y[:0])
    assert (
        structured_hinge(scores, nobody).value == structured_hinge(empty.astype(float), empty, qid=empty).value == 0.0
    )
    assert np.isnan(average_precision(scores, nobody))
    assert np.isnan(average_precision(empty.astype(float), empty))
    assert average_precision(scores, nobody, empty="one") == 1.0
    with pytest.raises(ValueError, match="the query has nothing to rank"):
        structured_hinge(scores, nobody, empty="error")
    with pytest.raises(ValueError, match="a query has no relevant samples, so ap is not defined"):
        average_precision(scores, nobody, empty="error")


@pytest.fixture(scope="module")
def fitted(near: LocalCluster) -> DaskRankSVM:
    with Client(near) as client:
        return DaskRankSVM("ap", C=1.0, tol=0.5, client=client).fit(parts(X), parts(Y))


@pytest.mark.parametrize("method", ["decision_function", "predict", "rank"])
def test_rows_that_are_scored(near_client: Client, fitted: Any, method: str) -> None:
    score, wrong = getattr(fitted, method), put(X, np.nan, at=(60, 3))
    with pytest.raises(ValueError, match=r"^X\[60, 3\] \(row 10 of partition 1\) is nan: " + NUMBER):
        score(parts(wrong)).compute()
    with pytest.raises(ValueError, match=r"^X\[10, 3\] of partition 1 is nan: "):  # sizes are not known yet
        score(parts(wrong, False)).compute()
    with pytest.raises(ValueError, match=r"^partition 1: X has 3 features, but RankSVM is expecting 4"):
        score(blocks(X[:50], X[50:80, :3], X[80:])).compute()
    with pytest.raises(ValueError, match=r"^X has 3 features, but DaskRankSVM was fitted to 4; pass the same features"):
        score(parts(X[:, :3]))
    with pytest.raises(ValueError, match="X must be two-dimensional, got 1 dimensions; pass a column for each feature"):
        score(parts(X[:, 0]))
    if method == "rank":
        with pytest.raises(ValueError, match="qid has 90 entries, but X has 100 rows; pass one per row"):
            score(parts(X), in_parts(QID[:90], [50, 20, 20])).compute()
        with pytest.raises(TypeError, match="qid has dtype int64 in partition 0, but <U21 in partition 1"):
            score(parts(X), of_another_type(QID, str)).compute()


def test_a_client_that_is_asynchronous_absent_or_none() -> None:
    async def fit() -> None:
        async with (
            LocalCluster(**IN_THIS_PROCESS, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True, set_as_default=False) as client,
        ):
            DaskRankSVM(client=client).fit(parts(X), parts(Y))

    with pytest.raises(TypeError, match="client is asynchronous, but rankwise waits for results; open it with"):
        asyncio.run(fit())
    with pytest.raises(ValueError, match=r"there is no Dask client; create one"):
        DaskRankSVM().fit(parts(X), parts(Y))
    with pytest.raises(TypeError, match=r"client must be a distributed.Client, got str"):
        DaskRankSVM(client="tcp://x").fit(parts(X), parts(Y))


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_client_or_a_cluster_that_is_closed(near: LocalCluster, what: str) -> None:
    if what == "client":
        client = Client(near, set_as_default=False)
        client.close()
    else:
        with LocalCluster(**IN_THIS_PROCESS) as cluster:
            client = Client(cluster, set_as_default=False)
    fit = DaskRankSVM(client=client).fit
    tasks = [lambda: fit(parts(X), parts(Y))]
    tasks += [lambda of=of: of(parts(X[:, 0]), parts(Y), client=client) for of in (structured_hinge, average_precision)]
    for task in tasks:
        with pytest.raises(SchedulerLostError, match=r"closed, and maybe its cluster, too; open one with") as caught:
            task()
        assert "partial_" not in str(caught.value)


def test_a_clone_has_the_client_and_a_pickle_has_none(near_client: Client) -> None:
    model = DaskRankSVM(verbose=1, client=near_client)
    assert clone(model).client is near_client
    assert pickle.loads(pickle.dumps(model)).get_params() == {**model.get_params(), "client": None}
