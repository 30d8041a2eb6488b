"""The benchmark of retrieval: metrics, batches and arms, on bars of ink for characters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL.Image")

from rankwise_lab.benchmarks import retrieval  # noqa: E402
from rankwise_lab.benchmarks.arms import Arm  # noqa: E402
from rankwise_lab.benchmarks.finetune_model import one_thread  # noqa: E402
from rankwise_lab.benchmarks.retrieval import Plan, run  # noqa: E402
from rankwise_lab.benchmarks.retrieval_model import (  # noqa: E402
    ARMS,
    METRICS,
    Shape,
    judge,
    judged,
    network,
    rows_of_batch,
    smooth_ap,
    train,
)
from rankwise_lab.data.omniglot import Drawings  # noqa: E402

from rankwise.metrics import average_precision  # noqa: E402

SMALL = {"channels": 4, "embedding": 8, "characters": 3, "drawings": 2, "steps": 2}
PLAN = Plan(train=("A",), validation="B", test=("B", "C"), learning_rates=(1e-3, 1e-2), **SMALL)
INSTALLED = [arm for arm in ARMS if arm.package.installed]
BY_NAME = {arm.name: arm for arm in ARMS}


def test_metrics_are_those_of_every_query_against_the_others() -> None:
    rng = np.random.default_rng(0)
    embeddings, characters = rng.normal(size=(30, 5)), rng.permutation(np.repeat(np.arange(6), 5))
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    expected = []
    for i in range(30):
        others = np.arange(30) != i
        scores, relevant = (unit @ unit[i])[others], (characters == characters[i])[others]
        hits = relevant[np.argsort(-scores)]
        among = sum(hits[: k + 1].mean() for k in range(4) if hits[k]) / 4
        expected.append((among, float(average_precision(scores, relevant)), hits[0]))
    found = judged(embeddings, characters)
    np.testing.assert_allclose([found[name] for name in METRICS], np.mean(expected, axis=0), rtol=1e-12)
    apart = np.repeat(np.arange(3), 2)
    assert judged(np.eye(3)[apart], apart) == dict.fromkeys(METRICS, 1.0)


def test_a_batch_has_as_many_characters_and_drawings_as_asked_for_one_character_after_the_other() -> None:
    characters = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 5))
    members = [np.flatnonzero(characters == k) for k in range(10)]
    for seed in range(20):
        rows = rows_of_batch(members, 4, 3, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == 4 * 3
        of_rows = characters[rows].reshape(4, 3)
        assert (of_rows == of_rows[:, :1]).all()
        assert len(set(of_rows[:, 0].tolist())) == 4


def bars(seed: int) -> Drawings:
    """Bars at four places, 28 × 28, a little noisy."""
    rng = np.random.default_rng(seed)
    characters = np.repeat(np.arange(4), 8)
    images = rng.integers(0, 200, (32, 28, 28))
    for image, character in zip(images, characters, strict=True):
        image[7 * character : 7 * character + 4] += 55
    return Drawings(images.astype(np.uint8), characters)


@pytest.mark.slow
@pytest.mark.parametrize("arm", INSTALLED, ids=lambda arm: arm.name)
def test_each_arm_retrieves_bars_better_than_where_it_started(arm: Arm) -> None:
    with one_thread(0):
        model = network(8, 8)
        before = judge(model, bars(1))["MAP@R"]
        train(model, bars(0), arm.make(Shape(4, 8)), (4, 4), 40, 1e-2, np.random.default_rng(0))
    assert before < 0.6
    assert judge(model, bars(1))["MAP@R"] > before + 0.1


def test_smooth_ap_tends_to_average_precision_of_every_query_against_the_others() -> None:
    rng = np.random.default_rng(0)
    embeddings, labels = rng.normal(size=(12, 2)), np.repeat(np.arange(4), 3)
    expected = 1 - judged(embeddings, labels)["AP"]
    value = smooth_ap(torch.from_numpy(embeddings), torch.from_numpy(labels))
    assert value.item() == pytest.approx(expected, abs=0.05)


def test_the_rate_that_validates_best(omniglot_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judgements = iter([0.2, 0.4, 0.6, 0.7])
    monkeypatch.setattr(retrieval, "judge", lambda model, drawings: dict.fromkeys(METRICS, next(judgements)))
    (record,) = run(tmp_path, (0,), PLAN, [BY_NAME["hinge"]])
    assert record.validation == [0.2, 0.4]
    assert record.learning_rate == 1e-2
    assert record.test == {"B": dict.fromkeys(METRICS, 0.6), "C": dict.fromkeys(METRICS, 0.7)}
