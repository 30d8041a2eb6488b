"""The hinge and the precision of Dask arrays: those of all their scores together."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_problems import in_parts
from distributed import Client

import rankwise as rw
from rankwise.dask import average_precision, structured_hinge

pytestmark = pytest.mark.distributed
ATOL = 1e-12


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc", "zero-one"])
def test_one_large_query(client: Client, rng: np.random.Generator, loss: str) -> None:
    scores, relevant = rng.normal(size=20_000), rng.random(20_000) < 0.01
    sizes = [7_000, 0, 13_000]
    local = rw.structured_hinge(scores, relevant, loss)
    found = structured_hinge(in_parts(scores, sizes), in_parts(relevant, sizes), loss)
    np.testing.assert_allclose([found.value, found.loss], [local.value, local.loss], rtol=ATOL)
    assert isinstance(found.gradient, da.Array)
    assert found.gradient.chunks == ((7_000, 0, 13_000),)
    np.testing.assert_allclose(found.gradient.compute(), local.gradient, rtol=0, atol=ATOL)


def test_300_random_vectors_each_a_query_over_five_partitions(client: Client, rng: np.random.Generator) -> None:
    sizes = rng.integers(2, 40, 300)
    qid = np.repeat(np.arange(300), sizes)
    scores = np.round(rng.normal(size=qid.size), 1) + 1e-3 * rng.normal(size=qid.size) * (qid % 2)
    relevant = rng.random(qid.size) < rng.random(300)[qid]
    order = rng.permutation(qid.size)
    parts = [np.array_split(values[order], 5) for values in (scores, relevant, qid)]
    arrays = [in_parts(np.concatenate(part), [piece.size for piece in part]) for part in parts]
    for empty in ("zero", "skip"):
        local = rw.structured_hinge(scores[order], relevant[order], "ap", qid=qid[order], empty=empty)
        found = structured_hinge(arrays[0], arrays[1], qid=arrays[2], empty=empty)
        np.testing.assert_allclose([found.value, found.loss], [local.value, local.loss], rtol=ATOL)
        np.testing.assert_allclose(found.gradient.compute(), local.gradient, rtol=0, atol=ATOL)
    for empty in ("skip", "zero", "one"):
        expected = rw.metrics.average_precision(scores, relevant, qid=qid, empty=empty)
        np.testing.assert_allclose(
            average_precision(arrays[0], arrays[1], qid=arrays[2], empty=empty), expected, rtol=ATOL
        )


def test_columns_of_a_dataframe_and_grades(client: Client, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(
        {"score": rng.normal(size=500), "grade": rng.integers(0, 4, 500), "q": rng.integers(0, 9, 500)}
    )
    parts = dd.from_pandas(frame, npartitions=3)
    local = rw.structured_hinge(frame.score, frame.grade, "ndcg", qid=frame.q)
    found = structured_hinge(parts.score, parts.grade, "ndcg", qid=parts.q)
    np.testing.assert_allclose(found.value, local.value, rtol=ATOL)


def test_nothing_to_rank(client: Client) -> None:
    scores, relevant = da.from_array(np.arange(4.0), chunks=2), da.from_array(np.zeros(4, bool), chunks=2)
    assert structured_hinge(scores, relevant).value == 0.0
    assert np.isnan(average_precision(scores, relevant))
    assert average_precision(scores, relevant, empty="one") == 1.0
    with pytest.raises(ValueError, match="the query has nothing to rank"):
        structured_hinge(scores, relevant, empty="error")
    with pytest.raises(ValueError, match="a query has no relevant samples, so ap is not defined"):
        average_precision(scores, relevant, empty="error")
