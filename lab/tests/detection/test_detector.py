"""Detectors from labels of whole images: what they see, what they find, and what they refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.detection import detector as detectors
from rankwise_lab.detection.boxes import iou, nms
from rankwise_lab.detection.detector import Recipe
from rankwise_lab.detection.detector_file import read_detector, write_detector
from rankwise_lab.detection.shapes import CLASSES
from rankwise_lab.detection.store import FeatureStore
from rankwise_lab.detection.writing import MANIFEST

import rankwise as rw
from rankwise.latent import LatentRankSVM

ATOL = 1e-12
Write = Callable[..., Path]
Changed = Callable[..., FeatureStore]


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory, write_features: Write) -> Path:
    """A features folder, which no test changes."""
    return write_features(tmp_path_factory.mktemp("shapes") / "features")


@pytest.fixture
def store(features: Path) -> FeatureStore:
    return FeatureStore.open(features)


@pytest.fixture(scope="module")
def disc(features: Path) -> LatentRankSVM:
    """A detector of discs."""
    return detectors.train(FeatureStore.open(features), "disc", C=10.0)


@pytest.fixture
def changed(features: Path, tmp_path: Path) -> Callable[..., FeatureStore]:
    """The store after a change of the objects of its images, in a folder of its own."""

    def change(of: Callable[[int, list[dict[str, Any]]], object]) -> FeatureStore:
        folder = Path(shutil.copytree(features, tmp_path / "features"))
        manifest = json.loads((folder / MANIFEST).read_text())
        for k, image in enumerate(manifest["images"]):
            of(k, image["objects"])
        (folder / MANIFEST).write_text(json.dumps(manifest))
        return FeatureStore.open(folder)

    return change


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ap", "zero-one"])
@pytest.mark.parametrize("name", CLASSES)
def test_objects_are_found_where_only_images_were_labelled(store: FeatureStore, name: str, loss: str) -> None:
    model = detectors.train(store, name, "trainval", Recipe(loss), C=30.0)
    assert detectors.image_ap(model, store, name) > 0.95
    assert detectors.evaluate(model, store, name, overlap=0.3).value > 0.75
    assert detectors.localised(model, store, name, overlap=0.3) > 0.8


def test_training_does_not_look_at_boxes(changed: Changed, disc: LatentRankSVM) -> None:
    after = changed(lambda _, objects: [thing.update(box=[1.0, 1.0, 2.0, 2.0]) for thing in objects])
    np.testing.assert_array_equal(detectors.train(after, "disc", C=10.0).coef_, disc.coef_)


def test_a_class_must_be_in_some_images_and_not_in_others(changed: Changed) -> None:
    square = {"name": "square", "box": [1.0, 1.0, 9.0, 9.0], "difficult": False}
    everywhere = changed(lambda _, objects: objects.append(square))
    with pytest.raises(ValueError, match=r"every image of train has 'square'; a detector needs images with and"):
        detectors.train(everywhere, "square", "train")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a random start may get nowhere
@pytest.mark.parametrize("start", detectors.STARTS)
def test_a_detector_is_the_latent_ranker_of_its_images_from_every_start(store: FeatureStore, start: str) -> None:
    images, y = store.labels("disc", "train")
    centre = np.array([detectors.central_window(store.windows(int(i)), *store.sizes[i]) for i in images])
    init = {"whole": "first", "centre": centre}.get(start, start)
    model = detectors.train(store, "disc", "train", Recipe(start=start, seed=3), C=3.0)
    expected = LatentRankSVM(C=3.0, init=init, random_state=3).fit(store.bags[images], y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_C_is_chosen_by_the_ranking_of_images_that_were_not_trained_on(store: FeatureStore) -> None:
    seen = []
    Cs = [0.3, 3.0, 30.0]
    choice = detectors.choose_C(store, "disc", "trainval", "val", Cs, progress=lambda C, ap: seen.append((C, ap)))
    images, y = store.labels("disc", "train")
    held, held_y = store.labels("disc", "val")
    for k, C in enumerate(Cs):
        model = LatentRankSVM("ap", C).fit(store.bags[images], y)
        ap = rw.metrics.average_precision(model.decision_function(store.bags[held]), held_y == 1)
        assert choice.scores[k] == pytest.approx(ap, abs=ATOL)
    assert Cs[int(np.argmax(choice.scores))] == choice.C
    assert seen == list(zip(Cs, choice.scores.tolist(), strict=True))


def test_detections_are_the_windows_that_suppression_keeps(store: FeatureStore, disc: LatentRankSVM) -> None:
    found = detectors.detect(disc, store, "test", threshold=0.4, max_per_image=5)
    for k, i in enumerate(store.members("test").tolist()):
        here = np.asarray(found.image) == k
        scores = np.asarray(store.features[store.offsets[i] : store.offsets[i + 1]], float) @ disc.coef_[0]
        kept = nms(store.windows(i), scores, 0.4)[:5]
        np.testing.assert_array_equal(np.asarray(found.boxes)[here], store.windows(i)[kept])
        np.testing.assert_allclose(np.asarray(found.scores)[here], scores[kept] + disc.intercept_[0], 1e-6, 1e-9)
        overlaps = iou(store.windows(i)[kept], store.windows(i)[kept])
        assert (overlaps[np.triu_indices(kept.size, 1)] <= 0.4).all()


def test_features_of_another_kind_are_refused(store: FeatureStore, disc: LatentRankSVM, tmp_path: Path) -> None:
    write_detector(tmp_path / "m.rw", disc, "disc", store.settings)
    stored = read_detector(tmp_path / "m.rw")
    store.settings["max_windows"] = 7
    stored.check(store)
    store.settings["crop"] = 32
    with pytest.raises(ValueError, match=r"crop 32, but the model was trained with 16; prepare"):
        stored.check(store)
    disc.save(tmp_path / "m.rw")
    with pytest.raises(ValueError, match=r"m\.rw is not a detector; create one with `rankwise detect train`"):
        read_detector(tmp_path / "m.rw")
