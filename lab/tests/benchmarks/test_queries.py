"""Models of queries: judged by the queries that have an AP, with intervals, on files and in folds."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rankwise_lab.benchmarks import queries
from rankwise_lab.data.folder import MissingDataError


def test_a_model_is_judged_by_the_queries_that_have_an_ap() -> None:
    aps = {"logistic": [0.25, np.nan, 0.5, 0.75], "mine": [0.5, np.nan, 0.75, 1.0]}
    given = {name: np.array([values, np.array(values) / 2]) for name, values in aps.items()}
    assert queries._judged("mine", given) == queries.Found("mine", 0.75, 0.25, 0.25, 0.25, 0.375)
    assert queries._judged("logistic", given) == queries.Found("logistic", 0.5, 0.0, 0.0, 0.0, 0.25)


def _write_letor(folder: Path, part: str, seed: int, n_queries: int = 24) -> None:
    """Documents in the layout of MQ2008, six a query; every sixth query has none that is relevant."""
    rng = np.random.default_rng(seed)
    (folder / "mq2008-fold1").mkdir(exist_ok=True)
    with gzip.open(folder / "mq2008-fold1" / f"{part}.txt.gz", "wt", encoding="utf-8") as file:
        for query in rng.permutation(n_queries):
            for document in range(6):
                grade = 0 if query % 6 == 0 else max(0, document - 3)
                x = rng.random(46)
                x[0] += 0.3 * grade
                cells = " ".join(f"{i + 1}:{value:.6f}" for i, value in enumerate(x))
                file.write(f"{grade} qid:{10000 + query} {cells} #docid = GX{query}-{document} inc = 1 prob = 0.1\n")


@pytest.fixture
def letor(tmp_path: Path, data_in: Any) -> None:
    data_in(tmp_path)
    for seed, part in enumerate(("train", "test")):
        _write_letor(tmp_path, part, seed)


@pytest.mark.slow
def test_queries_run_on_files_in_the_same_layout_with_the_models_asked_for(letor: None) -> None:
    told: list[str] = []
    found = queries.run(quick=True, on_model=told.append, names=["RankSVM, AP"])
    assert told == ["logistic", "RankSVM, AP"]
    assert list(found) == ["given"]
    reference, ours = found["given"]
    assert (reference.model, reference.difference, reference.low, reference.high) == ("logistic", 0.0, 0.0, 0.0)
    assert ours.difference == pytest.approx(ours.map - reference.map)
    assert ours.low < ours.difference < ours.high
    assert 0 < ours.map < 1 > ours.ndcg > 0
    json.dumps([asdict(one) for one in found["given"]], allow_nan=False)
    assert [one.model for one in queries.run(quick=True, names=[])["given"]] == [queries.REFERENCE]


def test_queries_are_judged_by_models_that_have_not_seen_them(letor: None, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[set[int]] = []

    class Knowing:
        """Ranks perfectly what it has seen, by its first feature what it has not."""

        def __init__(self, train: queries.Split) -> None:
            self.known = {tuple(x): grade for x, grade in zip(train.X, train.grades, strict=True)}
            trained.append(set(train.qid.tolist()))

        def decision_function(self, X: Any) -> NDArray[np.float64]:
            assert not any(tuple(x) in self.known for x in X)
            return np.asarray(X[:, 0])

    monkeypatch.setattr(queries, "MODELS", {queries.REFERENCE: Knowing, "LinearSVC": Knowing})
    found = queries.run()
    assert len(trained) == 1 + 2 * 5 + 1, "the reference, its folds, and the slow one"
    every = set().union(*trained[1:6])
    assert len(every) == 2 * 24
    for repeat in (trained[1:6], trained[6:11]):
        assert sorted(query for part in repeat for query in every - part) == sorted(every)
    assert [one.model for one in found["given"]] == ["logistic", "LinearSVC"]
    assert [one.model for one in found["folds"]] == ["logistic"], "slow ones are left out of the folds"
    assert found["given"][1].difference == 0.0
    # Each query is ranked by its first feature whatever the fold: the mean of all is that of both parts.
    nothing = queries.Split(np.zeros((0, 46)), np.zeros(0), np.zeros(0, np.int64))
    aps = [queries._aps(Knowing(nothing), queries._read(part))[0] for part in ("train", "test")]
    assert found["folds"][0].map == pytest.approx(np.nanmean(np.concatenate(aps)))


def test_queries_without_data_say_where_to_look(tmp_path: Path, data_in: Any) -> None:
    data_in(tmp_path)
    with pytest.raises(MissingDataError, match=r"train\.txt\.gz: set RANKWISE_DATA"):
        queries.run()
