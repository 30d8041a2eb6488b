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
    with StoreWriter(folder, manifest()) as writer:
        assert writer.done == first
        for k in range(first, last):
            writer.append(*windows(k))
        if finish:
            writer.finish()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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


def test_a_finished_folder_has_five_files_that_numpy_reads_and_is_left_as_it_is(whole: Path) -> None:
    before = content(whole)
    assert sorted(before) == ["boxes.npy", "features.npy", "journal.jsonl", "manifest.json", "offsets.npy"]
    assert np.load(whole / "features.npy").shape == (10, DIM)
    assert np.load(whole / "boxes.npy").dtype == np.float32
    lines = [json.loads(line) for line in before["journal.jsonl"].splitlines()]
    assert lines[2] == {"index": 2, "id": "ü", "first": 4, "rows": 4}
    write(whole, 4)
    with StoreWriter(whole, manifest()) as writer, pytest.raises(ValueError, match="has all its 4 images"):
        writer.append(*windows(0))
    assert content(whole) == before


def test_a_set_or_several_name_images_once_in_order(whole: Path) -> None:
    store = FeatureStore.open(whole)
    assert store.members("test").tolist() == [0, 3]
    assert store.members(["test", "train"]).tolist() == [0, 2, 3]
    assert store.members("trainval").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"no set 'dev'; choose from train, val, test"):
        store.members("dev")
    with pytest.raises(ValueError, match="no set is given"):
        store.members([])


@pytest.mark.parametrize(
    ("name", "images", "labels"), [("fish", [0, 2, 3], [1, 0, 1]), ("crab", [0, 1, 2, 3], [0, 1, 0, 0])]
)
def test_images_with_only_difficult_objects_of_a_class_have_no_label(
    whole: Path, name: str, images: list[int], labels: list[int]
) -> None:
    indices, y = FeatureStore.open(whole).labels(name, ["train", "val", "test"])
    assert (indices.tolist(), y.tolist()) == (images, labels)
    with pytest.raises(ValueError, match=r"no class 'eel'; choose from crab, fish"):
        FeatureStore.open(whole).labels("eel", "train")


def test_truth_has_every_image_of_the_set_and_difficult_objects(whole: Path) -> None:
    store = FeatureStore.open(whole)
    truth = store.truth("fish", ["train", "val", "test"])
    assert [boxes.shape for boxes, _ in truth] == [(1, 4), (1, 4), (0, 4), (2, 4)]
    assert [difficult.tolist() for _, difficult in truth] == [[False], [True], [], [True, False]]
    assert truth[3][0].tolist() == [BOX, [2, 2, 3, 3]]


def torn(cut: int) -> Callable[[Path], object]:
    """The journal without all after that many bytes, from its start or its end."""
    return lambda folder: os.truncate(folder / "journal.jsonl", cut % (folder / "journal.jsonl").stat().st_size)


def longer(name: str, extra: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + b"\xff" * extra)


def half_a_header(folder: Path) -> None:
    with (folder / "features.part").open("r+b") as file:
        file.write(b"\x93NUMPY\x01\x00")


def finished(folder: Path) -> None:
    with StoreWriter(folder, manifest()) as writer:
        writer.finish()
    (folder / "offsets.npy").unlink()


def one_of_two(folder: Path) -> None:
    finished(folder)
    shutil.move(folder / "boxes.npy", folder / "boxes.part")


def no_offsets(folder: Path) -> None:
    finished(folder)
    (folder / ".offsets.npy.0123456789abcdef").write_bytes(b"half")


LINE = len(b'{"index": 0, "id": "a", "first": 0, "rows": 3}\n')
# How many images were done, what the kill left, and how many images are there when the run goes on.
KILLED: list[tuple[int, Callable[[Path], object], int]] = [
    *((done, lambda folder: None, done) for done in range(5)),
    *((3, torn(cut), 2) for cut in (2 * LINE, 2 * LINE + 1, 2 * LINE + 20, -2, -1)),
    *((2, longer(name, extra), 2) for name in ("features.part", "boxes.part") for extra in (1, 7, 24, 1000)),
    *((4, killed, 4) for killed in (half_a_header, one_of_two, no_offsets)),
]


