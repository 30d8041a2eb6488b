"""CIFAR-10 as published: pickles are read without running what they name, and other files are refused."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import write_archive, write_folder
from cifar_batches import CLASSES, LABELS, PIXELS, N, array, batch, labels_of, meta, published, string
from rankwise_lab.data import cifar10_batches
from rankwise_lab.data.cifar10 import find_cifar10, load_cifar10
from rankwise_lab.data.cifar10_batches import FILES, read_batches

FOLDER = "cifar-10-batches-py"
AGAIN = "download CIFAR-10 for Python again"


def _archive(path: Path, files: dict[str, bytes]) -> Path:
    return write_archive(path, {f"{FOLDER}/{name}": content for name, content in files.items()}, "gz")


def check(found: Any) -> None:
    train = [name for name in FILES if name.startswith("data")]
    assert found.classes == CLASSES
    np.testing.assert_array_equal(
        found.train_images.reshape(-1, 3072), np.concatenate([PIXELS[name] for name in train])
    )
    np.testing.assert_array_equal(found.test_images.reshape(-1, 3072), PIXELS["test_batch"])
    assert found.train_labels.tolist() == [label for name in train for label in LABELS[name]]
    assert found.test_labels.tolist() == LABELS["test_batch"]
    assert found.train_images.shape == (5 * N, 3, 32, 32)
    assert found.train_images.dtype == np.uint8


def test_the_files_written_here_are_pickles_as_pythons_own_reader_has_them() -> None:
    found = pickle.loads(published()["data_batch_3"], encoding="bytes")
    np.testing.assert_array_equal(found[b"data"], PIXELS["data_batch_3"])
    assert found[b"labels"] == LABELS["data_batch_3"]


def test_a_folder_and_an_archive_give_the_same_images_and_labels(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / FOLDER, published())
    archive = _archive(tmp_path / "cifar-10-python.tar.gz", published())
    for path in (folder, archive, archive):  # the second time the archive is kept
        found = load_cifar10(path, tmp_path / "cache")
        check(found)
        assert found.original
        assert found.what == "CIFAR-10 as it was published"


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_files_that_python_3_has_written_again_are_read(protocol: int) -> None:
    files = {
        name: pickle.dumps({b"data": PIXELS[name], b"labels": LABELS[name], b"filenames": [b"a.png"] * N}, protocol)
        for name in PIXELS
    }
    by_columns = array(PIXELS["test_batch"].T.tobytes(), N, fortran=b"\x88")
    files["test_batch"] = batch(by_columns, labels_of(LABELS["test_batch"]))
    check(read_batches({**files, "batches.meta": pickle.dumps({"label_names": list(CLASSES)}, protocol)}, "here"))


# Files that are refused. The hostile would do something if they were unpickled, and most do it while they are read.


def call(function: bytes, *arguments: bytes) -> bytes:
    return b"c" + function + b"\n(" + b"".join(string(argument) for argument in arguments) + b"tR"


class Evil:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, ("ran",)


def evil(protocol: int) -> bytes:
    return pickle.dumps({b"data": PIXELS["test_batch"], b"labels": [0] * N, b"more": Evil()}, protocol)


TOUCH, HUGE = b"touch ran", 2**31 - 1
TEXT = b"X" + struct.pack("<I", 1 << 20) + bytes(1 << 20)
GOOD, ZEROS = array(bytes(N * 3072), N), labels_of([0] * N)
LACKS = "n × 3072 bytes, or lacks some"
REFUSED: dict[str, tuple[bytes, str]] = {
    # Names that the files do not need are not looked up.
    "os.system": (call(b"os\nsystem", TOUCH), "names 'os.system', which no batch of CIFAR-10 needs"),
    "eval": (call(b"builtins\neval", b"open('ran', 'w').close()"), "names 'builtins.eval'"),
    **{f"an object, {k}": (evil(k), "(names|has the opcode)") for k in range(pickle.HIGHEST_PROTOCOL + 1)},
    # Nor are opcodes.
    "PERSID": (b"Pother\n", "has the opcode PERSID, which no batch"),
    "NEWOBJ": (b"cnumpy\nndarray\n)\x81", "has the opcode NEWOBJ"),
    # Programs that do not fit.
    "a call of a call": (b"cnumpy\ndtype\n" + call(b"numpy\ndtype", b"u1") + b"\x85R)R", ""),
    "a key that is a deep tuple": (b"})" + b"\x85" * 100_000 + b"Ns", ""),
    "a key made deep": (b"}cnumpy\ndtype\nq\x00)q\x01" + b"h\x00h\x01\x85q\x01R" * 20_000 + b"h\x01Ns", ""),
    "from an empty stack": (b"\x87", ""),
    "a list that holds itself": (b"]q\x00h\x00a", ""),
    # What a file says of its size takes no memory.
    "a far place in the memo": (b"}r\xff\xff\xff\xff" + b"j\xff\xff\xff\xff\x86", "more parts than any batch"),
    "a long string that is not there": (b"B" + struct.pack("<I", 2**32 - 1) + b"x", "not a complete pickle"),
    "a string made again and again": (
        b"c_codecs\nencode\nq\x00" + TEXT + b"X\x06\x00\x00\x00latin1\x86q\x01](" + b"h\x00h\x01R" * 1000 + b"e",
        "contains no dictionary",
    ),
    "very many parts": (b"(" + b"}" * (1 << 22), "more parts than any batch"),
    "a huge array": (batch(array(b"x" * 3072, HUGE), labels_of([0])), LACKS),
    # Pickles, but not of CIFAR-10.
    "one label too few": (batch(GOOD, labels_of([0] * (N - 1))), "has 20 images and 19 labels"),
    "a label of no class": (batch(GOOD, labels_of([0] * (N - 1) + [3])), "label 19 is not one of the classes 0 to 2"),
    "labels that are texts": (batch(GOOD, b"](" + string(b"0") * N + b"e"), "labels is not a list of whole numbers"),
    "bytes missing": (batch(array(bytes(N * 3072 - 1), N), ZEROS), LACKS),
    "no array": (batch(string(bytes(N * 3072)), ZEROS), "data is not an array"),
    "an array without a state": (batch(call(b"numpy.core.multiarray\n_reconstruct"), ZEROS), "data is not an array"),
    "no data": (b"}" + string(b"labels") + ZEROS + b"s", "has no 'data'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_batch_is_refused_and_does_not_run(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cifar10_batches, "_MOST_OPCODES", 1 << 14)
    payload, said = REFUSED[case]
    if not payload.endswith(b"."):
        payload = b"\x80\x02" + payload + b"."
    files = {**published(), "test_batch": payload}
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"^here/test_batch.*{said}.*; {AGAIN}$"):
            read_batches(files, "here")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6
    assert not os.listdir(tmp_path)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar10_batches, "MOST_BYTES", 60_000)
    with pytest.raises(ValueError, match=r"here/data_batch_1 has 6.,... bytes, more than any batch"):
        read_batches(published(), "here")
    with pytest.raises(ValueError, match=r"cifar-10-batches-py/data_batch_1 has 6.... bytes, too many for a batch"):
        load_cifar10(_archive(tmp_path / "a.tar.gz", published()), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("names", [(), ("cat", "cat"), ("cat", "../dog"), ("cat", "")])
def test_names_of_classes_are_names_each_once(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"batches\.meta: label_names"):
        read_batches({**published(), "batches.meta": meta(names)}, "here")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    files = published()
    del files["data_batch_4"]
    with pytest.raises(ValueError, match="lacks data_batch_4; download"):
        load_cifar10(_archive(tmp_path / "a.tar.gz", files), tmp_path / "cache")


def test_a_file_cut_short_anywhere_is_refused() -> None:
    files = published()
    whole = files["batches.meta"]
    for end in range(len(whole)):
        with pytest.raises(ValueError, match=r"here/batches\.meta is not a complete pickle"):
            read_batches({**files, "batches.meta": whole[:end]}, "here")
    whole = files["test_batch"]
    for end in range(0, len(whole), 997):
        with pytest.raises(ValueError, match="here/test_batch is not a complete pickle"):
            read_batches({**files, "test_batch": whole[:end]}, "here")


def test_a_file_damaged_anywhere_is_read_or_refused_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    small = batch(array(bytes(3072), 1), labels_of([0]))
    program = [at for at in range(len(small)) if small[at] or at < 300]
    refused = 0
    for _ in range(600):
        damaged = bytearray(small)
        for at in rng.choice(program, rng.integers(1, 4)):
            damaged[at] = rng.integers(256)
        try:
            cifar10_batches._batch(bytes(damaged), len(CLASSES), "here")
        except ValueError:
            refused += 1
    assert refused > 300


# Where it is looked for


def test_published_files_are_found_before_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    (tmp_path / "cifar10-jpeg.tar.xz").touch()
    assert find_cifar10() == find_cifar10(tmp_path) == tmp_path / "cifar10-jpeg.tar.xz"
    for part in ("train", "test"):
        (tmp_path / "cifar10" / part).mkdir(parents=True)
    assert find_cifar10() == find_cifar10(tmp_path) == find_cifar10(tmp_path / "cifar10") == tmp_path / "cifar10"
    archive = _archive(tmp_path / "cifar-10-python.tar.gz", published())
    assert find_cifar10() == find_cifar10(tmp_path) == find_cifar10(archive) == archive
    folder = write_folder(tmp_path / FOLDER, published())
    assert find_cifar10() == find_cifar10(tmp_path) == find_cifar10(folder) == folder
