"""Preparing features: the same bytes with any workers and after any death, and every bad image is named."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("efficientnet_lite_pytorch")

from PIL import Image  # noqa: E402
from rankwise_lab.commands.detect_prepare import Report  # noqa: E402
from rankwise_lab.detection import prepare  # noqa: E402
from rankwise_lab.detection.store import FeatureStore  # noqa: E402
from rankwise_lab.detection.voc import VocError  # noqa: E402
from torch import nn  # noqa: E402

from rankwise.cli.main import main  # noqa: E402

SEED = 5
N_IMAGES = 12
QUICK = {"max_windows": 4, "crop": 8, "min_side": 6}
OPTIONS = ["--max-windows", "3", "--min-side", "6", "--crop", "32"]
# Prepares again and again, each time in a child that is killed after the n-th file that it writes (0 for never); then
# by the command, interrupted between the first image and the second.
KILLING = """
import json, os, signal, sys
from pathlib import Path
import torch
from rankwise.cli.main import main
from rankwise_lab.detection.preparing import prepare
from rankwise_lab.detection.writing import StoreWriter

torch.set_num_threads(1)
devkit, root, command = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
torch.manual_seed(0)
model = torch.nn.Conv2d(3, 5, 3)

def count(name, left):
    write = getattr(StoreWriter, name)
    def counted(*given):
        write(*given)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    setattr(StoreWriter, name, counted)

def attempt(folder, n):
    child = os.fork()
    if child == 0:
        left = [n]
        count("append", left)
        count("_join", left)
        prepare(devkit, folder, model=model, max_windows=4, crop=8, min_side=6, workers=2)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [ended, len(list(folder.glob("parts/*.npz")))]

found = {"alone": [attempt(root / "alone", 0)]}
found["killed"] = [attempt(root / "killed", n) for n in (1, 4, 8, 1, 0)]
append = StoreWriter.append

def interrupted(writer, *parts):
    if writer.done == 1:
        os.kill(os.getpid(), signal.SIGINT)
    append(writer, *parts)

child = os.fork()
if child == 0:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stderr = (root / "stderr").open("w")
    StoreWriter.append = interrupted
    status = main(command)
    sys.stderr.close()
    os._exit(status)
