"""The detection experiment from end to end on a small set: its tables, its page, and a run that is cut off."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from rankwise_lab.data.folder import MissingDataError
from rankwise_lab.detection import FeatureStore, average_precision, evaluate, read_voc
from rankwise_lab.detection.shapes import write_shapes
from rankwise_lab.reproduce import detection_data
from rankwise_lab.reproduce.detection import LOSSES, METHODS, Experiment, Plan
from rankwise_lab.reproduce.detection_results import KINDS, Judged, document, judge, redrawn, table5

from rankwise.cli.main import main

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Path]
PLAN = Plan(Cs=(1.0, 100.0), least=4)
WINDOWS = 60
COMMAND = ["reproduce", "detection", "--features", "features", "--devkit", "kit", "--quick"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, write_features: Write) -> Path:
    """A folder with images in which objects are hard to find, `kit`, and with their features."""
    return write_features(tmp_path_factory.mktemp("written") / "features", noise=0.25, windows=WINDOWS).parent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that commands are run in, on a machine without data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def store(place: Path, written: Path) -> FeatureStore:
    """A test's own copy of the features."""
    shutil.copytree(written / "features", place / "features")
    return FeatureStore.open(place / "features")


class Whole(NamedTuple):
    """A run that nothing cut off."""

    experiment: Experiment
    parts: list[dict[str, Any]]
    judged: dict[tuple[str, str], Judged]
    found: dict[str, Any]


@pytest.fixture(scope="module")
def whole(written: Path) -> Whole:
    experiment = Experiment(FeatureStore.open(written / "features"), written / "parts", PLAN)
    parts = experiment.run()
    judged = judge(experiment)
    return Whole(experiment, parts, judged, document(experiment, parts, judged, {}))


def untimed(found: Any) -> Any:
    """Results without times, which no two runs share."""
    if isinstance(found, dict):
        times = ("timing", "inference", "seconds", "total", "products")
        return {key: untimed(value) for key, value in found.items() if key not in times}
    return [untimed(value) for value in found] if isinstance(found, list) else found


# The experiment


def test_both_losses_are_trained_and_judged_alike(whole: Whole) -> None:
    experiment, parts = whole.experiment, whole.parts
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


def test_a_run_that_was_cut_off_goes_on_to_the_same_results(whole: Whole, tmp_path: Path) -> None:
    store = whole.experiment.store
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        if len(said) in (2, 5, 9):
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            Experiment(store, tmp_path / "parts", PLAN, say=stop).run()
    experiment = Experiment(store, tmp_path / "parts", PLAN, say=said.append)
    found = document(experiment, experiment.run(), judge(experiment), {})
    assert untimed(found) == untimed(whole.found)
    again = Experiment(store, tmp_path / "parts", PLAN, say=lambda line: pytest.fail(line))
    assert document(again, again.run(), judge(again), {}) == found
    assert not list((tmp_path / "parts").glob("*.checkpoint"))


def test_results_of_another_plan_are_not_mixed_in(store: FeatureStore, tmp_path: Path) -> None:
    Experiment(store, tmp_path / "parts", PLAN)
    with pytest.raises(
        ValueError, match=r"results of another plan or of other features \(plan.Cs is .*\): name another --out"
    ):
        Experiment(store, tmp_path / "parts", Plan(Cs=(1.0,), least=4))


