"""Model files: what is written is read back; what is damaged, foreign or newer is refused, and never half read."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankwise.io import ModelFile, ModelFileError, read_model, write_model
from rankwise.io.files import open_atomic, write_bytes

HEADER = {"loss": "ap", "C": 0.1, "names": ["é", "b"], "nested": {"none": None, "yes": True}, "n": 3}
ARRAYS = {
    "coef": np.array([0.1, -2.5, 1e-300]),
    "bias": np.array(3.5),
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "big-endian": np.arange(3, dtype=">i4"),
    "flags": np.array([True, False]),
    "bytes": np.arange(5, dtype=np.uint8),
    "names": np.array(["é", "", "long"]),
    "empty": np.empty((0, 3)),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.rankwise"
    write_model(path, "linear", HEADER, ARRAYS)
    return path


def same(found: ModelFile) -> bool:
    """Whether a model is the one that was written, to the last bit."""
    return (
        found.kind == "linear"
        and found.header == HEADER
        and set(found.arrays) == set(ARRAYS)
        and all(
            found.arrays[name].shape == array.shape
            and found.arrays[name].dtype == array.dtype.newbyteorder("=")
            and np.array_equal(found.arrays[name], array)
            for name, array in ARRAYS.items()
        )
    )


def test_what_is_written_is_read_back(file: Path) -> None:
    found = read_model(file)
    assert same(found)
    assert found.written_by
    assert all(array.flags.writeable for array in found.arrays.values())
    assert list(file.parent.iterdir()) == [file]


def test_numpy_reads_the_arrays_too(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        for name, array in ARRAYS.items():
            with archive.open(f"arrays/{name}.npy") as member:
                np.testing.assert_array_equal(np.load(member, allow_pickle=False), array)


def test_equal_models_are_equal_files(file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    write_model(again, "linear", dict(reversed(HEADER.items())), dict(reversed(ARRAYS.items())))
    assert again.read_bytes() == file.read_bytes()


WRONG_CONTENT: list[tuple[Any, Any, str]] = [
    ({}, {"a": np.array([None])}, r"'a' has dtype object; only numbers of up to 64 bits and strings can be stored"),
    ({}, {"a": np.zeros(1, complex)}, r"'a' has dtype complex128"),
    ({}, {"a": np.zeros(1, "M8[s]")}, r"'a' has dtype datetime64"),
    ({}, {"../a": np.zeros(1)}, r"'\.\./a' is not a valid array name; use letters"),
    ({}, {"": np.zeros(1)}, r"'' is not a valid array name"),
    ({"C": float("nan")}, {}, r"plain data with finite numbers"),
    ({"C": np.zeros(1)}, {}, r"plain data.*ndarray"),
    ({"C": (1, 2)}, {}, r"lists, not tuples"),
    ({"C": {1: 2}}, {}, r"strings as keys"),
]


@pytest.mark.parametrize(("header", "arrays", "said"), WRONG_CONTENT)
def test_what_cannot_be_stored_is_refused_and_the_old_file_stays(
    header: Any, arrays: Any, said: str, file: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        write_model(file, "linear", header, arrays)
    assert same(read_model(file))
    assert list(file.parent.iterdir()) == [file]


def refused(path: Path, said: str | None = None) -> None:
    """The file is refused in one line that names it."""
    with pytest.raises(ModelFileError, match=said) as caught:
        read_model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_file_is_refused_and_a_flipped_byte_found_or_does_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "small"
    write_model(file, "k", {"a": 1}, {"w": np.array([1.0])})
    content = bytearray(file.read_bytes())
    directory = content.index(b"PK\x01\x02")
    for at in range(len(content)):
        if at % 16 == 0:
            file.write_bytes(content[:at])
            refused(file)
        for flip in (1, 8, 128, 255) if at > directory else (255,):
            content[at] ^= flip
            file.write_bytes(content)
            content[at] ^= flip
            try:
                found = read_model(file)
            except ModelFileError:
                continue
            assert (found.kind, found.header, list(found.arrays)) == ("k", {"a": 1}, ["w"])
            assert found.arrays["w"].tolist() == [1.0]


def repack(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], Any], **options: Any) -> None:
    """Write the archive again with its document and members changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members.pop("rankwise.json"))
    changed = change(document, members)
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("rankwise.json", json.dumps(document if changed is None else changed))
        for name, content in members.items():
            archive.writestr(name, content)


