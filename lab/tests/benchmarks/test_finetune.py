"""The benchmark of fine-tuning: draws, batches, losses and training, on small coloured images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")

from rankwise_lab.benchmarks import finetune, finetune_model  # noqa: E402
from rankwise_lab.benchmarks.finetune import Choice, Plan, Sizes, draw, run  # noqa: E402
from rankwise_lab.benchmarks.finetune_model import (  # noqa: E402
    ARMS,
    Arm,
    Part,
    mean_ap,
    network,
    one_thread,
    plain,
    softmax,
    train,
)
from rankwise_lab.data.cifar10 import Cifar10  # noqa: E402

RTOL = 1e-12
CLASSES = ("black", "blue", "green", "red")
COLOURS = np.array([(20, 20, 20), (20, 20, 230), (20, 230, 20), (230, 20, 20)])
SIZES = Sizes(train_rare=6, train_common=20, validation_rare=3, validation_common=8, rare_classes=2)
CHOICES = Choice(13, 1e-3), Choice(26, 1e-2)
PLAN = Plan(SIZES, (0.0,), (4,), Choice(13, 1e-2), first_epochs=1, epochs=1, choices=CHOICES)
INSTALLED = [arm for arm in ARMS if arm.package.installed]
BY_NAME = {arm.name: arm for arm in ARMS}
PLAIN = ARMS[0]


def coloured(per_class: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images of one colour each, with a little noise; no two are the same."""
    labels = np.repeat(np.arange(len(CLASSES)), per_class)
    noise = np.random.default_rng(seed).integers(-20, 21, (labels.size, 3, 32, 32))
    return np.clip(COLOURS[labels][:, :, None, None] + noise, 0, 255).astype(np.uint8), labels


@pytest.fixture(scope="module")
def cifar() -> Cifar10:
    return Cifar10(*coloured(30, 0), *coloured(10, 1), CLASSES)


# Draws and batches


def test_a_draw_has_the_sizes_asked_for_no_image_twice_and_the_labels_of_the_images(cifar: Cifar10) -> None:
    problem = draw(cifar, SIZES, 0.0, 1)
    assert problem.train.images.shape == (2 * 6 + 2 * 20, 3, 32, 32)
    assert problem.train.labels.sum(axis=0).tolist() == [6, 6]
    assert problem.validation.labels.sum(axis=0).tolist() == [3, 3]
    assert len(problem.validation.images) == 2 * 3 + 2 * 8
    seen = np.concatenate([problem.train.images, problem.validation.images]).reshape(-1, 3 * 32 * 32)
    assert len(np.unique(seen, axis=0)) == len(seen)
    for part in (problem.train, problem.validation, problem.test):
        for column, name in zip(part.labels.T, problem.rare, strict=True):
            colour = part.images[column].mean(axis=(0, 2, 3))
            np.testing.assert_allclose(colour, COLOURS[CLASSES.index(name)], atol=10)
    for column in problem.test.labels.T:
        share = problem.test.weight[column].sum() / problem.test.weight.sum()
        assert share == pytest.approx(6 / (2 * 6 + 2 * 20), rel=RTOL), "as its class does in training"


def test_a_seed_is_a_draw_and_noise_is_a_part_of_the_negative_labels_but_of_the_test(cifar: Cifar10) -> None:
    first, again, other = (draw(cifar, SIZES, 0.0, seed) for seed in (3, 3, 4))
    noisy = draw(cifar, SIZES, 0.1, 3)
    np.testing.assert_array_equal(first.train.images, again.train.images)
    assert not np.array_equal(first.train.images, other.train.images)
    assert noisy.rare == first.rare
    for part, negatives in (("train", 46), ("validation", 19)):
        clean, flipped = getattr(first, part), getattr(noisy, part)
        np.testing.assert_array_equal(flipped.images, clean.images)
        assert (flipped.labels >= clean.labels).all()
        assert (flipped.labels & ~clean.labels).sum(axis=0).tolist() == [round(0.1 * negatives)] * 2
    np.testing.assert_array_equal(noisy.test.labels, first.test.labels)
    with pytest.raises(ValueError, match=r"class \w+ has 30 images, but 31 are needed"):
        draw(cifar, replace(SIZES, validation_common=11), 0.0, 0)


# Training