@pytest.mark.parametrize(("done", "kill", "left"), KILLED)
def test_a_run_killed_at_any_moment_goes_on_and_ends_with_the_same_files(
    whole: Path, tmp_path: Path, done: int, kill: Callable[[Path], object], left: int
) -> None:
    write(tmp_path / "begun", 0, done, finish=False)
    kill(tmp_path / "begun")
    with pytest.raises(ValueError, match="is not finished; run the same `rankwise detect prepare` again"):
        FeatureStore.open(tmp_path / "begun")
    write(tmp_path / "begun", left)
    assert content(tmp_path / "begun") == content(whole)


def test_a_run_killed_before_its_manifest_was_there_is_begun_again(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "journal.jsonl").touch()
    (tmp_path / "begun" / ".manifest.json.0123456789abcdef").write_bytes(b"{")
    write(tmp_path / "begun")
    assert content(tmp_path / "begun") == content(whole)


@pytest.mark.skipif(os.name != "posix", reason="limits of the system are POSIX")
@pytest.mark.parametrize("room", [0, 10, 40, 47, 48, 49])
def test_a_full_disk_leaves_whole_images_only(whole: Path, tmp_path: Path, room: int) -> None:
    import resource

    begun = tmp_path / "begun"
    write(begun, 0, 2, finish=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with StoreWriter(begun, manifest()) as writer:
        size = (begun / "features.part").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                writer.append(*windows(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        with pytest.raises(ValueError, match="closed file"):
            writer.append(*windows(2))
    write(begun, 2)
    assert content(begun) == content(whole)


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
    assert sorted(content(tmp_path)) == ["letter.txt", "manifest.json"]


@pytest.mark.parametrize(
    "line",
    [
        '{"index": 1, "id": "b", "first": 4, "rows": 1}',
        '{"index": 1, "id": "x", "first": 3, "rows": 1}',
        '{"index": 1, "id": "b", "first": 3, "rows": 0}',
        '{"index": 1, "id": "b", "first": 3, "rows": true}',
        '{"index": 1, "id": "b"}',
        "[1]",
        "\\x00",
        "",
    ],
)
def test_a_journal_that_was_changed_is_refused(tmp_path: Path, line: str) -> None:
    write(tmp_path / "begun", 0, 3, finish=False)
    journal = tmp_path / "begun" / "journal.jsonl"
    first, _, third = journal.read_text("utf-8").splitlines()
    journal.write_text("\n".join([first, line, third, ""]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"journal.jsonl, line 2 was changed; remove"):
        StoreWriter(tmp_path / "begun", manifest())


@pytest.mark.parametrize("name", ["features", "boxes"])
def test_rows_that_are_missing_are_noticed(whole: Path, tmp_path: Path, name: str) -> None:
    part, rows = tmp_path / "begun" / f"{name}.part", whole / f"{name}.npy"
    write(tmp_path / "begun", 0, 3, finish=False)
    for spoil in (lambda: os.truncate(part, part.stat().st_size - 1), part.unlink):
        spoil()
        with pytest.raises(ValueError, match=rf"{name}.part is not as long as journal.jsonl says"):
            StoreWriter(tmp_path / "begun", manifest())
    os.truncate(rows, 200)
    with pytest.raises(ValueError, match=rf"{name}.npy and journal.jsonl do not agree"):
        StoreWriter(whole, manifest())
    with pytest.raises(ValueError, match="is damaged"):
        FeatureStore.open(whole)
    rows.unlink()
    with pytest.raises(ValueError, match=rf"{name}.npy: no such file; remove"):
        FeatureStore.open(whole)


def test_two_runs_do_not_write_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with StoreWriter(tmp_path, manifest()), pytest.raises(ValueError, match="is being written by another run"):
        StoreWriter(tmp_path, manifest())
    write(tmp_path)


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


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    boxes, features = windows(0)
    with StoreWriter(tmp_path, manifest()) as writer:
        for bad in ((boxes, features[:, 1:]), (boxes[1:], features), (boxes[:0], features[:0])):
            with pytest.raises(ValueError, match=r"wanted are \(m, 4\), \(m, 6\)"):
                writer.append(*bad)
        assert writer.done == 0
        with pytest.raises(ValueError, match="0 of 4 images are there"):
            writer.finish()