def swap(document: dict[str, Any], members: dict[str, bytes], old: bytes, new: bytes, name: str = "coef") -> None:
    """Change the bytes of a member, hashes and all, as a forger would."""
    assert old in members[f"arrays/{name}.npy"]
    members[f"arrays/{name}.npy"] = members[f"arrays/{name}.npy"].replace(old, new)
    for entry in document["arrays"]:
        entry["sha256"] = hashlib.sha256(members[f"arrays/{entry['name']}.npy"]).hexdigest()


def claim(document: dict[str, Any], members: dict[str, bytes], shape: list[int]) -> None:
    """Change the shape of coef, in both headers, without its values."""
    document["arrays"][3].update(shape=shape)
    swap(document, members, b"(3,), }" + b" " * 24, f"{tuple(shape)}, }}".encode().ljust(31))


LACKS = r"rankwise\.json lacks its version, kind, header or arrays; copy it again, or train the model again"
NOT_PLAIN = r"array 'coef' is not a plain array of dtype <f8 and shape \[3\]; copy it again, or train"
Change = Callable[[dict[str, Any], dict[str, bytes]], Any]
FORGED: list[tuple[Change, str]] = [
    (lambda d, m: d.update(format="keras"), r"not a rankwise model: its format is not rankwise-m"),
    (lambda d, m: [1, 2], r"not a rankwise model"),
    (
        lambda d, m: d.update(format_version=2, rankwise="9.1", arrays="?"),
        r"newer rankwise \('9\.1', format 2\): upgrade rankwise",
    ),
    (lambda d, m: d.update(format_version="1"), LACKS),
    (lambda d, m: d.__delitem__("format_version"), LACKS),
    (lambda d, m: d.update(kind=None), LACKS),
    (lambda d, m: d.update(header=[]), LACKS),
    (lambda d, m: d.update(arrays={}), LACKS),
    (lambda d, m: d.update(arrays=["coef"]), LACKS),
    (lambda d, m: d["arrays"][0].__delitem__("sha256"), LACKS),
    (lambda d, m: d["arrays"][0].update(name="../../x"), LACKS),
    (lambda d, m: m.__delitem__("arrays/coef.npy"), r"differ from those listed in rankwise\.json"),
    (lambda d, m: m.update({"arrays/more.npy": b"x"}), r"differ from those listed in rankwise\.json"),
    (lambda d, m: m.update({"../../x": b"x"}), r"differ from those listed in rankwise\.json"),
    (lambda d, m: d["header"].update(C=float("nan")), r"damaged \(rankwise\.json holds NaN"),
    (lambda d, m: m.update({"run.py": b"x"}), r"differ from those listed in rankwise\.json"),
    (
        lambda d, m: m.update({"arrays/coef.npy": m["arrays/coef.npy"].replace(b"\x9a", b"\x9b")}),
        r"array 'coef' has changed since it was written",
    ),
    (
        lambda d, m: d["arrays"][3].update(shape=[1, 3]),
        r"array 'coef' is not a plain array of dtype <f8 and shape \[1, 3\]",
    ),
    (lambda d, m: d["arrays"][3].update(dtype="<f4"), r"not a plain array of dtype <f4"),
    (lambda d, m: d["arrays"][3].update(dtype="|O"), r"has dtype '\|O'; only numbers of up to 64 bits and strings"),
    (lambda d, m: d["arrays"][3].update(dtype=["<f8"]), r"has dtype \['<f8'\]"),
    (lambda d, m: d["arrays"][3].update(shape=[True]), r"has no shape, but \[True\]"),
    (lambda d, m: claim(d, m, [2**62 + 3]), r"not a plain array of dtype <f8 and shape \[4611686018427387907\]"),
    (lambda d, m: claim(d, m, [2**62 + 3, 0]), r"damaged|'coef'"),
    (lambda d, m: swap(d, m, b"'<f8'", b"'|O8'"), NOT_PLAIN),
    (lambda d, m: swap(d, m, m["arrays/coef.npy"], pickle.dumps([1])), NOT_PLAIN),
    (lambda d, m: swap(d, m, b"(3,)", b"f(3)"), NOT_PLAIN),
    (lambda d, m: swap(d, m, b"\x01\x00", b"\x07\x00", "flags"), r"not a plain array"),
    (lambda d, m: swap(d, m, b"\x01\x00v", b"\x02\x00v"), NOT_PLAIN),
    (lambda d, m: swap(d, m, b"\n\x01\x00", b"\n\x01\x07", "flags"), r"booleans other than 0 and 1"),
    (lambda d, m: swap(d, m, "é".encode("utf-32-le"), b"\xff" * 4, "names"), r"not valid Unicode"),
]


