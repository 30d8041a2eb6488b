"""The CIFAR-10 experiment from end to end on a tiny set: its split, tables and page, and a run that is cut off."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from rankwise_lab.commands import reproduce_cifar  # noqa: E402
from rankwise_lab.data.cifar10 import ARCHIVE, Cifar10, find_cifar10, load_cifar10  # noqa: E402
from rankwise_lab.reproduce import cifar, cifar_page  # noqa: E402
from rankwise_lab.reproduce.cifar import METHODS, Experiment, Plan, judge  # noqa: E402
from rankwise_lab.reproduce.cifar_data import split  # noqa: E402

import rankwise.kernels.compiled  # noqa: E402, F401  # kernels lie where they did before another cache is named
from rankwise.cli.main import _parser, main  # noqa: E402

Capture = pytest.CaptureFixture[str]
PLAN = Plan(
    width=2,
    n_train=18,
    n_val=6,
    seeds=(3,),
    pretrain_epochs=1,
    warmup_epochs=1,
    max_passes=1,
    max_epochs=1,
    block_size=9,
    timed_rounds=1,
    timed_blocks=(9,),
)
ENVIRONMENT = dict(os.environ)
COLOURS = {"cat": (200, 30, 30), "dog": (30, 200, 30), "emu": (30, 30, 200)}


def jpeg(rng: np.random.Generator, colour: tuple[int, int, int]) -> bytes:
    """A picture of noise, a little of a colour."""
    pixels = rng.integers(0, 256, (32, 32, 3)) * 0.7 + 0.3 * np.array(colour)
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Two threads share too little work here, and no bits with one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three classes."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    with tarfile.open(folder / ARCHIVE, "w") as tar:
        for part, count in (("train", 8), ("test", 4)):
            for name, colour in COLOURS.items():
                for i in range(count):
                    content = jpeg(rng, colour)
                    member = tarfile.TarInfo(f"{part}/{name}/{i:04}.jpg")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return folder / ARCHIVE


@pytest.fixture
def data(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive in the data folder; commands are run beside it, with the tiny plan if quick."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(cifar.Plan, "quick", lambda: PLAN)
    (tmp_path / "data").mkdir()
    shutil.copy(images, tmp_path / "data" / ARCHIVE)
    return tmp_path / "data" / ARCHIVE


class Whole(NamedTuple):
    """A run that nothing cut off."""

    experiment: Experiment
    seeds: list[dict[str, Any]]
    timed: dict[str, Any]
    said: list[str]


@pytest.fixture(scope="module")
def whole(images: Path, one_thread: None) -> Whole:
    said: list[str] = []
    found = load_cifar10(images, images.parent)
    experiment = Experiment(found, images.parent / "parts", PLAN, say=said.append)
    return Whole(experiment, *experiment.run(), said)


def loaded() -> Cifar10:
    return load_cifar10(find_cifar10())


def untimed(found: Any) -> Any:
    """Results without times, which no two runs share."""
    if isinstance(found, dict):
        values = {
            key: value for key, value in found.items() if key not in ("inference", "total") and "seconds" not in key
        }
        if "curve" in values:
            values["curve"] = [value for _, value in values["curve"]]
        return {key: untimed(value) for key, value in values.items()}
    return [untimed(value) for value in found] if isinstance(found, list | tuple) else found


# Data


def numbered(n: int, n_test: int, n_classes: int) -> Cifar10:
    """Images that tell their number; no two pixels vary alike."""
    rng = np.random.default_rng(3)
    images = rng.integers(0, 200, (n + n_test, 3, 32, 32)).astype(np.uint8)
    images[:, 0, 0, 0] = np.arange(n + n_test)
    labels = np.arange(n + n_test) % n_classes
    return Cifar10(images[:n], labels[:n], images[n:], labels[n:], tuple(f"c{k}" for k in range(n_classes)))


def test_a_split_takes_of_every_class_alike_and_no_image_twice() -> None:
    images = numbered(60, 20, 4)
    parts = split(images, 24, 12, seed=5)
    assert [np.bincount(part.labels).tolist() for part in parts] == [[6] * 4, [3] * 4, [5] * 4]
    chosen = split(images, 24, 12, seed=5)
    for one, other in zip(parts, chosen, strict=True):
        np.testing.assert_array_equal(one.images, other.images)
    assert not np.array_equal(split(images, 24, 12, seed=6).train.labels, parts.train.labels)
    pixels = np.concatenate([parts.train.images[:, 0, 0, 0], parts.val.images[:, 0, 0, 0]])
    assert np.unique(pixels).size == 36


def test_pixels_are_centred_and_scaled_by_the_training_images_alone() -> None:
    images = numbered(60, 20, 4)
    images.train_images[:, 1, 2, 3] = 77
    train, val, _ = split(images, 40, 20, seed=0)
    varied = np.ones((3, 32, 32), bool)
    varied[1, 2, 3] = False
    np.testing.assert_allclose(train.images.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(train.images.std(axis=0)[varied], 1.0, rtol=1e-5)
    assert not train.images[:, 1, 2, 3].any()
    assert abs(val.images.mean(axis=0)).max() > 0.1
    test = split(images, 60, 0, seed=0, n_test=10).test
    pixels = images.train_images.astype(np.float64)
    deviation = np.where(varied, pixels.std(axis=0), 1.0)
    np.testing.assert_allclose(test.images, (images.test_images[::2] - pixels.mean(axis=0)) / deviation, atol=1e-4)
    assert test.labels.tolist() == images.test_labels[::2].tolist()


def test_more_images_than_there_are_are_refused() -> None:
    with pytest.raises(ValueError, match="50 \\+ 11 images to train and validate are too many: there are 60"):
        split(numbered(60, 20, 4), 50, 11, seed=0)
    with pytest.raises(ValueError, match="21 test images are too many: there are 20"):
        split(numbered(60, 20, 4), 50, 10, seed=0, n_test=21)


def test_the_archive_is_found_by_its_name_or_in_a_folder_or_where_the_environment_says(data: Path) -> None:
    assert find_cifar10() == find_cifar10(data) == find_cifar10(data.parent) == data
    with pytest.raises(FileNotFoundError, match="no file nowhere: name the archive, or set RANKWISE_DATA"):
        find_cifar10("nowhere")


# The experiment


def test_measures_are_means_over_classes() -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(40) % 3
    scores = rng.normal(size=(40, 3)) + 1.5 * (labels[:, None] == np.arange(3))
    found = judge(scores, labels)
    relevant = (labels[:, None] == np.arange(3)).astype(int)
    assert found["ap"] == pytest.approx(average_precision_score(relevant, scores, average="macro"))
    assert found["ndcg"] == pytest.approx(ndcg_score(relevant.T, scores.T))
    assert found["accuracy"] == (scores.argmax(axis=1) == labels).mean()


def test_every_loss_goes_on_from_the_same_pre_trained_network(whole: Whole) -> None:
    experiment, (seed,), timed, said = whole
    test = split(experiment.cifar, 18, 6, seed=3).test
    assert list(seed["losses"]) == ["zero-one", "ap", "ndcg"]
    assert seed["pretrained"]["test"] == judged(experiment.network(3), test)
    for loss, one in seed["losses"].items():
        for stage in ("warm", "final"):
            assert one["test"][stage] == judged(experiment.network(3, loss, stage), test)
        values = [value for _, value in one["curve"]]
        assert len(values) == 1 + 7  # the start, and after each layer
        assert all(later <= earlier for earlier, later in itertools.pairwise(values))
        assert one["timing"]["calls"] > 0
    assert list(timed) == ["ap", "ndcg"]
    for loss, sizes in timed.items():
        assert [size["block_size"] for size in sizes] == [9]
        for size in sizes:
            assert list(size["methods"]) == list(METHODS[loss])
            for method, one in size["methods"].items():
                files = [f"time-{loss}-9-{method}-{k}.json" for k in range(1)]
                rounds = [json.loads((experiment.pieces.folder / name).read_text()) for name in files]
                assert one["inference"] == min(found["inference"] for found in rounds)
                assert one["total"] == min(found["total"] for found in rounds)
            assert len({one["calls"] for one in size["methods"].values()}) == 1
            ends = [one["objective"] for one in size["methods"].values()]
            assert ends == pytest.approx([ends[0]] * 3, rel=1e-4)
        assert sizes[0]["methods"]["auto"]["objective"] == pytest.approx(seed["losses"][loss]["curve"][3][1])
    assert not list(experiment.pieces.folder.glob("*.checkpoint"))
    assert len(said) == 1 + 3 * 2 + 6


def judged(net: Any, part: Any) -> dict[str, float]:
    with torch.no_grad():
        return judge(net(torch.from_numpy(part.images)).numpy(), part.labels)


def test_of_several_weights_the_one_that_validates_best_is_taken(data: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, losses=("zero-one",), lams=(1e-3, 10.0))
    (seed,), timed = Experiment(loaded(), tmp_path / "parts", plan).run()
    one = seed["losses"]["zero-one"]
    assert [(t["lam"], t["mu"]) for t in one["tried"]] == [(1e-3, 1e-2), (10.0, 1e-2)]
    best = max(one["tried"], key=lambda t: t["val"])
    assert (one["lam"], one["mu"], one["val"]["final"]) == (best["lam"], best["mu"], best["val"])
    assert timed == {}


def test_a_run_that_was_cut_off_goes_on_to_the_same_results(whole: Whole, data: Path, tmp_path: Path) -> None:
    said: list[str] = []

    def stop(line: str) -> None:
        said.append(line)
        # After pre-training, a warm-up and LW-SVM, before they are kept; while timing.
        if len(said) in (1, 3, 6, 8, 13):
            raise KeyboardInterrupt

    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            Experiment(loaded(), tmp_path / "parts", PLAN, say=stop).run()
    found = Experiment(loaded(), tmp_path / "parts", PLAN).run()
    assert untimed(found) == untimed((whole.seeds, whole.timed))
    again = Experiment(loaded(), tmp_path / "parts", PLAN, say=lambda line: pytest.fail(line))
    assert again.run() == found
    assert not list((tmp_path / "parts").glob("*.checkpoint"))


def test_results_of_another_plan_are_not_mixed_in(data: Path, tmp_path: Path) -> None:
    Experiment(loaded(), tmp_path / "parts", PLAN)
    with pytest.raises(
        ValueError, match=r"another plan or of other images \(plan.width is 2 there, 3 here\): name another --out"
    ):
        Experiment(loaded(), tmp_path / "parts", replace(PLAN, width=3))


# The command


# The command with a tiny plan, killed when it has written a part for the n-th time.
KILLED = """
import os, sys
import rankwise.kernels.compiled
os.environ |= {{"RANKWISE_CACHE_DIR": "cache", "RANKWISE_DATA": "data"}}
from rankwise.cli.main import main
from rankwise_lab.reproduce import cifar

