"""VOC 2011 action: what is read of a folder laid out as the devkit, and what is refused with file, line and remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from action_years import CLASSES, SIZES, D, Year
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.data.voc_action import find_voc_action, read_voc_action


@pytest.fixture
def year(tmp_path: Path) -> Year:
    return Year(tmp_path / "VOCdevkit" / "VOC2011")


def check(found: Any, year: Year, sets: tuple[str, str]) -> None:
    assert found.sets == sets
    assert found.classes == CLASSES
    for X, Y, part in ((found.X, found.Y, sets[0]), (found.X_test, found.Y_test, sets[1])):
        np.testing.assert_array_equal(X, year.X[part].astype(np.float32))
        np.testing.assert_array_equal(Y, year.labels[part])
        assert X.dtype == np.float32
        assert Y.dtype == np.bool_
        assert X.flags.c_contiguous


def test_train_and_val_are_read_where_test_has_no_labels_or_is_absent(year: Year, tmp_path: Path) -> None:
    for label in ("0", "?"):
        unknown = Year(tmp_path / label, test_labels=label)
        check(read_voc_action(unknown.root), unknown, ("train", "val"))
    for path in [*year.lists.glob("*test.txt"), *year.lists.glob("*trainval.txt")]:
        path.unlink()
    for part in ("test", "trainval"):
        (year.features / f"{part}.npy").unlink()
    year.write("phoning_train", ["", *reversed(year.lines("phoning_train"))])
    check(read_voc_action(year.root), year, ("train", "val"))


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2"])
def test_floats_of_any_size_and_order_are_read(dtype: str, year: Year) -> None:
    for part in ("trainval", "test"):
        year.X[part] = np.round(year.X[part], 1).astype(dtype)
        np.save(year.features / f"{part}.npy", np.asfortranarray(year.X[part]))
    check(read_voc_action(year.root), year, ("trainval", "test"))


def test_the_year_is_found_in_the_folders_above_it_if_it_has_features(year: Year, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "VOCdevkit", year.root):
        assert find_voc_action(folder) == year.root
    assert find_voc_action(tmp_path / "elsewhere") is None
    os.rename(year.features, tmp_path / "Features")
    assert find_voc_action(tmp_path) is None


# File of a list, line from 1, what is written there, and what is said of it.
LINES = [
    ("phoning_trainval", 2, "2011_000000 2 2", "'2' is neither 1"),
    ("jumping_test", 2, "2011_000006 1 0", "'0' is neither 1"),  # unknown for one in test
    ("phoning_trainval", 2, "2011_000000 2", "'2011_000000 2' is not an image"),
    ("trainval", 1, "2011_000000", "'2011_000000' is not an image, a person's number"),
    ("trainval", 1, "../x/y 1", ".* is not an image"),
    ("trainval", 3, "2011_000000 1", "2011_000000, person 1, is also on line 1"),
    ("phoning_test", 2, "2011_000005 2 1", ".* is also on line 1"),
    ("phoning_test", 2, "2011_000099 1 1", "2011_000099, person 1, is not in .*test.txt"),
]


@pytest.mark.parametrize(("name", "number", "line", "said"), LINES)
def test_a_line_that_is_wrong_is_named(name: str, number: int, line: str, said: str, year: Year) -> None:
    lines = year.lines(name)
    lines[number - 1] = line
    year.write(name, lines)
    with pytest.raises(ValueError, match=rf"{name}\.txt, line {number}: {said}.*; "):
        read_voc_action(year.root)


def test_a_person_of_both_sets_or_missing_in_the_file_of_a_class_is_named(year: Year) -> None:
    year.write("phoning_test", year.lines("phoning_test")[:-1])
    with pytest.raises(ValueError, match=r"/test\.txt, line 7: 2011_000008, person 2, is not in .*phoning_test\.txt"):
        read_voc_action(year.root)
    year.write("test", ["2011_000000 1", *year.lines("test")[1:]])
    with pytest.raises(ValueError, match=r"2011_000000, person 1, is in trainval\.txt and test\.txt; keep it in one"):
        read_voc_action(year.root)


def test_lists_of_one_label_that_are_empty_or_no_text_are_refused(year: Year) -> None:
    for label in ("1", "-1"):
        year.write("phoning_test", [f"{line} {label}" for line in year.lines("test")])
        with pytest.raises(ValueError, match=rf"phoning_test\.txt: every person has the label {label}; both are need"):
            read_voc_action(year.root)
    year.write("trainval", [" "])
    with pytest.raises(ValueError, match=r"trainval\.txt is empty"):
        read_voc_action(year.root)
    (year.lists / "trainval.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"trainval\.txt is not UTF-8 text"):
        read_voc_action(year.root)


@pytest.mark.parametrize("name", ["ImageSets/Action/test.txt", "ActionFeatures/trainval.npy"])
def test_a_missing_file_is_named_with_what_to_put_there(name: str, year: Year) -> None:
    (year.root / name).unlink()
    with pytest.raises(MissingDataError, match=f"{name}: no such file; (unpack|save)") as told:
        read_voc_action(year.root)
    assert "\n" not in str(told.value)


def test_a_year_without_files_of_classes_is_missing_data(year: Year) -> None:
    for path in year.lists.glob("*_*.txt"):
        path.unlink()
    with pytest.raises(MissingDataError, match=r"ImageSets/Action has no file <class>_train\.txt"):
        read_voc_action(year.root)


def with_value(value: float) -> Any:
    X = np.ones((SIZES["test"], D))
    X[3, 2] = value
    return X


FEATURES: dict[str, tuple[Any, str]] = {
    "a row too few": (np.ones((6, D)), r"test\.npy has 6 rows, but .*test\.txt has 7 persons; save one row per person"),
    "a column more": (np.ones((7, D + 1)), r"trainval\.npy and .*test\.npy have 4 and 5 columns"),
    "one axis": (np.ones(7), "an array of float64 and shape"),
    "whole numbers": (np.ones((7, D), int), "an array of int64 and shape"),
    "nan": (with_value(np.nan), r"test\.npy, row 3, column 2 \(.*test\.txt, line 4\): nan is not a number"),
    "too large": (with_value(1e30), r"row 3, column 2 .*: 1e\+30 is not a number up to 1e\+18"),
    "objects": (
        np.array([[None]]),
        r"test\.npy: Array can't be memory-mapped: Python objects in dtype.; save it again",
    ),
}


@pytest.mark.parametrize("case", FEATURES)
def test_features_that_do_not_fit_are_refused(case: str, year: Year) -> None:
    content, said = FEATURES[case]
    np.save(year.features / "test.npy", content, allow_pickle=True)
    with pytest.raises(ValueError, match=said):
        read_voc_action(year.root)


def test_features_cut_short_are_refused(year: Year) -> None:
    path = year.features / "test.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"test\.npy: mmap length is greater than file size; save it again"):
        read_voc_action(year.root)