def test_classes_that_are_too_rare_are_left_out_and_named(store: FeatureStore, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no class that is in 13 images of train"):
        Experiment(store, tmp_path / "parts", Plan(least=13))
    manifest = json.loads((store.folder / "manifest.json").read_text())
    manifest["classes"] = ["disc", "rare", "square"]
    manifest["images"][0]["objects"].append({"name": "rare", "box": [1, 1, 9, 9], "difficult": False})
    (store.folder / "manifest.json").write_text(json.dumps(manifest))
    experiment = Experiment(FeatureStore.open(store.folder), tmp_path / "parts", PLAN)
    assert (experiment.classes, experiment.left_out) == (["disc", "square"], ["rare"])


def test_redrawing_every_image_once_gives_the_average_precision(whole: Whole) -> None:
    _, parts, judged, found = whole
    store = whole.experiment.store
    for one in judged.values():
        counts = np.array([[1], [3]]) * np.ones(one.objects.size, np.int64)
        area = average_precision(one.detections, store.truth(one.name, "test"))
        for kind, expected in (("ap_2007", one.ap.value), ("ap_area", area.value)):
            np.testing.assert_allclose(redrawn(one, counts, kind), expected, rtol=1e-12)
    for kind in KINDS:
        for part in parts:
            low, high = found["difference"][kind]["classes"][part["class"]]
            assert low <= part["ap"][kind] - part["zero-one"][kind] <= high
    *rows, mean, paper = table5(found).rows
    assert [row[0] for row in rows] == ["disc", "square"]
    assert float(mean[1]) == pytest.approx(np.mean([float(row[1]) for row in rows]), abs=0.011)
    assert paper[1:4] == ["29.50", "36.62", "+7.12"]


# The command


@pytest.fixture(scope="module")
def printed(written: Path) -> str:
    """What the command said while it wrote its report beside the features."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
        patch.chdir(written)
        assert main(COMMAND) == 0
    return said.getvalue()


def test_the_command_writes_a_report(
    written: Path, printed: str, monkeypatch: pytest.MonkeyPatch, read_page: Any
) -> None:
    monkeypatch.chdir(written)
    found = json.loads(Path("report/detection.json").read_text())
    for part in found["classes"]:
        for loss in LOSSES:
            assert f"{100 * part[loss]['ap_2007']:.2f}" in printed
    rows = list(csv.DictReader(io.StringIO(Path("report/detection.csv").read_text())))
    assert [row["class"] for row in rows] == ["disc", "square", "mean"]
    assert float(rows[0]["ap:ap_2007"]) == found["classes"][0]["ap"]["ap_2007"]
    text = Path("report/index.html").read_text()
    seen = read_page(text)
    assert seen.open == []
    assert {"disc", "square", "mean"} <= set(seen.cells)
    assert len(seen.sources) > 6
    assert all(source.startswith("data:") for source in seen.sources)  # nothing from elsewhere
    assert "http" not in text.replace("http-equiv", "")
    assert list(Path("report/detection/pictures").glob("disc-*.png"))
    assert main(COMMAND) == 0
    assert Path("report/index.html").read_text() == text


@pytest.mark.usefixtures("store", "printed")
def test_without_images_there_are_no_pictures_and_the_page_says_why(written: Path) -> None:
    # Detectors are trained already.
    shutil.copytree(written / "report" / "detection", "r/detection", ignore=shutil.ignore_patterns("pictures"))
    assert main(["reproduce", "detection", "--features", "features", "--quick", "--out", "r"]) == 0
    assert not Path("r/detection/pictures").exists()
    assert "No pictures: the images of these features were not found" in Path("r/index.html").read_text()


@pytest.mark.usefixtures("place")
def test_where_there_are_no_data_one_line_says_what_is_needed(capsys: Capture) -> None:
    assert main(["reproduce", "detection", "--quick"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "neither VOCdevkit nor underwater-voc.tar.xz; pass --devkit" in line


# Data


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
    for name in detection_data.SETS:
        other = kit / "VOC2012" / "ImageSets" / "Main" / f"{name}.txt"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("")
    assert detection_data.years_of(kit) == ["VOC2007", "VOC2012"]
    assert detection_data.default_year(kit) == "VOC2007"
    (kit / "VOC2007").rename(kit / "VOC2006")
    assert detection_data.default_year(kit) is None


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


@pytest.mark.skipif(
    not (detection_data.data_folder() / detection_data.ARCHIVE).is_file(), reason="the underwater set is not here"
)
def test_the_underwater_set_has_its_images_and_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path))
    found = read_voc(detection_data.find_devkit(), sets=detection_data.SETS)
    assert {name: len(ids) for name, ids in found.sets.items()} == {"train": 985, "val": 217, "test": 213}
    assert {"echinus", "holothurian", "scallop", "starfish"} <= set(found.classes)
    part = read_voc(detection_data.smaller(detection_data.find_devkit(), None, {"train": 2, "val": 1, "test": 1}))
    assert len(part.images) == 4
    assert os.path.getsize(part.images[0].path) > 1000