class Redness(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Scores by how red and how blue an image is."""

    def forward(self, images: Any) -> Any:
        return images.mean(dim=(2, 3))[:, [0, 2]]


def test_mean_ap_is_the_mean_over_classes_by_weight() -> None:
    images, labels = coloured(3, 5)
    weight = np.where(labels == 3, 0.5, 1.0)
    right = Part(images, np.column_stack([labels == 3, labels == 1]), weight)
    wrong = Part(images, np.column_stack([labels == 3, labels == 3]), weight)
    assert mean_ap(Redness(), right) == pytest.approx(1.0, rel=RTOL)
    blue = np.argsort(-images.mean(axis=(2, 3))[:, 2])
    above, hits = np.cumsum(weight[blue]), labels[blue] == 3
    worst = np.mean(np.cumsum(weight[blue] * hits)[hits] / above[hits])
    assert mean_ap(Redness(), wrong) == pytest.approx((1.0 + worst) / 2, rel=RTOL)


@pytest.mark.slow
@pytest.mark.parametrize("arm", INSTALLED, ids=lambda arm: arm.name)
def test_each_arm_ranks_colours_better_than_where_it_started(arm: Arm, cifar: Cifar10) -> None:
    problem = draw(cifar, SIZES, 0.0, 0)
    with one_thread(0):
        model = network((8,), 2)
        train(model, problem.train, plain, 1, 26, 1e-2, np.random.default_rng(0))
        before = mean_ap(model, problem.test)
        train(model, problem.train, arm.make(problem.train.labels), 12, 26, 1e-2, np.random.default_rng(0))
    assert before < 0.8
    assert mean_ap(model, problem.test) > 0.95


def test_arms_continue_one_network_or_begin(cifar_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    memories: list[int] = []
    memory = finetune_model.ScoreMemory

    def recording(model: Any, part: Any, loss: Any, epochs: int, batch: int, rate: float, rng: Any, **how: Any) -> None:
        weights = torch.cat([value.flatten() for value in model.parameters()]).tolist()
        calls.append((epochs, batch, rate, rng.bit_generator.state["state"]["state"], weights))
        train(model, part, loss, epochs, batch, rate, rng, **how)

    monkeypatch.setattr(finetune, "train", recording)
    monkeypatch.setattr(finetune_model, "ScoreMemory", lambda n, k: memories.append(n) or memory(n, k))
    arms = [BY_NAME[name] for name in ("cross-entropy", "error-driven-memory", "cross-entropy-whole")]
    run(tmp_path / "r", (0,), replace(PLAN, first_epochs=2, epochs=3), arms)
    first, *rest = calls
    assert first[:3] == (2, 13, 1e-2)
    assert rest[:2] == rest[2:4], "the same for every arm"
    assert [call[:3] for call in rest] == [(n, *(c.batch, c.learning_rate)) for n in (3, 3, 5) for c in CHOICES]
    assert len({call[3] for call in rest}) == 1, "the same order of images"
    assert [call[4] == first[4] for call in rest] == [False] * 4 + [True] * 2
    assert rest[0][4] == rest[1][4], "of what was trained first"
    assert memories == [2 * 6 + 2 * 20] * len(CHOICES)


def test_the_choice_that_validates_best(cifar_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judgements = iter([0.1, 0.2, 0.6, 0.4, 0.7])
    monkeypatch.setattr(finetune, "mean_ap", lambda model, part: next(judgements))
    (record,) = run(tmp_path / "r", (0,), PLAN, [PLAIN])
    assert (record.before, record.validation, record.test) == (0.1, [0.2, 0.4], [0.6, 0.7])
    assert (record.ap, record.batch, record.learning_rate) == (0.7, CHOICES[1].batch, CHOICES[1].learning_rate)
    monkeypatch.setattr(finetune, "digest", lambda cifar: "other")
    with pytest.raises(ValueError, match=r"other images \(images is .* there, other here\): name another --results"):
        run(tmp_path / "r", (1,), PLAN, [PLAIN])


# Losses


def test_the_softmax_is_of_each_positive_against_the_negatives_of_its_class() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
    target = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    e = np.exp(1.0)
    each = [-np.log(1 / (1 + e**2)), -np.log(e / (e + e**2)), -np.log(e / (e + e**2 + 1))]
    assert softmax(scores, target).item() == pytest.approx(sum(each) / 3, rel=RTOL)
    none = torch.ones(3, 2, requires_grad=True)
    value = softmax(none, torch.zeros(3, 2))
    value.backward()
    assert (value.item(), none.grad.abs().max().item()) == (0.0, 0.0), "without positives"


# Summary
