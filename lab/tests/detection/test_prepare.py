"""Preparing features: the same bytes with any workers and after any death, and every bad image is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import bytes_of

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("efficientnet_lite_pytorch")

from PIL import Image  # noqa: E402
from rankwise_lab.detection import prepare  # noqa: E402
from rankwise_lab.detection.shapes import write_shapes  # noqa: E402
from rankwise_lab.detection.voc import VocError  # noqa: E402
from rankwise_lab.detection.writing import StoreWriter  # noqa: E402
from torch import nn  # noqa: E402

from rankwise.cli.main import main  # noqa: E402

N_IMAGES = 12
QUICK = {"max_windows": 4, "crop": 8, "min_side": 12}
OPTIONS = ["--max-windows", "3", "--min-side", "6", "--crop", "32"]


def image_of(devkit: Path, k: int) -> Path:
    return devkit / "VOC2007" / "JPEGImages" / f"{k:06d}.png"


@pytest.fixture
def devkit(tmp_path: Path) -> Path:
    """Twelve images of two classes."""
    return write_shapes(tmp_path / "VOCdevkit", {"train": 8, "test": 4})


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv2d(3, 5, 3)


def test_images_become_bags_of_windows_in_the_order_of_the_sets(devkit: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    for _ in range(2):
        store = prepare(devkit, tmp_path / "f", model=small_model(), progress=lambda *at: told.append(at), **QUICK)
    assert told == [(k, N_IMAGES) for k in range(N_IMAGES + 1)] + [(N_IMAGES, N_IMAGES)]
    assert store.images == [f"{k:06d}" for k in range(12)]
    assert store.sizes.tolist() == [[96, 64]] * 12
    assert store.classes == ("disc", "square")
    assert {name: len(members) for name, members in store.sets.items()} == {"train": 8, "test": 4}
    assert store.features.shape == (store.offsets[-1], 5)
    for i in range(len(store)):
        windows = store.windows(i)
        assert 1 <= len(windows) <= 4
        assert windows[0].tolist() == [1, 1, *store.sizes[i]]
    np.testing.assert_allclose(np.linalg.norm(store.features, axis=1), 1.0, atol=1e-6)
    with pytest.raises(ValueError, match="was begun with weights"):
        prepare(devkit, tmp_path / "f", model=nn.Conv2d(3, 5, 3), **QUICK)


@pytest.mark.parametrize("proposals", ["fast", "sliding"])
def test_files_are_the_same_with_any_number_of_workers(devkit: Path, tmp_path: Path, proposals: str) -> None:
    options = {"proposals": proposals, "context": 0.25, **QUICK}
    for workers in (1, 2, 5):
        prepare(devkit, tmp_path / f"{workers}", model=small_model(), workers=workers, **options)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "2") == bytes_of(tmp_path / "5")
    text = (tmp_path / "1" / "manifest.json").read_text("utf-8")
    settings = json.loads(text)["settings"]
    assert len(settings.pop("weights")) == 64
    assert settings == {"model": "Conv2d", "dim": 5, **options}
    assert str(tmp_path) not in text


def run(devkit: Path, folder: Path, *options: str) -> int:
    return main(["detect", "prepare", str(devkit), str(folder), *OPTIONS, *options])


def test_after_ctrl_c_the_command_says_how_to_go_on_to_the_same_bytes(
    devkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = StoreWriter.append

    def interrupted(writer: StoreWriter, *rows: Any) -> None:
        if writer.done == 1:
            raise KeyboardInterrupt
        append(writer, *rows)

    assert run(devkit, tmp_path / "whole") == 0
    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "append", interrupted)
        assert run(devkit, tmp_path / "f") == 130
    said = f"interrupted: 1 of 12 images are in {tmp_path / 'f'}; run the same command to continue"
    assert said in capsys.readouterr().err
    assert run(devkit, tmp_path / "f") == 0
    assert bytes_of(tmp_path / "f") == bytes_of(tmp_path / "whole")


@pytest.mark.parametrize("bad", ["truncated", "text"])
def test_a_bad_image_is_named_and_once_mended_the_run_goes_on(devkit: Path, tmp_path: Path, bad: str) -> None:
    prepare(devkit, tmp_path / "alone", model=small_model(), **QUICK)
    path, told = image_of(devkit, 5), []
    whole = path.read_bytes()
    path.write_bytes({"truncated": whole[:-400], "text": b"no picture"}[bad])
    with pytest.raises(VocError, match=r"000005.png cannot be read \(.+\); replace it by a whole JPEG or PNG file"):
        prepare(devkit, tmp_path / "f", model=small_model(), progress=lambda done, _: told.append(done), **QUICK)
    # What is no picture at all is seen at once, what is half of one when its turn comes: 0 to 4 are before it.
    assert told == ([0, 1, 2, 3, 4, 5] if bad == "truncated" else [])
    path.write_bytes(whole)
    prepare(devkit, tmp_path / "f", model=small_model(), progress=lambda done, _: told.append(done), **QUICK)
    assert bad != "truncated" or told[6:] == list(range(5, N_IMAGES + 1))
    assert bytes_of(tmp_path / "f") == bytes_of(tmp_path / "alone")


def test_a_box_outside_the_file_is_named_whatever_the_xml_says_of_the_size(devkit: Path, tmp_path: Path) -> None:
    path = devkit / "VOC2007" / "Annotations" / "000003.xml"
    path.write_text(re.sub("<xmax>.*?</xmax>", "<xmax>97</xmax>", path.read_text().replace(">96<", ">200<")))
    with pytest.raises(VocError, match=r"000003.png has 96 × 64 pixels, and a box of its XML \(disc\) is not inside"):
        prepare(devkit, tmp_path / "f", model=small_model(), **QUICK)
    assert not (tmp_path / "f").exists()


class Bursts(nn.Module):
    """Mean colours, but of an image as wide as one that is bad: not a number."""

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        means = seen.mean(dim=(2, 3))
        return torch.where(means.mean() > 0.9, torch.nan, means)


def test_features_that_are_not_finite_name_the_image(devkit: Path, tmp_path: Path) -> None:
    Image.new("RGB", (96, 64), "white").save(image_of(devkit, 2))
    with pytest.raises(
        ValueError, match=r"000002.png: Bursts returns features that are not finite, first for window 0"
    ):
        prepare(devkit, tmp_path / "f", model=Bursts(), **QUICK)
    assert len(list(tmp_path.glob("f/parts/*.npz"))) == 2
