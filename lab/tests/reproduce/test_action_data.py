"""The samples of the action experiments: which are found, in what order, and what features of images they have."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from action_years import Year
from archives import write_folder
from cifar_batches import CLASSES, published
from numpy.typing import NDArray
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.reproduce import action_data, patches
from rankwise_lab.reproduce.action_data import ActionData, find_action
from rankwise_lab.reproduce.patches import activations, learn_detectors

RTOL = 1e-4


@pytest.fixture(autouse=True)
def folders(place: Path) -> Path:
    """An empty folder of data, and an empty cache."""
    (place / "data").mkdir()
    return place / "data"


@pytest.fixture
def few_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "_SAMPLED", 5000)


def check_form(found: ActionData) -> None:
    for X, Y in ((found.X, found.Y), (found.X_test, found.Y_test)):
        assert X.dtype == np.float32
        assert X.flags.c_contiguous
        assert Y.dtype == np.bool_
        assert X.shape[0] == Y.shape[0]
        assert Y.shape[1] == len(found.classes)
        assert np.isfinite(X).all()
    varied = np.ptp(found.X, axis=0) > 0.0
    np.testing.assert_allclose(found.X.mean(axis=0, dtype=float), 0.0, atol=1e-4)
    np.testing.assert_allclose(found.X.std(axis=0, dtype=float)[varied], 1.0, rtol=1e-3)
    assert (found.X_test[:, ~varied] == 0.0).all()
    assert "\n" not in found.what


def test_digits_are_there_where_nothing_else_is() -> None:
    found = find_action(quick=True)
    check_form(found)
    assert found.X.shape == found.X_test.shape == (800, 404)
    assert found.classes == tuple(f"digit {k}" for k in range(10))
    assert found.Y.sum(axis=0).tolist() == [80] * 10
    assert (found.Y.sum(axis=1) == 1).all()
    assert found.stand_in
    assert "digits of scikit-learn: 800 images to train and 800 to test with, described by 404 features" in found.what


@pytest.mark.usefixtures("few_patches")
def test_the_same_data_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_action(quick=True)
    assert len(list((tmp_path / "cache").glob("action-*.npz"))) == 1
    with monkeypatch.context() as patched:
        patched.setattr(action_data, "learn_detectors", lambda *_: pytest.fail("made again"))
        second = find_action(quick=True)
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "other"))
    third = find_action(quick=True)
    for found in (second, third):
        assert found.digest == first.digest
        np.testing.assert_array_equal(found.X_test, first.X_test)


@pytest.mark.usefixtures("few_patches")
def test_cifar_goes_before_digits_and_may_be_given_or_found(folders: Path, tmp_path: Path) -> None:
    write_folder(folders / "cifar-10-batches-py", published())
    found = find_action(quick=True)
    check_form(found)
    assert (found.X.shape, found.X_test.shape) == ((100, 404), (20, 404))
    assert found.classes == CLASSES
    assert found.stand_in
    assert found.what.startswith("CIFAR-10: 100 images to train and 20 to test with")
    given = find_action(write_folder(tmp_path / "mine", published()), quick=True)
    assert (given.digest, given.what) == (found.digest, found.what)


def test_what_is_there_but_cannot_be_read_is_not_passed_over(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(folders / "cifar-10-batches-py", published())
    (folders / "cifar-10-batches-py" / "test_batch").write_bytes(b"cos\nsystem\n(S'exit'\ntR.")
    with pytest.raises(ValueError, match="test_batch"):
        find_action()
    shutil.rmtree(folders / "cifar-10-batches-py")
    for part in ("train", "test"):
        (folders / "cifar10" / part / "cat").mkdir(parents=True)
        (folders / "cifar10" / part / "cat" / "1.png").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match="PIL"):
        find_action()


@pytest.mark.parametrize("way", ["given", "year given", "found"])
def test_voc_goes_before_cifar(way: str, folders: Path, tmp_path: Path) -> None:
    root = folders if way == "found" else tmp_path / "mine"
    write_folder(root / "cifar-10-batches-py", published())
    year = Year(root / "VOCdevkit" / "VOC2011").root
    found = find_action({"given": root, "year given": year, "found": None}[way])
    check_form(found)
    assert (found.X.shape, found.X_test.shape) == ((11, 4), (7, 4))
    assert (found.X[:, 0] == 0.0).all()
    assert found.classes == ("jumping", "phoning", "ridingbike")
    assert not found.stand_in
    assert "11 persons of trainval to train and 7 of test to test with, described by 4 features" in found.what


def test_train_and_val_stand_in_where_test_has_no_labels(folders: Path) -> None:
    Year(folders / "VOCdevkit" / "VOC2011", test_labels="0")
    found = find_action()
    assert found.stand_in
    assert "of train to train and 5 of val to test with" in found.what
    assert "test has no labels here" in found.what


def test_a_feature_that_changes_in_test_only_is_refused(tmp_path: Path) -> None:
    year = Year(tmp_path / "mine")
    np.save(year.features / "trainval.npy", 1e-30 * np.eye(11)[:, 3:4])
    np.save(year.features / "test.npy", np.full((7, 1), 1e18))
    with pytest.raises(ValueError, match="feature 0 hardly varies in training, but widely in test"):
        find_action(year.root)


@pytest.mark.parametrize("made", [False, True])
def test_a_path_given_without_data_is_told_in_a_line(made: bool, tmp_path: Path) -> None:
    path = tmp_path / "given"
    if made:
        path.mkdir()
    with pytest.raises(
        MissingDataError, match="given has neither VOC 2011 action with ActionFeatures/ nor CIFAR-10"
    ) as told:
        find_action(path)
    assert "\n" not in str(told.value)


def images_of(n: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (n, 2, 9, 8), dtype=np.uint8)


@pytest.mark.usefixtures("few_patches")
def test_an_activation_is_the_mean_distance_less_the_distance_summed_over_a_quadrant() -> None:
    images = images_of(3)
    detectors = learn_detectors(images, 5, 3, seed=0)
    found = activations(images, detectors)
    expected = np.zeros((3, 4, 5))
    for i, image in enumerate(images.astype(np.float64)):
        for row in range(7):
            for column in range(6):
                patch = image[:, row : row + 3, column : column + 3].ravel()
                patch = (patch - patch.mean()) / np.sqrt(patch.var() + 10.0)
                distances = np.linalg.norm((patch - detectors.mean) @ detectors.whiten - detectors.centres, axis=1)
                quadrant = 2 * (row >= 4) + (column >= 3)
                expected[i, quadrant] += np.maximum(distances.mean() - distances, 0.0)
    np.testing.assert_allclose(found, expected.reshape(3, 20), rtol=RTOL, atol=1e-4)