@pytest.mark.parametrize(("change", "said"), FORGED)
def test_forged_models_are_refused(change: Change, said: str, file: Path) -> None:
    repack(file, change)
    refused(file, said)


def test_an_archive_packed_again_is_read_unless_it_is_compressed(file: Path) -> None:
    repack(file, lambda document, members: None)
    assert same(read_model(file))
    repack(file, lambda document, members: None, compression=zipfile.ZIP_DEFLATED)
    refused(file, r"'rankwise\.json' is compressed or encrypted")


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, r"is not a file; name a model file")
    refused(tmp_path / "absent", r"no such file; check the name")
    path = tmp_path / "foreign"
    for content in (b"", b"PK", b"PK\x03\x04", b"1 1:0.5\n", pickle.dumps({"coef": [1.0]}), bytes(1000)):
        path.write_bytes(content)
        refused(path)
    np.savez(path.with_suffix(".npz"), coef=np.zeros(3))
    refused(path.with_suffix(".npz"), r"no rankwise\.json; name a file that rankwise wrote")
    with zipfile.ZipFile(path, "w"):
        pass
    refused(path)
    newer = b'{"format": "rankwise-model", "format_version": ' + b"9" * 9999
    texts = [b"", b"{", b"{}", b"null", b"[]", b'"x"', b"NaN", b'{"format": NaN}', newer]
    for text in (*texts, b"[" * 100_000, b"1" * 10_000, b"\xff", b"\xff\xfe"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rankwise.json", text)
        refused(path)


# Writes one model after another, of 100 kB, whose arrays all hold the number of the model.
WRITER = """
import sys
import numpy as np
from rankwise.io import write_model
k = 0
while True:
    k += 1
    write_model(sys.argv[1], "k", {"k": k}, {name: np.full(6000, k) for name in "ab"})
    if k == 1:
        print("ready", flush=True)
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_writer_leaves_the_old_file_or_the_new(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "model"
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            for _ in range(20):  # readers never see a part either
                found = read_model(path)
                assert {int(value) for array in found.arrays.values() for value in array} == {found.header["k"]}
            time.sleep(rng.uniform(0, 0.05))
            writer.kill()
        found = read_model(path)
        assert {int(value) for array in found.arrays.values() for value in array} == {found.header["k"]}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def write() -> None:
        with open_atomic(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_kept_and_devices_are_not_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    before = os.umask(0o027)
    try:
        write_bytes(path, b"old")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link.symlink_to(path.name)
    write_bytes(link, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o604, True)
    write_bytes(os.devnull, b"gone")
    assert not Path(os.devnull).is_file()


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it"):
        write_bytes(tmp_path, b"")
    with pytest.raises(FileNotFoundError, match=r"the folder .*absent does not exist; create it first"):
        write_bytes(tmp_path / "absent" / "file", b"")
    write_bytes(tmp_path / ("é" * 127), b"a long name")
