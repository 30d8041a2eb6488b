"""A fit on a cluster is the fit of one machine: on real data, whatever the partitions are."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask_problems import assert_same_fit, evenly, in_parts, rare
from distributed import Client, LocalCluster
from scipy import sparse
from sklearn.datasets import load_digits, load_svmlight_file

import rankwise as rw
from rankwise.dask import DaskRankSVM

pytestmark = pytest.mark.distributed


def fit_both(X: Any, y: Any, sizes: list[int], qid: Any = None, known: bool = True, **params: Any) -> tuple[Any, Any]:
    given = {} if qid is None else {"qid": qid}
    local = rw.RankSVM(**params).fit(X, y, **given)
    given = {name: in_parts(values, sizes, known) for name, values in given.items()}
    found = DaskRankSVM(**params).fit(in_parts(X, sizes, known), in_parts(y, sizes, known), **given)
    return found, local


def read(path: Path, **options: Any) -> Any:
    with gzip.open(path, "rb") as file:
        return load_svmlight_file(file, **options)


@pytest.mark.parametrize(("loss", "C"), [("ap", 3.0), ("ndcg", 10.0), ("zero-one", 0.3)])
def test_w8a_in_three_partitions(client: Client, data_file: Callable[[str], Path], loss: str, C: float) -> None:
    X, y = read(data_file("w8a.gz"))
    assert_same_fit(*fit_both(X, y, [20_000, 9_749, 20_000], loss=loss, C=C))


@pytest.mark.parametrize("grades", [False, True], ids=["binary", "graded"])
def test_mq2008_with_its_queries_cut_over_four_partitions_and_interleaved(
    client: Client, data_file: Callable[[str], Path], rng: np.random.Generator, grades: bool
) -> None:
    X, y, qid = read(data_file("mq2008-fold1/train.txt.gz"), query_id=True)
    X, y = X.toarray(), y if grades else y > 0
    order = rng.permutation(y.size)
    params = {"loss": "ndcg" if grades else "ap", "C": 3.0}
    assert_same_fit(*fit_both(X[order], y[order], evenly(y.size, 4), qid[order], **params))
    assert_same_fit(*fit_both(X, y, evenly(y.size, 4), qid, **params))  # most of them whole


@pytest.mark.parametrize("loss", ["ap", "ndcg", "zero-one"])
def test_digits(client: Client, loss: str) -> None:
    X, y = load_digits(return_X_y=True)
    assert_same_fit(*fit_both(X, y == 8, evenly(1797, 4), loss=loss, C=0.03))


@pytest.mark.parametrize(
    "sizes",
    [[12_000], [5_000, 7_000], [0, 1, 0, 11_999], [11_995, *[1] * 5], evenly(12_000, 18)],
    ids=["one", "two", "empty ones", "a row each", "eighteen"],
)
def test_a_query_of_all_samples_over_any_partitions(client: Client, rng: np.random.Generator, sizes: list[int]) -> None:
    assert_same_fit(*fit_both(*rare(rng, 12_000), sizes, loss="ap", C=1.0))


def test_partitions_without_positives(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 12_000)
    order = np.argsort(~y, kind="stable")
    assert_same_fit(*fit_both(X[order], y[order], evenly(12_000, 3), loss="ndcg", C=1.0))


@pytest.mark.parametrize("kind", ["float32", "csr", "csr float32"])
def test_types_of_features(client: Client, rng: np.random.Generator, kind: str) -> None:
    X, y = rare(rng, 20_000, dtype=np.float32 if "float32" in kind else np.float64)
    X = sparse.csr_matrix(X * (np.abs(X) > 0.5)) if "csr" in kind else X
    assert_same_fit(*fit_both(X, y, [9_000, 0, 11_000], loss="ap", C=1.0))


def test_shuffled_partitions_give_the_same_model(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 20_000)
    sizes = [3_000, 9_000, 8_000]
    blocks, labels = in_parts(X, sizes), in_parts(y, sizes)
    local = rw.RankSVM("ap", C=3.0).fit(X, y)
    order = [2, 0, 1]
    shuffled = [da.concatenate([values.blocks[k] for k in order]) for values in (blocks, labels)]
    assert_same_fit(DaskRankSVM("ap", C=3.0).fit(*shuffled), local)


def test_weights_of_queries_a_prior_and_a_warm_start(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 3_000)
    qid, sizes = rng.integers(0, 6, 3_000), [1_000, 1_500, 500]
    weight = np.array([1.0, 0.0, 2.0, 5.0, 0.5, 1.0])[qid]
    params: dict[str, Any] = {"loss": "ap", "prior": rng.normal(size=8), "C": 20.0, "warm_start": True}
    local, found = rw.RankSVM(**params), DaskRankSVM(**params)
    parts = [in_parts(values, sizes) for values in (X, y, qid, weight)]
    for _ in range(2):
        local.fit(X, y, qid, weight)
        found.fit(*parts)
        assert_same_fit(found, local)
    assert found.n_iter_ <= 2


@pytest.mark.parametrize("known", [True, False])
def test_partitions_of_unknown_size(client: Client, rng: np.random.Generator, known: bool) -> None:
    X, y = rare(rng, 10_000)
    assert_same_fit(*fit_both(X, y, [6_000, 4_000], known=known, loss="ap", C=1.0))


def test_dataframes(client: Client, rng: np.random.Generator) -> None:
    import dask.dataframe as dd
    import pandas as pd

    X, y = rare(rng, 10_000, 4)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=np.where(y, "yes", "no"), q=np.arange(10_000) // 3_000)
    parts = dd.from_pandas(frame, npartitions=3)
    local = rw.RankSVM("ap", C=1.0).fit(frame[list("abcd")], frame.y, frame.q)
    found = DaskRankSVM("ap", C=1.0).fit(parts[list("abcd")], parts.y, parts.q)
    assert_same_fit(found, local)
    assert found.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(found.predict(parts[list("abcd")]).compute(), local.predict(frame[list("abcd")]))


def test_four_workers_and_what_the_model_says_lazily(rng: np.random.Generator) -> None:
    X, y = rare(rng, 20_000)
    qid = np.arange(20_000) % 3
    near: Any = {"threads_per_worker": 1, "processes": False, "protocol": "tcp://", "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=4, **near) as cluster,
        Client(cluster) as client,
    ):
        parts = [in_parts(values, evenly(20_000, 8)) for values in (X, y, qid)]
        local = rw.RankSVM("ap", C=1.0).fit(X, y)
        found = DaskRankSVM("ap", C=1.0, client=client).fit(*parts[:2])
        assert_same_fit(found, local)
        assert found.client_ is client
        scores = found.decision_function(parts[0])
        assert isinstance(scores, da.Array)
        assert scores.chunks[0] == parts[0].chunks[0]
        np.testing.assert_allclose(scores.compute(), local.decision_function(X), rtol=1e-10, atol=1e-10)
        model = found.to_local()
        assert type(model) is rw.RankSVM
        for ids, given in ((None, None), (qid, parts[2])):
            np.testing.assert_array_equal(found.rank(parts[0], given).compute(), model.rank(X, ids))


def test_the_local_model_is_written_and_read(client: Client, rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = rare(rng, 2_000)
    model = DaskRankSVM("ap", C=5.0).fit(in_parts(X, [1_000, 1_000]), in_parts(y, [1_000, 1_000])).to_local()
    model.save(tmp_path / "model")
    loaded = rw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_what_a_step_exchanges_is_counted(client: Client, rng: np.random.Generator) -> None:
    X, y = rare(rng, 20_000)
    found = DaskRankSVM("ap", C=10.0).fit(in_parts(X, [10_000, 10_000]), in_parts(y, [10_000, 10_000]))
    steps, P = found.timing_["calls"], int(y.sum())
    assert 0 < found.exchanged_["received"] / steps < 2 * 8 * (1 << 14) + 1200 * P
    assert found.exchanged_["rounds"] / steps < 9
