"""A features folder is the same however often its writing was cut short, and says what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import bytes_of
from numpy.typing import NDArray
from rankwise_lab.detection.store import FORMAT, VERSION, FeatureStore
from rankwise_lab.detection.voc import Object
from rankwise_lab.detection.writing import StoreWriter

SEED = 11
DIM = 6
ROWS = (3, 1, 4, 2)
IDS = ("a", "b", "ü", "d")
BOX = [1.0, 2.0, 8.0, 9.0]


def thing(name: str, difficult: bool = False, box: list[float] = BOX) -> dict[str, Any]:
    return {"name": name, "box": box, "difficult": difficult}


OBJECTS = (
    [thing("fish")],
    [thing("fish", True), thing("crab")],
    [],
    [thing("fish", True), thing("fish", False, [2, 2, 3, 3])],
)


def manifest(**settings: Any) -> dict[str, Any]:
    images = [
        {"id": image_id, "width": 20 + k, "height": 10, "objects": objects}
        for k, (image_id, objects) in enumerate(zip(IDS, OBJECTS, strict=True))
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "devkit": "VOC2007",
        "settings": {"proposals": "fast", "crop": 64, "dim": DIM, **settings},
        "classes": ["crab", "fish"],
        "sets": {"train": ["a", "ü"], "val": ["b"], "test": ["d", "a"]},
        "images": images,
    }


def windows(k: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng([SEED, k])
    return rng.random((ROWS[k], 4), np.float32), rng.random((ROWS[k], DIM), np.float32)


def write(folder: Path, first: int = 0, last: int = len(ROWS), finish: bool = True) -> None:
    writer = StoreWriter(folder, manifest())
    assert writer.done == first
    for k in range(first, last):
        writer.append(*windows(k))
    if finish:
        writer.finish()


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    write(tmp_path / "whole")
    return tmp_path / "whole"


def test_what_was_written_is_read_and_rows_stay_on_disk(whole: Path) -> None:
    store = FeatureStore.open(whole)
    assert store.images == list(IDS)
    assert store.offsets.tolist() == [0, 3, 4, 8, 10]
    for k in range(len(IDS)):
        boxes, features = windows(k)
        assert np.array_equal(store.windows(k), boxes)
        assert np.array_equal(store.features[store.offsets[k] : store.offsets[k + 1]], features)
    assert store.classes == ("crab", "fish")
    assert store.settings == {"proposals": "fast", "crop": 64, "dim": DIM}
    assert store.sizes.tolist() == [[20, 10], [21, 10], [22, 10], [23, 10]]
    assert {name: i.tolist() for name, i in store.sets.items()} == {"train": [0, 2], "val": [1], "test": [3, 0]}
    assert store.objects(0) == (Object("fish", (1.0, 2.0, 8.0, 9.0), False),)
    assert (len(store), store.bags.sizes.tolist(), store.bags.width) == (4, list(ROWS), DIM)
    assert isinstance(store.features, np.memmap)
    assert isinstance(store.boxes, np.memmap)
    assert not store.features.flags.writeable


def test_a_finished_folder_has_four_files_that_numpy_reads_and_is_left_as_it_is(whole: Path) -> None:
    before = bytes_of(whole)
    assert sorted(before) == ["boxes.npy", "features.npy", "manifest.json", "offsets.npy"]
    assert np.load(whole / "features.npy").shape == (10, DIM)
    assert np.load(whole / "boxes.npy").dtype == np.float32
    with pytest.raises(ValueError, match="has all its 4 images"):
        StoreWriter(whole, manifest()).append(*windows(0))
    write(whole, 4)
    assert bytes_of(whole) == before


def test_images_with_only_difficult_objects_of_a_class_have_no_label_but_a_truth(whole: Path) -> None:
    store, sets = FeatureStore.open(whole), ["train", "val", "test"]
    assert [part.tolist() for part in store.labels("fish", sets)] == [[0, 2, 3], [1, 0, 1]]
    assert [part.tolist() for part in store.labels("crab", "trainval")] == [[0, 1, 2], [0, 1, 0]]
    truth = store.truth("fish", sets)
    assert [boxes.shape for boxes, _ in truth] == [(1, 4), (1, 4), (0, 4), (2, 4)]
    assert [difficult.tolist() for _, difficult in truth] == [[False], [True], [], [True, False]]
    assert truth[3][0].tolist() == [BOX, [2, 2, 3, 3]]
    with pytest.raises(ValueError, match=r"no class 'eel'; choose from crab, fish"):
        store.labels("eel", "train")


def half(name: str) -> Callable[[Path], object]:
    """A file that was being written."""
    return lambda folder: (folder / f".{name}.0123456789abcdef").write_bytes(b"half")


def one_of_two(folder: Path) -> None:
    writer = StoreWriter(folder, manifest())
    writer._join("features", np.array([0, 3, 4, 8, 10]), DIM)


def not_cleared(folder: Path) -> None:
    shutil.copytree(folder / "parts", folder / "kept")
    write(folder, 4)
    (folder / "kept").rename(folder / "parts")


# How many images were done, and what the kill left.
KILLED: list[tuple[int, Callable[[Path], object]]] = [
    *((done, lambda folder: None) for done in range(5)),
    (0, lambda folder: (folder / "manifest.json").rename(folder / ".manifest.json.0123456789abcdef")),
    *((4, killed) for killed in (half("offsets.npy"), half("features.npy"), one_of_two, not_cleared)),
]


@pytest.mark.parametrize(("done", "kill"), KILLED)
def test_a_run_killed_at_any_moment(whole: Path, tmp_path: Path, done: int, kill: Callable[[Path], object]) -> None:
    write(tmp_path / "begun", 0, done, finish=False)
    kill(tmp_path / "begun")
    if kill is not not_cleared:
        with pytest.raises(ValueError, match=r"is not finished; run the same|is not a features folder"):
            FeatureStore.open(tmp_path / "begun")
    write(tmp_path / "begun", done)
    assert bytes_of(tmp_path / "begun") == bytes_of(whole)


FEWER = [{**image, "objects": []} if image["id"] == "b" else image for image in manifest()["images"]]
OTHERS = {
    "was begun with crop 64, and not 96; name another folder": manifest(crop=96),
    "was begun with context None, and not 0.5": manifest(context=0.5),
    "was begun with other images or objects, first b;": manifest() | {"images": FEWER},
    "was begun with other images or sets;": manifest() | {"sets": {"train": ["a"]}},
}


@pytest.mark.parametrize("says", OTHERS)
def test_other_settings_images_and_sets_are_named(whole: Path, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        StoreWriter(whole, OTHERS[says])


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match=r"is no features folder, but has 'letter.txt'; name a new or an empty one"):
        StoreWriter(tmp_path, manifest())
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ValueError, match="is not a manifest of features"):
        StoreWriter(tmp_path, manifest())
    assert sorted(bytes_of(tmp_path)) == ["letter.txt", "manifest.json"]


@pytest.mark.parametrize("name", ["features", "boxes"])
def test_rows_that_are_damaged_or_missing_are_noticed(whole: Path, tmp_path: Path, name: str) -> None:
    write(tmp_path / "begun", finish=False)
    (tmp_path / "begun" / "parts" / "000002.npz").write_bytes(b"no rows")
    with pytest.raises(ValueError, match=r"000002.npz is damaged \(.*\); remove .*begun and prepare again"):
        StoreWriter(tmp_path / "begun", manifest()).finish()
    os.truncate(whole / f"{name}.npy", 200)
    with pytest.raises(ValueError, match="is damaged"):
        FeatureStore.open(whole)
    (whole / f"{name}.npy").unlink()
    with pytest.raises(ValueError, match=rf"{name}.npy: no such file; remove"):
        FeatureStore.open(whole)


def test_a_folder_that_does_not_fit_or_is_none_is_refused(tmp_path: Path, whole: Path) -> None:
    for offsets, says in (([0, 3, 4, 10], r"is damaged \(sizes do not agree\); remove"), ([0, 3, 3, 8, 10], "damaged")):
        np.save(whole / "offsets.npy", np.array(offsets))
        with pytest.raises(ValueError, match=says):
            FeatureStore.open(whole)
    (whole / "manifest.json").write_text(json.dumps({**manifest(), "version": 2}))
    with pytest.raises(ValueError, match="has version 2, but this release reads version 1; prepare it again"):
        FeatureStore.open(whole)
    with pytest.raises(ValueError, match=r"it has no manifest.json; create one with `rankwise detect prepare`"):
        FeatureStore.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "letters"}')
    with pytest.raises(ValueError, match="is not a manifest of features"):
        FeatureStore.open(tmp_path)
