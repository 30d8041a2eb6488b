"""The detection experiment on a small set: what is trained and judged, tables, the command, and where images are."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.detection import average_precision, evaluate
from rankwise_lab.detection.shapes import write_shapes
from rankwise_lab.detection.store import FeatureStore
from rankwise_lab.detection.voc import read_voc
from rankwise_lab.reproduce import detection_data
from rankwise_lab.reproduce.detection import LOSSES, METHODS, Experiment, Plan
from rankwise_lab.reproduce.detection_results import KINDS, judge, redrawn, table5
from small_experiments import DETECTION as PLAN

from rankwise.cli.main import main


@pytest.fixture
def store(place: Path, features: Path) -> FeatureStore:
    """A test's own copy of the features."""
    return FeatureStore.open(shutil.copytree(features, place / "features"))


@pytest.fixture(scope="module")
def experiment(features: Path, wholes: Any) -> Experiment:
    """The experiment whose pieces are finished."""
    wholes.part("detection")
    return Experiment(FeatureStore.open(features), wholes.folder / "detection", PLAN)


def test_both_losses_are_trained_and_judged_alike(experiment: Experiment, wholes: Any) -> None:
    parts = wholes.found("detection")["classes"]
    assert [part["class"] for part in parts] == ["disc", "square"]
    for part in parts:
        for loss in LOSSES:
            assert part[loss]["Cs"] == [1.0, 100.0]
            assert part[loss]["C"] == part[loss]["Cs"][int(np.argmax(part[loss]["val"]))]
            model = experiment.model(part["class"], loss)
            assert model.loss == loss
            assert part[loss]["ap_2007"] == evaluate(model, experiment.store, part["class"], "test", kind="2007").value
        timings = part["inference"]["methods"]
        assert list(timings) == list(METHODS)
        assert all(timing["calls"] > 0 and timing["inference"] > 0.0 for timing in timings.values())
        assert (part["inference"]["positives"], part["inference"]["negatives"]) == (16, 16)


def test_classes_that_are_too_rare_are_left_out_and_named(store: FeatureStore, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no class that is in 13 images of train"):
        Experiment(store, tmp_path / "parts", Plan(least=13))
    manifest = json.loads((store.folder / "manifest.json").read_text())
    manifest["classes"] = ["disc", "rare", "square"]
    manifest["images"][0]["objects"].append({"name": "rare", "box": [1, 1, 9, 9], "difficult": False})
    (store.folder / "manifest.json").write_text(json.dumps(manifest))
    experiment = Experiment(FeatureStore.open(store.folder), tmp_path / "parts", PLAN)
    assert (experiment.classes, experiment.left_out) == (["disc", "square"], ["rare"])


def test_redrawing_every_image_once_gives_the_average_precision(experiment: Experiment, wholes: Any) -> None:
    found, store = wholes.found("detection"), experiment.store
    for one in judge(experiment).values():
        counts = np.array([[1], [3]]) * np.ones(one.objects.size, np.int64)
        area = average_precision(one.detections, store.truth(one.name, "test"))
        for kind, expected in (("ap_2007", one.ap.value), ("ap_area", area.value)):
            np.testing.assert_allclose(redrawn(one, counts, kind), expected, rtol=1e-12)
    for kind in KINDS:
        for part in found["classes"]:
            low, high = found["difference"][kind]["classes"][part["class"]]
            assert low <= part["ap"][kind] - part["zero-one"][kind] <= high
    *rows, mean, paper = table5(found).rows
    assert [row[0] for row in rows] == ["disc", "square"]
    assert float(mean[1]) == pytest.approx(np.mean([float(row[1]) for row in rows]), abs=0.011)
    assert paper[1:4] == ["29.50", "36.62", "+7.12"]


@pytest.mark.parametrize("pictures", [True, False])
def test_there_are_pictures_or_it_is_said_why_not(
    pictures: bool, place: Path, features: Path, wholes: Any, monkeypatch: pytest.MonkeyPatch, read_page: Any
) -> None:
    wholes.part("detection")
    monkeypatch.setattr(Plan, "quick", lambda: PLAN)
    shutil.copytree(wholes.folder / "detection", "report/detection")  # its pieces are finished
    devkit = ["--devkit", str(features.parent / "kit")] if pictures else []
    assert main(["reproduce", "detection", "--quick", "--features", str(shutil.copytree(features, "f")), *devkit]) == 0
    text = Path("report/index.html").read_text()
    assert (len(read_page(text).sources) > 6) == pictures
    assert bool(list(Path("report/detection").glob("pictures/disc-*.png"))) == pictures
    assert ("No pictures: the images of these features were not found" in text) == (not pictures)


def test_an_archive_is_unpacked_once_and_a_part_of_it_copied(place: Path) -> None:
    kit = write_shapes(place / "other" / "VOCdevkit", {"train": 12, "val": 4, "test": 4})
    (place / "data").mkdir()
    with tarfile.open(place / "data" / detection_data.ARCHIVE, "w:xz") as tar:
        tar.add(kit, "VOCdevkit")
    found = detection_data.find_devkit()
    assert found == detection_data.find_devkit()
    assert found.is_relative_to(place / "cache")
    assert read_voc(found).sets == read_voc(kit).sets
    part = read_voc(detection_data.smaller(found, None, {"train": 3, "val": 99, "test": 1}))
    assert {name: len(ids) for name, ids in part.sets.items()} == {"train": 3, "val": 4, "test": 1}
    assert part.sets["train"] == read_voc(kit).sets["train"][::4]


def test_a_devkit_without_lists_for_detection_is_passed_over(place: Path) -> None:
    kit = place / "data" / "VOCdevkit"
    (kit / "VOC2011" / "ImageSets" / "Action").mkdir(parents=True)
    with pytest.raises(MissingDataError, match="neither VOCdevkit nor"):
        detection_data.find_devkit()
    write_shapes(kit, {"train": 1, "val": 1, "test": 1})
    assert detection_data.find_devkit() == kit
    assert detection_data.default_year(kit) == "VOC2007"


def test_an_archive_that_leads_out_of_its_folder_is_refused(place: Path) -> None:
    (place / "data").mkdir()
    with tarfile.open(place / "data" / detection_data.ARCHIVE, "w:xz") as tar:
        member = tarfile.TarInfo("../outside.txt")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(tarfile.OutsideDestinationError):
        detection_data.find_devkit()
    assert not (place / "outside.txt").exists()
    assert not (place / "cache" / "outside.txt").exists()
    assert not list((place / "cache").glob(".*"))
