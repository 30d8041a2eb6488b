"""CIFAR-10 as pictures in an archive or folder: what is read, what is refused, and what is kept."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from archives import encoded, write_archive, write_folder
from numpy.typing import NDArray
from rankwise_lab.data import cifar10
from rankwise_lab.data.archives import picture
from rankwise_lab.data.cifar10 import load_cifar10

pytest.importorskip("PIL.Image")

# JPEG is lossy, on a plain colour by a few levels.
ATOL = 6

COLOURS = {"cat": (200, 30, 30), "dog": (30, 200, 30), "emu": (30, 30, 200)}


def jpeg(colour: tuple[int, int, int], size: tuple[int, int] = (32, 32), kind: str = "JPEG") -> bytes:
    return encoded(np.full((size[1], size[0], 3), colour, np.uint8), kind)


def png(colour: tuple[int, int, int]) -> bytes:
    return jpeg(colour, kind="PNG")


def small_members() -> dict[str, bytes]:
    """Not in order, 9 is before 10: two of a class to train with, one to test with."""
    train = {
        f"train/{name}/{9 + i}.jpg": jpeg((r, g, b - 20 * i)) for i in (1, 0) for name, (r, g, b) in COLOURS.items()
    }
    return {**train, **{f"test/{name}/0000.jpg": jpeg(colour) for name, colour in reversed(COLOURS.items())}}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_archive(tmp_path / "small.tar.xz", small_members())


def colours_of(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = images.astype(float).mean(axis=(2, 3))
    return means


def test_images_come_by_class_and_number_with_colours_first_from_an_archive_or_a_folder(tmp_path: Path) -> None:
    others = {"train/README": b"", "test/cat/._0000.jpg": b"x"}
    for write in (write_archive, write_folder):
        found = load_cifar10(write(tmp_path / write.__name__, {**small_members(), **others}), tmp_path / "cache")
        assert found.classes == ("cat", "dog", "emu")
        assert found.train_labels.tolist() == [0, 0, 1, 1, 2, 2]
        assert found.test_labels.tolist() == [0, 1, 2]
        assert (found.train_images.shape, found.train_images.dtype) == ((6, 3, 32, 32), np.uint8)
        expected = [(r, g, b - 20 * i) for r, g, b in COLOURS.values() for i in (0, 1)]
        np.testing.assert_allclose(colours_of(found.train_images), expected, atol=ATOL)
        np.testing.assert_allclose(colours_of(found.test_images), list(COLOURS.values()), atol=ATOL)


def test_what_was_decoded_is_kept_until_it_changes(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "elsewhere"))
    folder = write_folder(tmp_path / "here", small_members())
    first, _ = load_cifar10(small), load_cifar10(folder)
    with monkeypatch.context() as patched:
        patched.setattr(cifar10, "_archived", lambda archive: pytest.fail("decoded again"))
        second = load_cifar10(str(small))
    assert second.classes == first.classes
    for a, b in zip(first[:4], second[:4], strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    write_archive(small, {**small_members(), "train/cat/9.jpg": jpeg((0, 0, 0))})
    (folder / "train/cat/9.jpg").write_bytes(jpeg((0, 0, 0)))
    for path in (small, folder):
        assert colours_of(load_cifar10(path).train_images)[0].max() < ATOL
    assert len(list((tmp_path / "elsewhere").glob("cifar10-*.npz"))) == 4


def test_other_members_and_links_pass_and_nothing_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "odd.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name, content in {**small_members(), "README": b"", "../train/cat/0007.jpg": jpeg((0, 0, 0))}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("train/cat/0008.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    before = set(tmp_path.rglob("*"))
    assert load_cifar10(path, tmp_path / "cache").train_labels.size == 6
    assert {path.suffix for path in set(tmp_path.rglob("*")) - before} == {"", ".npz"}


def huge() -> bytes:
    """A PNG that claims 60,000 × 60,000 pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = ((header, 13), (b"IDAT", 0))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", size) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk, size in chunks
    )


def deep() -> bytes:
    """A PNG of 16 bits a pixel, which would be cut to white."""
    return encoded(np.full((32, 32), 40_000, np.uint16))


REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "other size": ({"train/cat/0000.jpg": jpeg((0, 0, 0), (16, 32))}, r"train/cat/0000\.jpg has 16 × 32 pixels"),
    "no picture": ({"test/dog/0000.jpg": b"GIF89a"}, r"test/dog/0000\.jpg is not a JPEG or PNG picture"),
    "cut short": ({"test/dog/0000.jpg": jpeg((9, 9, 9))[:300]}, r"test/dog/0000\.jpg is not a JPEG or PNG picture"),
    "huge": ({"train/cat/0000.jpg": bytes(70_000)}, r"train/cat/0000\.jpg has 70000 bytes"),
    "claims to be huge": ({"train/cat/0009.png": huge()}, r"train/cat/0009\.png is not a JPEG or PNG .*DOS attack"),
    "16 bits": ({"train/cat/0009.png": deep()}, r"train/cat/0009\.png is not .*8 bits per colour are needed"),
    "class to train with only": ({"train/fox/0000.jpg": jpeg((0, 0, 0))}, "fox is not in both"),
    "class to test with only": ({"test/fox/0000.jpg": jpeg((0, 0, 0))}, "fox is not in both"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_archive_or_folder_of_something_else_is_refused_and_nothing_kept(case: str, tmp_path: Path) -> None:
    members, message = REFUSED[case]
    every = {**small_members(), **members}
    for path in (write_archive(tmp_path / "bad.tar.xz", every), write_folder(tmp_path / "bad", every)):
        with pytest.raises(ValueError, match=message) as told:
            load_cifar10(path, tmp_path / "cache")
        assert path.name in str(told.value)
    assert not (tmp_path / "cache").exists()


def test_pictures_without_loss_are_read_to_the_pixel_and_said_to_be_so(tmp_path: Path) -> None:
    pictures = {f"{part}/{name}/a.png": png(colour) for part in ("train", "test") for name, colour in COLOURS.items()}
    for path in (write_folder(tmp_path / "f", pictures), write_archive(tmp_path / "a.tar.xz", pictures)):
        for _ in range(2):  # the second time as they were kept
            found = load_cifar10(path, tmp_path / "cache")
            np.testing.assert_array_equal(colours_of(found.train_images), list(COLOURS.values()))
            assert (found.form, found.original) == ("png", False)
            assert "PNG files" in found.what
    lossy = write_folder(tmp_path / "lossy", {**pictures, "train/cat/b.png": jpeg((0, 0, 0))})  # by a wrong name
    found = load_cifar10(lossy, tmp_path / "cache")
    assert found.form == "jpeg"
    assert "slightly lossy" in found.what


def test_too_much_nothing_and_two_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = write_folder(tmp_path / "both", {**small_members(), "train/cat/9.png": png((0, 0, 0))})
    refused = {
        both: r"train/cat/9\.jpg and train/cat/9\.png have the same name",
        tmp_path: r"has neither batches\.meta nor train/ and test/; name",
        write_archive(tmp_path / "empty.tar.xz", {"README": b"words"}): "but found none",
        write_archive(tmp_path / "much.tar.xz", small_members()): "its pictures have over 1,000 bytes, too many for",
    }
    monkeypatch.setattr(cifar10, "_MOST_IN_ALL", 1000)
    for path, said in refused.items():
        with pytest.raises(ValueError, match=said):
            load_cifar10(path, tmp_path / "cache")
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.tar\.xz"):
        load_cifar10(tmp_path / "none.tar.xz")


def test_a_damaged_png_is_read_or_refused_by_its_name_wherever_it_is_damaged() -> None:
    rng = np.random.default_rng(0)
    whole = png((9, 99, 199))
    told = []
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        try:
            picture(bytes(damaged), 32, "RGB", "here.png")
        except ValueError as error:
            told.append(str(error))
    assert len(told) > len(whole) // 2
    assert all(line.startswith("here.png ") for line in told)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, None])
def test_an_archive_that_is_cut_short_or_damaged_is_refused(part: float | None, small: Path, tmp_path: Path) -> None:
    content = bytearray(small.read_bytes())
    content[len(content) // 2] ^= 0xFF
    small.write_bytes(content if part is None else small.read_bytes()[: int(part * len(content))])
    with pytest.raises(ValueError, match="not a complete tar archive"):
        load_cifar10(small, tmp_path / "cache")