plan = cifar.Plan(**eval(sys.argv[2]))
cifar.Plan.quick = lambda: plan
{dying}sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_command_goes_on_to_the_same_report(whole: Whole, data: Path, dying: str) -> None:
    command = ["reproduce", "cifar", "--quick", "--threads", "1"]
    killed = [sys.executable, "-c", KILLED.format(dying=dying), "3", repr(PLAN.__dict__), *command]
    assert subprocess.run(killed, env=ENVIRONMENT, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert sorted(path.name for path in Path("report/cifar").glob("*.json")) == [
        "plan.json",
        "seed-3-pretrained.json",
        "seed-3-zero-one.json",
    ]
    assert not Path("report/index.html").exists()
    assert main(command) == 0
    found = json.loads(Path("report/cifar.json").read_text())
    assert untimed(found["seeds"]) == untimed(whole.seeds)
    assert untimed(found["inference"]) == untimed(whole.timed)


def test_the_command_writes_a_report(data: Path, capsys: Capture, read_page: Any) -> None:
    command = ["reproduce", "cifar", "--quick", "--threads", "1", "--seeds", "2"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    found = json.loads(Path("report/cifar.json").read_text())
    text = Path("report/index.html").read_text()
    seen = read_page(text)
    assert seen.open == []
    for loss in PLAN.losses:
        for metric in ("ap", "ndcg", "accuracy"):
            spread = found["mean"][loss]["final"][metric]
            values = [seed["losses"][loss]["test"]["final"][metric] for seed in found["seeds"]]
            assert spread["mean"] == pytest.approx(np.mean(values))
            cell = f"{100 * np.mean(values):.2f} ± {100 * np.std(values, ddof=1):.2f}"
            assert cell in printed
            assert cell in seen.cells
    assert {"0-1 loss", "84.22", "85.28", "95.31", "96.14", "1.974", "1.589", "2.217", "1.632"} <= set(seen.cells)
    assert "CIFAR-10 as JPEG files" in printed
    assert "CIFAR-10 as JPEG files" in text
    for line in cifar_page.conclusions(found):
        assert line in printed
        assert line.replace("'", "&#39;") in text
    rows = list(csv.DictReader(io.StringIO(Path("report/cifar.csv").read_text())))
    assert len(rows) == 2 * (1 + 3 * 2)
    assert float(rows[4]["ap"]) == found["seeds"][0]["losses"]["ap"]["test"]["final"]["ap"]
    assert (rows[4]["loss"], rows[4]["stage"]) == ("ap", "final")
    assert all(source.startswith("data:") for source in seen.sources)  # nothing from elsewhere
    assert text.count('<figure class="drawn"') == 3
    assert len(seen.ids) == len(set(seen.ids))
    assert {path.name for path in Path("report/cifar").glob("objective-*")} == {
        f"objective-{loss}.{form}" for loss in PLAN.losses for form in ("png", "svg")
    }
    assert main(command) == 0
    assert Path("report/index.html").read_text() == text


def test_options_change_the_plan() -> None:
    def plan(*options: str) -> Plan:
        found: Plan = reproduce_cifar._plan(_parser().parse_args(["reproduce", "cifar", *options]))
        return found

    assert plan() == Plan()
    assert plan("--quick") == Plan.quick()
    assert plan("--full", "--seeds", "2") == replace(Plan.full(), seeds=(0, 1))
    assert plan("--width", "1", "--train", "27") == Plan(width=1, n_train=27)
    assert (Plan.full().width, Plan.full().n_train, Plan.full().n_val, Plan.full().n_test) == (64, 45_000, 5_000, None)


def test_where_there_are_no_data_one_line_says_what_is_needed(data: Path, capsys: Capture) -> None:
    data.unlink()
    assert main(["reproduce", "cifar", "--quick"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"no file {data}: name the archive, or set RANKWISE_DATA" in line
    assert not Path("report").exists()


def test_without_torch_one_line_says_what_brings_it(
    data: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["reproduce", "cifar", "--quick"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line == "rankwise: this needs torch: pip install 'rankwise[torch]' (in a checkout: pip install '.[torch]')"


def test_a_plan_of_both_sizes_and_an_out_that_is_a_file_are_refused(data: Path, capsys: Capture) -> None:
    assert main(["reproduce", "--quick", "cifar", "--full"]) == 2
    assert "--quick and --full cannot both be given" in capsys.readouterr().err
    assert main(["reproduce", "cifar", "--out", str(data)]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err
