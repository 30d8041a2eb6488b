"""A fit or a value of a cluster is that of one machine: on real data, whatever the partitions are."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_problems import assert_same_fit, evenly, in_parts, rare
from distributed import Client
from scipy import sparse
from sklearn.datasets import load_digits, load_svmlight_file

import rankwise as rw
from rankwise.dask import DaskRankSVM, average_precision, structured_hinge

pytestmark = pytest.mark.distributed
ATOL = 1e-12


def fit_both(sizes: list[int], *data: Any, known: bool = True, **params: Any) -> tuple[Any, Any]:
    local = rw.RankSVM(**params).fit(*data)
    return DaskRankSVM(**params).fit(*(in_parts(values, sizes, known) for values in data)), local


def read(path: Path, **options: Any) -> Any:
    with gzip.open(path, "rb") as file:
        return load_svmlight_file(file, **options)


@pytest.mark.parametrize(("loss", "C"), [("ap", 3.0), ("ndcg", 10.0), ("zero-one", 0.3)])
def test_w8a_in_three_partitions(client: Client, data_file: Callable[[str], Path], loss: str, C: float) -> None:
    X, y = read(data_file("w8a.gz"))
    assert_same_fit(*fit_both([20_000, 9_749, 20_000], X, y, loss=loss, C=C))


@pytest.mark.parametrize("grades", [False, True], ids=["binary", "graded"])
def test_mq2008_with_its_queries_cut_over_four_partitions_and_interleaved(
    client: Client, data_file: Callable[[str], Path], rng: np.random.Generator, grades: bool
) -> None:
    X, y, qid = read(data_file("mq2008-fold1/train.txt.gz"), query_id=True)
    X, y = X.toarray(), y if grades else y > 0
    order, sizes = rng.permutation(y.size), evenly(y.size, 4)
    params = {"loss": "ndcg" if grades else "ap", "C": 3.0}
    assert_same_fit(*fit_both(sizes, X[order], y[order], qid[order], **params))
    assert_same_fit(*fit_both(sizes, X, y, qid, **params))  # most of them whole


@pytest.mark.parametrize("loss", ["ap", "ndcg", "zero-one"])
def test_digits(client: Client, loss: str) -> None:
    X, y = load_digits(return_X_y=True)
    assert_same_fit(*fit_both(evenly(1797, 4), X, y == 8, loss=loss, C=0.03))


SIZES: dict[str, list[int]] = {
    "one": [12_000],
    "two": [5_000, 7_000],
    "empty ones": [0, 1, 0, 11_999],
    "a row each": [11_995, *[1] * 5],
    "eighteen": evenly(12_000, 18),
    "unknown": [6_000, 6_000],
    "positives first": evenly(12_000, 3),
}


@pytest.mark.parametrize("case", SIZES)
def test_a_query_of_all_samples_over_any_partitions(client: Client, rng: np.random.Generator, case: str) -> None:
    X, y = rare(rng, 12_000)
    order = np.argsort(~y, kind="stable") if case == "positives first" else slice(None)
    assert_same_fit(*fit_both(SIZES[case], X[order], y[order], known=case != "unknown", loss="ap", C=1.0))


@pytest.mark.parametrize("kind", ["float32", "csr", "csr float32"])
def test_types_of_features(client: Client, rng: np.random.Generator, kind: str) -> None:
    X, y = rare(rng, 20_000, dtype=np.float32 if "float32" in kind else np.float64)
    X = sparse.csr_matrix(X * (np.abs(X) > 0.5)) if "csr" in kind else X
    assert_same_fit(*fit_both([9_000, 0, 11_000], X, y, loss="ap", C=1.0))


def test_shuffled_partitions_give_the_same_model_and_what_a_step_exchanges_is_counted(
    client: Client, rng: np.random.Generator
) -> None:
    data = rare(rng, 20_000)
    local = rw.RankSVM("ap", C=10.0).fit(*data)
    parts = (in_parts(values, [3_000, 9_000, 8_000]) for values in data)
    found = DaskRankSVM("ap", C=10.0).fit(*(da.concatenate([one.blocks[k] for k in (2, 0, 1)]) for one in parts))
    assert_same_fit(found, local)
    steps, P = found.timing_["calls"], int(data[1].sum())
    assert 0 < found.exchanged_["received"] / steps < 3 * 8 * (1 << 14) + 1800 * P
    assert found.exchanged_["rounds"] / steps < 9


def test_weights_of_queries_and_a_warm_start(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 3_000)
    qid = rng.integers(0, 6, 3_000)
    weight = np.array([1.0, 0.0, 2.0, 5.0, 0.5, 1.0])[qid]
    params: dict[str, Any] = {"loss": "ap", "C": 20.0, "warm_start": True}
    local, found = rw.RankSVM(**params), DaskRankSVM(**params)
    parts = [in_parts(values, [1_000, 1_500, 500]) for values in (X, y, qid, weight)]
    for _ in range(2):
        assert_same_fit(found.fit(*parts), local.fit(X, y, qid, weight))
    assert found.n_iter_ <= 2


def test_dataframes(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 10_000, 4)
    names = list("abcd")
    frame = pd.DataFrame(X, columns=names).assign(y=np.where(y, "yes", "no"), q=np.arange(10_000) // 3_000)
    parts = dd.from_pandas(frame, npartitions=3)
    local = rw.RankSVM("ap", C=1.0).fit(frame[names], frame.y, frame.q)
    found = DaskRankSVM("ap", C=1.0).fit(parts[names], parts.y, parts.q)
    assert_same_fit(found, local)
    assert found.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(found.predict(parts[names]).compute(), local.predict(frame[names]))
    scores = pd.DataFrame({"s": X[:, 0], "grade": rng.integers(0, 4, 10_000), "q": rng.integers(0, 9, 10_000)})
    parts = dd.from_pandas(scores, npartitions=3)
    hinge = structured_hinge(parts.s, parts.grade, "ndcg", qid=parts.q)
    np.testing.assert_allclose(
        hinge.value, rw.structured_hinge(scores.s, scores.grade, "ndcg", qid=scores.q).value, rtol=ATOL
    )


def test_predictions_are_lazy_and_the_local_model_is_written_and_read(
    client: Client, rng: np.random.Generator, tmp_path: Path
) -> None:
    X, y = rare(rng, 10_000)
    qid = np.arange(10_000) % 3
    parts = [in_parts(values, evenly(10_000, 8)) for values in (X, y, qid)]
    found = DaskRankSVM("ap", C=1.0, client=client).fit(*parts[:2])
    assert found.client_ is client
    model = found.to_local()
    assert type(model) is rw.RankSVM
    scores = found.decision_function(parts[0])
    assert isinstance(scores, da.Array)
    assert scores.chunks[0] == parts[0].chunks[0]
    np.testing.assert_allclose(scores.compute(), model.decision_function(X), rtol=1e-10, atol=1e-10)
    for ids, given in ((None, None), (qid, parts[2])):
        np.testing.assert_array_equal(found.rank(parts[0], given).compute(), model.rank(X, ids))
    model.save(tmp_path / "model")
    loaded = rw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


OWN = rw.DiscountedLoss(discount=lambda m: m**-0.5, name="a lambda")


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc", "zero-one", OWN], ids=str)
def test_the_hinge_of_one_large_query(client: Client, rng: np.random.Generator, loss: Any) -> None:
    scores, relevant = rng.normal(size=20_000), rng.random(20_000) < 0.01
    local = rw.structured_hinge(scores, relevant, loss)
    found = structured_hinge(*(in_parts(values, [7_000, 0, 13_000]) for values in (scores, relevant)), loss)
    np.testing.assert_allclose([found.value, found.loss], [local.value, local.loss], rtol=ATOL)
    assert isinstance(found.gradient, da.Array)
    assert found.gradient.chunks == ((7_000, 0, 13_000),)
    np.testing.assert_allclose(found.gradient.compute(), local.gradient, rtol=0, atol=ATOL)


def test_300_random_vectors_each_a_query_over_five_partitions(client: Client, rng: np.random.Generator) -> None:
    qid = rng.permutation(np.repeat(np.arange(300), rng.integers(2, 40, 300)))
    scores = np.round(rng.normal(size=qid.size), 1) + 1e-3 * rng.normal(size=qid.size) * (qid % 2)
    relevant = rng.random(qid.size) < rng.random(300)[qid]
    s, y, q = (in_parts(values, evenly(qid.size, 5)) for values in (scores, relevant, qid))
    for empty in ("zero", "skip"):
        local = rw.structured_hinge(scores, relevant, "ap", qid=qid, empty=empty)
        found = structured_hinge(s, y, qid=q, empty=empty)
        np.testing.assert_allclose([found.value, found.loss], [local.value, local.loss], rtol=ATOL)
        np.testing.assert_allclose(found.gradient.compute(), local.gradient, rtol=0, atol=ATOL)
    for empty in ("skip", "zero", "one"):
        expected = rw.metrics.average_precision(scores, relevant, qid=qid, empty=empty)
        np.testing.assert_allclose(average_precision(s, y, qid=q, empty=empty), expected, rtol=ATOL)
