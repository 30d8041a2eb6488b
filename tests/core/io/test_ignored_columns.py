"""Columns that are no features: an id or a name stays in the file, whatever it holds, and is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankwise.io import read_data

SUFFIXES = (".csv", ".tsv", ".parquet")
TABLE = pd.DataFrame(
    {
        "id": ["C1", "C2", 'C,"3"', ""],
        "a": [0.5, 1.5, 2.5, 3.5],
        "label": [1, 0, 1, 0],
        "note": ["nan", "inf", "é", "x y"],
        "search": ["q1", "q1", "q2", "q2"],
        "b": [2, 3, 4, 5],
    }
)


def write(path: Path, table: pd.DataFrame = TABLE) -> Path:
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("names", [None, ["b", "a"]], ids=["any features", "those of a model"])
def test_ignored_columns_may_hold_anything(suffix: str, names: list[str] | None, tmp_path: Path) -> None:
    path = write(tmp_path / f"data{suffix}")
    found = read_data(path, query="search", ignore=["note", "id"], feature_names=names)
    assert found.feature_names == (names or ["a", "b"])
    np.testing.assert_array_equal(found.X, TABLE[found.feature_names].to_numpy(float))
    assert found.y is not None
    assert found.qid is not None
    assert (found.y.tolist(), found.qid.tolist()) == (TABLE["label"].tolist(), TABLE["search"].tolist())


def test_parquet_columns_of_any_type_may_be_ignored(tmp_path: Path) -> None:
    table = TABLE.drop(columns="search").assign(note=pd.Timestamp("2026-01-01"), id=[[1], [2, 3], [], [4]])
    found = read_data(write(tmp_path / "data.parquet", table), ignore=["id", "note"])
    assert found.feature_names == ["a", "b"]
    np.testing.assert_array_equal(found.X, TABLE[["a", "b"]].to_numpy(float))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_of_words_that_is_not_ignored_is_named_with_the_remedy(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"data{suffix}")
    with pytest.raises(ValueError, match=r"column 'id': .*name (it|the column) with ignore="):
        read_data(path, query="search", ignore=["note"])


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (
            {"ignore": ["id", "gone"]},
            ValueError,
            r"no column 'gone', asked for by ignore=; the columns are 'id', 'a', ",
        ),
        ({"ignore": ["label"]}, ValueError, r"column 'label' is the label and cannot be ignored as well"),
        ({"ignore": ["search"], "query": "search"}, ValueError, r"column 'search' is the query and cannot be ignored"),
        ({"ignore": "id"}, TypeError, r"ignore must be a sequence of column names, got 'id'; write \['id'\]"),
        ({"ignore": ["id", "a", "note", "search", "b"]}, ValueError, r"holds no features"),
        ({"ignore": ["id", "a", "note", "search"], "feature_names": ["b", "a"]}, ValueError, r"no column 'a'"),
    ],
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_ignored_is_refused(
    suffix: str, options: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    path = write(tmp_path / f"data{suffix}")
    with pytest.raises(error, match=said):
        read_data(path, **options)


def test_formats_without_names_have_nothing_to_ignore(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    path.write_text("1 1:0.5\n0 1:2\n")
    with pytest.raises(ValueError, match=r"ignore= name columns, but svmlight data have none; leave them out"):
        read_data(path, ignore=["id"])
