"""The CIFAR-10 experiment: its split, its networks, its gains, and the command."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score
from small_experiments import cifar_plan

torch = pytest.importorskip("torch")

from rankwise_lab.commands import reproduce_cifar  # noqa: E402
from rankwise_lab.data.cifar10 import ARCHIVE, Cifar10, find_cifar10, load_cifar10  # noqa: E402
from rankwise_lab.reproduce import cifar  # noqa: E402
from rankwise_lab.reproduce.cifar import METHODS, Experiment, Plan, judge  # noqa: E402
from rankwise_lab.reproduce.cifar_data import split  # noqa: E402

from rankwise.cli.main import _parser  # noqa: E402

PLAN = cifar_plan()
LOSSES = ("zero-one", "ap", "ndcg")


@pytest.fixture
def data(images: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive in the data folder; commands are run beside it, with the tiny plan if quick."""
    monkeypatch.setattr(cifar.Plan, "quick", lambda: PLAN)
    (place / "data").mkdir()
    return Path(shutil.copy(images, place / "data" / ARCHIVE))


def numbered(n: int, n_test: int, n_classes: int) -> Cifar10:
    """Images that tell their number; no two pixels vary alike."""
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 200, (n + n_test, 3, 32, 32)).astype(np.uint8)
    pixels[:, 0, 0, 0] = np.arange(n + n_test)
    labels = np.arange(n + n_test) % n_classes
    return Cifar10(pixels[:n], labels[:n], pixels[n:], labels[n:], tuple(f"c{k}" for k in range(n_classes)))


def test_a_split_takes_of_every_class_alike_and_no_image_twice() -> None:
    given = numbered(60, 20, 4)
    parts, again = (split(given, 24, 12, seed=5) for _ in range(2))
    assert [np.bincount(part.labels).tolist() for part in parts] == [[6] * 4, [3] * 4, [5] * 4]
    for one, other in zip(parts, again, strict=True):
        np.testing.assert_array_equal(one.images, other.images)
    assert not np.array_equal(split(given, 24, 12, seed=6).train.labels, parts.train.labels)
    pixels = np.concatenate([parts.train.images[:, 0, 0, 0], parts.val.images[:, 0, 0, 0]])
    assert np.unique(pixels).size == 36
    with pytest.raises(ValueError, match="50 \\+ 11 images to train and validate are too many: there are 60"):
        split(given, 50, 11, seed=0)
    with pytest.raises(ValueError, match="21 test images are too many: there are 20"):
        split(given, 50, 10, seed=0, n_test=21)


def test_pixels_are_centred_and_scaled_by_the_training_images_alone() -> None:
    given = numbered(60, 20, 4)
    given.train_images[:, 1, 2, 3] = 77
    train, val, _ = split(given, 40, 20, seed=0)
    varied = np.ones((3, 32, 32), bool)
    varied[1, 2, 3] = False
    np.testing.assert_allclose(train.images.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(train.images.std(axis=0)[varied], 1.0, rtol=1e-5)
    assert not train.images[:, 1, 2, 3].any()
    assert abs(val.images.mean(axis=0)).max() > 0.1
    test = split(given, 60, 0, seed=0, n_test=10).test
    pixels = given.train_images.astype(np.float64)
    deviation = np.where(varied, pixels.std(axis=0), 1.0)
    np.testing.assert_allclose(test.images, (given.test_images[::2] - pixels.mean(axis=0)) / deviation, atol=1e-4)
    assert test.labels.tolist() == given.test_labels[::2].tolist()


def test_measures_are_means_over_classes() -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(40) % 3
    scores = rng.normal(size=(40, 3)) + 1.5 * (labels[:, None] == np.arange(3))
    found = judge(scores, labels)
    relevant = (labels[:, None] == np.arange(3)).astype(int)
    assert found["ap"] == pytest.approx(average_precision_score(relevant, scores, average="macro"))
    assert found["ndcg"] == pytest.approx(ndcg_score(relevant.T, scores.T))
    assert found["accuracy"] == (scores.argmax(axis=1) == labels).mean()


def test_every_loss_goes_on_from_the_same_pre_trained_network(wholes: Any, images: Path) -> None:
    found = wholes.found("cifar")
    experiment = Experiment(load_cifar10(images, images.parent), wholes.folder / "cifar", PLAN)
    test = split(experiment.cifar, 18, 6, seed=3).test

    def judged(*which: Any) -> dict[str, float]:
        with torch.no_grad():
            return judge(experiment.network(3, *which)(torch.from_numpy(test.images)).numpy(), test.labels)

    (seed,), timed = found["seeds"], found["inference"]
    assert tuple(seed["losses"]) == LOSSES
    assert seed["pretrained"]["test"] == judged()
    for loss, one in seed["losses"].items():
        for stage in ("warm", "final"):
            assert one["test"][stage] == judged(loss, stage)
        values = [value for _, value in one["curve"]]
        assert len(values) == 1 + 7  # the start, and after each layer
        assert all(later <= earlier for earlier, later in itertools.pairwise(values))
        assert one["timing"]["calls"] > 0
    for loss, gain in found["differences"].items():
        ours, zero_one = (seed["losses"][name]["test"]["final"][loss] for name in (loss, "zero-one"))
        assert (gain["final"]["mean"], gain["final"]["low"]) == (pytest.approx(ours - zero_one), None)
    for loss, methods in METHODS.items():
        (size,) = timed[loss]
        assert (size["block_size"], tuple(size["methods"])) == (9, methods)
        for method, one in size["methods"].items():
            kept = json.loads((wholes.folder / "cifar" / f"time-{loss}-9-{method}-0.json").read_text())
            assert (one["inference"], one["total"]) == (kept["inference"], kept["total"])
        assert len({one["calls"] for one in size["methods"].values()}) == 1
        ends = [one["objective"] for one in size["methods"].values()]
        assert ends == pytest.approx([ends[0]] * 3, rel=1e-4)
        assert ends[2] == pytest.approx(seed["losses"][loss]["curve"][3][1])


def test_of_several_weights_the_one_that_validates_best_is_taken(data: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, losses=("zero-one",), lams=(1e-3, 10.0))
    (seed,), timed = Experiment(load_cifar10(find_cifar10()), tmp_path / "parts", plan).run()
    one = seed["losses"]["zero-one"]
    assert [(t["lam"], t["mu"]) for t in one["tried"]] == [(1e-3, 1e-2), (10.0, 1e-2)]
    best = max(one["tried"], key=lambda t: t["val"])
    assert (one["lam"], one["mu"], one["val"]["final"]) == (best["lam"], best["mu"], best["val"])
    assert timed == {}


def test_options_change_the_plan() -> None:
    def plan(*options: str) -> Plan:
        found: Plan = reproduce_cifar._plan(_parser().parse_args(["reproduce", "cifar", *options]))
        return found

    assert plan() == Plan()
    with pytest.raises(ValueError, match="--quick and --full cannot both be given"):
        plan("--quick", "--full")
    assert plan("--quick") == Plan.quick()
    assert plan("--full", "--seeds", "2") == replace(Plan.full(), seeds=(0, 1))
    assert plan("--width", "1", "--train", "27") == Plan(width=1, n_train=27)
    assert (Plan.full().width, Plan.full().n_train, Plan.full().n_val, Plan.full().n_test) == (64, 45_000, 5_000, None)