found["status"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(found))
"""


def annotation(name: str, width: int, height: int) -> str:
    box = f"<xmin>2</xmin><ymin>3</ymin><xmax>{width - 5}</xmax><ymax>{height - 4}</ymax>"
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation>{size}<object><name>{name}</name><bndbox>{box}</bndbox></object></annotation>"


def jpeg(k: int) -> bytes:
    """A blob on noise, of a size of its own."""
    rng = np.random.default_rng([SEED, k])
    width, height = 24 + k, 20 + k % 3
    pixels = rng.integers(0, 120, (height, width, 3), dtype=np.uint8)
    pixels[5:15, 6:18] += 100
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def image_of(devkit: Path, k: int) -> Path:
    return devkit / "VOC2007" / "JPEGImages" / f"im{k:02d}.jpg"


def write_devkit(root: Path) -> Path:
    """Twelve images of two classes."""
    year = root / "VOC2007"
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (year / folder).mkdir(parents=True)
    for k in range(N_IMAGES):
        image_of(root, k).write_bytes(jpeg(k))
        name = ("crab", "fish")[k % 2]
        (year / "Annotations" / f"im{k:02d}.xml").write_text(annotation(name, 24 + k, 20 + k % 3))
    names = [f"im{k:02d}\n" for k in range(N_IMAGES)]
    (year / "ImageSets" / "Main" / "train.txt").write_text("".join(names[4:]))
    (year / "ImageSets" / "Main" / "test.txt").write_text("".join(names[:4]))
    return root


@pytest.fixture
def devkit(tmp_path: Path) -> Path:
    return write_devkit(tmp_path / "VOCdevkit")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Conv2d(3, 5, 3)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_images_become_bags_of_windows_in_the_order_of_the_sets_with_progress_once(
    devkit: Path, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    for _ in range(2):
        store = prepare(devkit, tmp_path / "f", model=small_model(), progress=lambda *at: told.append(at), **QUICK)
    assert told == [(k, N_IMAGES) for k in range(N_IMAGES + 1)] + [(N_IMAGES, N_IMAGES)]
    assert store.images == [f"im{k:02d}" for k in [*range(4, 12), *range(4)]]
    assert store.sizes[0].tolist() == [28, 21]
    assert store.classes == ("crab", "fish")
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
def test_files_are_the_same_with_any_number_of_workers_and_have_the_settings_and_nothing_of_the_machine(
    devkit: Path, tmp_path: Path, proposals: str
) -> None:
    options = {"proposals": proposals, "context": 0.25, **QUICK}
    for workers in (1, 2, 5):
        prepare(devkit, tmp_path / f"{workers}", model=small_model(), workers=workers, **options)
    assert content(tmp_path / "1") == content(tmp_path / "2") == content(tmp_path / "5")
    text = (tmp_path / "1" / "manifest.json").read_text("utf-8")
    settings = json.loads(text)["settings"]
    assert len(settings.pop("weights")) == 64
    assert settings == {"model": "Conv2d", "dim": 5, **options}
    assert str(tmp_path) not in text


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_run_that_was_killed_goes_on_to_the_same_bytes_and_ctrl_c_says_how(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    devkit = write_devkit(tmp_path / "VOCdevkit")
    command = ["detect", "prepare", str(devkit), str(folder), *OPTIONS]
    given = [sys.executable, "-c", KILLING, str(devkit), str(tmp_path), *command]
    done = subprocess.run(
        given, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # After the first image; after others; after the features, when all images are there; after them again.
    assert found["killed"] == [[-9, 1], [-9, 5], [-9, N_IMAGES], [-9, N_IMAGES], [0, 0]]
    assert found["alone"] == [[0, 0]]
    assert content(tmp_path / "killed") == content(tmp_path / "alone")
    said = (tmp_path / "stderr").read_text()
    assert found["status"] == 130, said
    assert f"interrupted: 1 of 12 images are in {folder}; run the same command to continue" in said
    assert len(list(folder.glob("parts/*.npz"))) == 1
    assert "Traceback" not in said


def run(devkit: Path, folder: Path, *options: str) -> int:
    return main(["detect", "prepare", str(devkit), str(folder), *OPTIONS, *options])


def test_the_command_says_what_was_made(devkit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(devkit, tmp_path / "f", "--workers", "2", "--sets", "test") == 0
    said = capsys.readouterr()
    assert "f: 4 images, " in said.out
    assert "320 features each" in said.out
    assert "classes: crab, fish\nsets: test 4\n" in said.out
    assert "prepare: 4 of 4 images" in said.err
    assert len(FeatureStore.open(tmp_path / "f")) == 4
    assert run(devkit, tmp_path / "f", "--quiet", "--sets", "test") == 0
    said = capsys.readouterr()
    assert said.out == said.err == ""


@pytest.mark.parametrize("bad", ["truncated", "empty", "text"])
def test_a_bad_image_is_named_and_once_mended_the_run_goes_on(
    devkit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    prepare(devkit, tmp_path / "alone", model=small_model(), **QUICK)
    path, whole = image_of(devkit, 9), jpeg(9)
    path.write_bytes({"truncated": whole[:-40], "empty": b"", "text": b"no picture"}[bad])
    told: list[int] = []
    with pytest.raises(VocError, match=r"im09.jpg cannot be read \(.+\); replace it by a whole JPEG or PNG file"):
        prepare(devkit, tmp_path / "f", model=small_model(), progress=lambda done, _: told.append(done), **QUICK)
    # What is no picture at all is seen at once, what is half of one when its turn comes: 4 to 8 are before it.
    assert told == ([0, 1, 2, 3, 4, 5] if bad == "truncated" else [])
    path.write_bytes(whole)
    prepare(devkit, tmp_path / "f", model=small_model(), progress=lambda done, _: told.append(done), **QUICK)
    if bad == "truncated":
        assert told[6:] == list(range(5, N_IMAGES + 1))
    assert content(tmp_path / "f") == content(tmp_path / "alone")


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "no annotation": (lambda year: (year / "Annotations" / "im03.xml").unlink(), r"im03.xml: no such file"),
    "a box outside the file, whatever the XML says of its size": (
        lambda year: (year / "Annotations" / "im03.xml").write_text(annotation("fish", 90, 20)),
        r"im03.jpg has 27 × 20 pixels, and a box of its XML \(fish\) is not inside",
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_bad_annotation_is_named(devkit: Path, tmp_path: Path, case: str) -> None:
    spoil, says = SPOILT[case]
    spoil(devkit / "VOC2007")
    with pytest.raises(VocError, match=says):
        prepare(devkit, tmp_path / "f", model=small_model(), **QUICK)
    assert not (tmp_path / "f").exists()


def test_other_settings_in_the_same_folder_and_a_bad_image_are_named_in_a_line(
    devkit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(devkit, tmp_path / "f", "--sets", "test", "--quiet") == 0
    before = content(tmp_path / "f")
    for folder, options, kept, says in (
        ("f", ["--sets", "test", "--max-windows", "2"], None, "was begun with max_windows 3, and not 2"),
        ("f", [], None, "was begun with other"),
        ("g", ["--quiet"], 300, "im04.jpg cannot be read"),
    ):
        image_of(devkit, 4).write_bytes(jpeg(4)[:kept])
        assert run(devkit, tmp_path / folder, *options) == 2
        said = capsys.readouterr().err
        assert says in said
        assert said.count("\n") == 1
    assert content(tmp_path / "f") == before


class Bursts(nn.Module):
    """Mean colours, but of an image as wide as one that is bad: not a number."""

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        means = seen.mean(dim=(2, 3))
        return torch.where(means.mean() > 0.9, torch.nan, means)


def test_features_that_are_not_finite_name_the_image(devkit: Path, tmp_path: Path) -> None:
    Image.new("RGB", (30, 21), "white").save(image_of(devkit, 6))
    with pytest.raises(ValueError, match=r"im06.jpg: Bursts returns features that are not finite, first for window 0"):
        prepare(devkit, tmp_path / "f", model=Bursts(), **QUICK)
    assert len(list(tmp_path.glob("f/parts/*.npz"))) == 2


def test_grey_and_transparent_pictures_are_read(devkit: Path, tmp_path: Path) -> None:
    Image.new("L", (28, 21), 90).save(image_of(devkit, 4))
    image_of(devkit, 5).unlink()
    Image.new("RGBA", (29, 22), (9, 9, 9, 99)).save(image_of(devkit, 5).with_suffix(".png"))
    store = prepare(devkit, tmp_path / "f", model=small_model(), **QUICK)
    assert len(store) == N_IMAGES


def test_bad_settings_are_refused_before_anything_is_written(devkit: Path, tmp_path: Path) -> None:
    for settings, problem in (
        ({"proposals": "slow"}, "proposals must be one of fast, quality, sliding"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"max_windows": 0}, "max_windows must be at least 1"),
        ({"min_side": 0}, "min_side must be at least 1"),
        ({"crop": 4}, "crop must be at least 8"),
        ({"sets": ["dev"]}, "dev"),
    ):
        with pytest.raises(ValueError, match=problem):
            prepare(devkit, tmp_path / "f", model=small_model(), **{**QUICK, **settings})
    assert not (tmp_path / "f").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("quiet", "lines"), [(False, 2), (True, 0)])
def test_progress_is_a_line_drawn_over_on_a_terminal_rare_lines_elsewhere_and_nothing_when_quiet(
    quiet: bool, lines: int
) -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        report = Report(quiet, stream)
        for k in range(2, 8):
            report(k, 8)
        report.close()
    assert file.getvalue().count("\n") == lines
    assert "\r" not in file.getvalue()
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert terminal.getvalue().count("\n") == (not quiet)
    assert quiet or drawn[1] == "prepare: 2 of 8 images already done"
    assert quiet or drawn[-1].startswith("prepare: 7 of 8 images, ")
    assert quiet or "images/s, 0:0" in drawn[-1]
