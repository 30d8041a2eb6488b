"""The benchmark of fine-tuning: draws, batches and training, and its file of results, on small coloured images."""

from __future__ import annotations

import io
import json
import pickle
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from rankwise_lab.benchmarks import finetune, finetune_arms, finetune_data, finetune_model  # noqa: E402
from rankwise_lab.benchmarks.finetune import Choice, Plan, Record, run, summarise, table  # noqa: E402
from rankwise_lab.benchmarks.finetune_arms import ARMS, Arm, focal, plain, softmax  # noqa: E402
from rankwise_lab.benchmarks.finetune_data import Part, Problem, Sizes, draw  # noqa: E402
from rankwise_lab.benchmarks.finetune_model import mean_ap, network, one_thread, train  # noqa: E402
from rankwise_lab.data.cifar10 import ARCHIVE, Cifar10  # noqa: E402
from rankwise_lab.data.folder import MissingDataError  # noqa: E402

RTOL = 1e-12
CLASSES = ("black", "blue", "green", "red")
COLOURS = np.array([(20, 20, 20), (20, 20, 230), (20, 230, 20), (230, 20, 20)])
SIZES = Sizes(train_rare=6, train_common=20, validation_rare=3, validation_common=8, rare_classes=2)
PLAN = Plan(
    SIZES,
    noises=(0.0, 0.1),
    widths=(4,),
    first=Choice(13, 1e-2),
    first_epochs=1,
    epochs=1,
    choices=(Choice(13, 1e-3), Choice(26, 1e-2)),
)
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an archive of the real one's layout; arrays of it are kept there too."""
    folder = tmp_path_factory.mktemp("data")
    with tarfile.open(folder / ARCHIVE, "w:xz") as tar:
        for part, per_class in (("train", 30), ("test", 10)):
            images, labels = coloured(per_class, 2)
            for i, (image, label) in enumerate(zip(images, labels, strict=True)):
                buffer = io.BytesIO()
                Image.fromarray(image.transpose(1, 2, 0)).save(buffer, "JPEG")
                member = tarfile.TarInfo(f"{part}/{CLASSES[label]}/{i % per_class:04}.jpg")
                member.size = buffer.tell()
                tar.addfile(member, io.BytesIO(buffer.getvalue()))
    return folder


def same(a: Part, b: Part) -> bool:
    return np.array_equal(a.images, b.images) and np.array_equal(a.labels, b.labels)


def test_a_seed_is_a_draw_and_noise_changes_labels_only(cifar: Cifar10) -> None:
    first, again, other = (draw(cifar, SIZES, 0.0, seed) for seed in (3, 3, 4))
    noisy = draw(cifar, SIZES, 0.1, 3)
    assert same(first.train, again.train)
    assert not same(first.train, other.train)
    assert noisy.rare == first.rare
    for part in ("train", "validation"):
        np.testing.assert_array_equal(getattr(noisy, part).images, getattr(first, part).images)
        assert (getattr(noisy, part).labels >= getattr(first, part).labels).all()


def test_a_draw_has_the_sizes_asked_for_and_no_image_twice(cifar: Cifar10) -> None:
    problem = draw(cifar, SIZES, 0.0, 0)
    assert problem.train.images.shape == (2 * 6 + 2 * 20, 3, 32, 32)
    assert problem.train.labels.sum(axis=0).tolist() == [6, 6]
    assert problem.validation.labels.sum(axis=0).tolist() == [3, 3]
    assert len(problem.validation.images) == 2 * 3 + 2 * 8
    seen = np.concatenate([problem.train.images, problem.validation.images]).reshape(-1, 3 * 32 * 32)
    assert len(np.unique(seen, axis=0)) == len(seen)


def test_labels_are_those_of_the_images(cifar: Cifar10) -> None:
    problem = draw(cifar, SIZES, 0.0, 1)
    for part in (problem.train, problem.validation, problem.test):
        for column, name in zip(part.labels.T, problem.rare, strict=True):
            colour = part.images[column].mean(axis=(0, 2, 3))
            np.testing.assert_allclose(colour, COLOURS[CLASSES.index(name)], atol=10)


def test_noise_is_a_part_of_each_classs_negatives_and_spares_the_test(cifar: Cifar10) -> None:
    clean, noisy = draw(cifar, SIZES, 0.0, 0), draw(cifar, SIZES, 0.1, 0)
    assert (noisy.train.labels & ~clean.train.labels).sum(axis=0).tolist() == [round(0.1 * 46)] * 2
    assert (noisy.validation.labels & ~clean.validation.labels).sum(axis=0).tolist() == [round(0.1 * 19)] * 2
    np.testing.assert_array_equal(noisy.test.labels, clean.test.labels)
    assert clean.test.labels.sum(axis=0).tolist() == [10, 10]


def test_a_test_image_weighs_as_its_class_does_in_training(cifar: Cifar10) -> None:
    test = draw(cifar, SIZES, 0.0, 0).test
    for column in test.labels.T:
        share = test.weight[column].sum() / test.weight.sum()
        assert share == pytest.approx(6 / (2 * 6 + 2 * 20), rel=RTOL)


def test_more_images_than_there_are_is_refused(cifar: Cifar10) -> None:
    with pytest.raises(ValueError, match=r"class \w+ has 30 images, but 31 are needed"):
        draw(cifar, replace(SIZES, validation_common=11), 0.0, 0)


@pytest.mark.parametrize("size", [7, 13, 52, 1000])
def test_every_row_is_in_one_batch_and_every_class_has_its_share_of_each(cifar: Cifar10, size: int) -> None:
    labels = draw(cifar, SIZES, 0.0, 0).train.labels
    found = list(finetune_model.batches(labels, size, np.random.default_rng(0)))
    assert sorted(np.concatenate(found)) == list(range(52))
    for rows in found:
        expected = 6 * len(rows) / 52
        assert (np.abs(labels[rows].sum(axis=0) - expected) <= 1).all()


def test_images_are_mirrored_left_to_right_and_nothing_else() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (200, 32, 32, 3), dtype=np.uint8)
    before = pixels.copy()
    found = finetune_model._mirrored(pixels, np.random.default_rng(1))
    np.testing.assert_array_equal(pixels, before)
    kept = (found == pixels).all(axis=(1, 2, 3))
    np.testing.assert_array_equal(found[~kept], pixels[~kept][:, :, ::-1])
    assert 60 < kept.sum() < 140


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
    above = np.cumsum(weight[blue])
    hits = labels[blue] == 3
    worst = np.mean(np.cumsum(weight[blue] * hits)[hits] / above[hits])
    assert mean_ap(Redness(), wrong) == pytest.approx((1.0 + worst) / 2, rel=RTOL)


def test_the_network_is_small_and_has_one_score_a_class() -> None:
    model = network(Plan().widths, 5)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 5)
    assert sum(p.numel() for p in model.parameters()) < 50_000


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


def test_training_twice_gives_the_same_weights_and_leaves_threads_and_randomness(cifar: Cifar10) -> None:
    problem = draw(cifar, SIZES, 0.0, 0)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    models = []
    for _ in range(2):
        with one_thread(7):
            assert torch.get_num_threads() == 1
            model = network((4,), 2)
            train(model, problem.train, plain, 1, 13, 1e-2, np.random.default_rng(0))
            models.append(model.state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("decay", [True, False])
def test_the_learning_rate_falls_along_half_a_cosine_or_stays(
    decay: bool, cifar: Cifar10, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    class Recorder(torch.optim.AdamW):  # type: ignore[misc, name-defined]
        def step(self, closure: Any = None) -> Any:
            rates.append(self.param_groups[0]["lr"])
            return super().step(closure)

    monkeypatch.setattr(torch.optim, "AdamW", Recorder)
    part = draw(cifar, SIZES, 0.0, 0).train
    train(network((4,), 2), part, plain, 2, 26, 1e-2, np.random.default_rng(0), decay=decay)
    steps = np.arange(4)
    expected = 0.5e-2 * (1 + np.cos(np.pi * steps / 4)) if decay else np.full(4, 1e-2)
    np.testing.assert_allclose(rates, expected, rtol=RTOL)


def _run(path: Path, folder: Path, **options: Any) -> list[Record]:
    given = {"seeds": (0, 1), "plan": PLAN, "arms": ARMS[:2], "data_dir": folder, "cache_dir": folder, **options}
    return run(path, **given)


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """Where a run that nothing stopped keeps its pieces, and its records."""
    kept = tmp_path_factory.mktemp("whole") / "r"
    return kept, _run(kept, folder)


def _content(kept: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept.iterdir()}


def _must_not_run(name: str) -> Arm:
    return Arm(name, lambda labels: pytest.fail(f"{name} was trained"), ours=False)


def test_all_arms_start_from_the_same_network_with_the_same_budget(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, ...]] = []

    def recording(
        model: Any, part: Part, loss: Any, epochs: int, batch: int, rate: float, rng: Any, **how: Any
    ) -> None:
        weights = torch.cat([value.flatten() for value in model.parameters()]).tolist()
        calls.append((epochs, batch, rate, rng.random(), weights))
        train(model, part, loss, epochs, batch, rate, rng, **how)

    monkeypatch.setattr(finetune, "train", recording)
    _run(tmp_path / "r", folder, seeds=(0,), plan=replace(PLAN, noises=(0.0,)))
    first, *rest = calls
    assert first[:3] == (1, 13, 1e-2)
    assert rest[:2] == rest[2:]
    assert [call[:3] for call in rest[:2]] == [(1, 13, 1e-3), (1, 26, 1e-2)]
    assert rest[0][3:] == rest[1][3:]
    assert rest[0][4] != first[4]


def test_arms_of_the_whole_budget_start_from_initial_weights_and_train_as_long_as_both_parts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[int, list[float]]] = []

    def recording(model: Any, part: Part, loss: Any, epochs: int, *rest: Any, **how: Any) -> None:
        begun.append((epochs, torch.cat([value.flatten() for value in model.parameters()]).tolist()))
        train(model, part, loss, epochs, *rest, **how)

    monkeypatch.setattr(finetune, "train", recording)
    plan = replace(PLAN, noises=(0.0,), first_epochs=2, epochs=3)
    _run(tmp_path / "r", folder, seeds=(0,), plan=plan, arms=[PLAIN, BY_NAME["cross-entropy-whole"]])
    first, *on = begun
    assert [epochs for epochs, _ in begun] == [2, 3, 3, 2 + 3, 2 + 3]
    assert [weights == first[1] for _, weights in on] == [False, False, True, True]


def test_every_choice_has_a_loss_of_its_own_whose_memory_is_empty(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    memory = finetune_arms.ScoreMemory

    def recording(n: int, n_outputs: int) -> Any:
        seen.append(n)
        return memory(n, n_outputs)

    monkeypatch.setattr(finetune_arms, "ScoreMemory", recording)
    arms = [BY_NAME["error-driven-memory"]]
    _run(tmp_path / "r", folder, seeds=(0,), plan=replace(PLAN, noises=(0.0,)), arms=arms)
    assert seen == [2 * 6 + 2 * 20] * len(PLAN.choices)


def test_a_memory_ranks_a_batch_among_the_scores_of_earlier_ones() -> None:
    scores, target = torch.tensor([[2.0], [1.0], [0.0]]), torch.tensor([[0.0], [1.0], [0.0]])
    labels = target.numpy() > 0
    loss = BY_NAME["error-driven-memory"].make(labels)
    loss(scores[:1], target[:1], torch.tensor([0]))
    value = loss(scores[1:], target[1:], torch.tensor([1, 2]))
    everything = BY_NAME["error-driven"].make(labels)(scores, target, torch.arange(3))
    assert value.item() == pytest.approx(everything.item(), rel=1e-6)


def test_the_softmax_is_of_each_positive_against_the_negatives_of_its_class() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
    target = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    e = np.exp(1.0)
    each = [-np.log(1 / (1 + e**2)), -np.log(e / (e + e**2)), -np.log(e / (e + e**2 + 1))]
    assert softmax(scores, target).item() == pytest.approx(sum(each) / 3, rel=RTOL)


def test_the_softmax_without_positives_is_0_with_a_zero_gradient() -> None:
    scores = torch.ones(3, 2, requires_grad=True)
    value = softmax(scores, torch.zeros(3, 2))
    value.backward()
    assert value.item() == 0.0
    assert scores.grad.abs().max().item() == 0.0


def test_the_focal_loss_weighs_by_the_square_of_what_is_missing() -> None:
    scores, target = torch.log(torch.tensor([[3.0], [3.0]], dtype=torch.float64)), torch.tensor([[1.0], [0.0]])
    expected = (-np.log(3 / 4) * (1 / 4) ** 2 - np.log(1 / 4) * (3 / 4) ** 2) / 2
    assert focal(scores, target.double()).item() == pytest.approx(expected, rel=RTOL)


def test_the_choice_that_validates_best_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[tuple[int, float]] = []

    def recording(model: Any, part: Part) -> float:
        tested.append((len(part.images), mean_ap(model, part)))
        return tested[-1][1]

    monkeypatch.setattr(finetune, "mean_ap", recording)
    (record,) = _run(tmp_path / "r", folder, seeds=(0,), plan=replace(PLAN, noises=(0.0,)), arms=[PLAIN])
    before, *rest = tested
    validation, test = rest[::2], rest[1::2]
    assert [n for n, _ in tested] == [40, 22, 40, 22, 40]
    assert record.validation == [ap for _, ap in validation]
    assert record.test == [ap for _, ap in test]
    assert (record.before, record.ap) == (before[1], record.test[int(np.argmax(record.validation))])
    best = PLAN.choices[int(np.argmax(record.validation))]
    assert (record.batch, record.learning_rate) == (best.batch, best.learning_rate)


def test_a_run_goes_on_where_it_was_stopped(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "r"
    first = _run(kept, folder, seeds=(0,))
    done = _content(kept)
    pieces = [f"seed-0-noise-{noise}-{arm.name}.json" for noise in ("0", "0.1") for arm in ARMS[:2]]
    assert sorted(done) == sorted(["data.json", "plan.json", *pieces])
    both = _run(kept, folder)
    assert [r for r in both if r.seed == 0] == first
    assert done.items() <= _content(kept).items()
    assert _run(kept, folder, arms=[_must_not_run(arm.name) for arm in ARMS[:2]]) == both


# Killed when a piece is written for the n-th time.
KILLED = """
from pathlib import Path
{dying}
sys.path.insert(0, sys.argv[2])
import test_finetune as tests
tests._run(Path("r"), Path(sys.argv[3]))
"""


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_that_is_killed_goes_on_to_the_same_records(
    folder: Path, tmp_path: Path, whole: tuple[Path, list[Record]], monkeypatch: pytest.MonkeyPatch, dying: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code = KILLED.format(dying=dying)
    killed = [sys.executable, "-c", code, "5", str(Path(__file__).parent), str(folder)]
    assert subprocess.run(killed, check=False, capture_output=True).returncode == -signal.SIGKILL
    before = _content(Path("r"))
    assert len(before) == 5, "the plan, the data, and three arms"
    found = _run(Path("r"), folder)
    assert before.items() <= _content(Path("r")).items()
    assert [replace(r, seconds=0.0) for r in found] == [replace(r, seconds=0.0) for r in whole[1]]


def test_a_seed_in_a_process_of_its_own_keeps_its_pieces(folder: Path, tmp_path: Path) -> None:
    one = {"seeds": (1,), "plan": replace(PLAN, noises=(0.1,)), "arms": [PLAIN]}
    alone, apart = (_run(tmp_path / str(jobs), folder, n_jobs=jobs, **one) for jobs in (1, 2))
    assert [replace(r, seconds=0.0) for r in alone] == [replace(r, seconds=0.0) for r in apart]
    assert _content(tmp_path / "1").keys() == _content(tmp_path / "2").keys()


def test_a_seed_finds_the_same_alone_and_after_another(
    folder: Path, tmp_path: Path, whole: tuple[Path, list[Record]]
) -> None:
    alone = _run(tmp_path / "a", folder, seeds=(1,))
    after = [r for r in whole[1] if r.seed == 1]
    assert [r.ap for r in after] == [r.ap for r in alone]


def test_arms_can_be_sent_to_other_processes() -> None:
    sent = pickle.loads(pickle.dumps(INSTALLED))
    scores, target = torch.tensor([[0.5], [1.0], [0.0]]), torch.tensor([[1.0], [0.0], [0.0]])
    labels, rows = target.numpy() > 0, torch.arange(3)
    for arm, copied in zip(INSTALLED, sent, strict=True):
        assert copied.make(labels)(scores, target, rows).item() == arm.make(labels)(scores, target, rows).item()


def test_records_come_by_noise_seed_and_arm_whatever_else_is_in_the_folder(
    folder: Path, whole: tuple[Path, list[Record]]
) -> None:
    found = _run(whole[0], folder, seeds=(1, 0), arms=[ARMS[1]])
    assert [(r.seed, r.noise, r.arm) for r in found] == [
        (s, noise, ARMS[1].name) for noise in (0.0, 0.1) for s in (1, 0)
    ]


def test_results_of_another_plan_or_of_other_images_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(tmp_path / "r", folder, seeds=(0,), arms=[PLAIN])
    with pytest.raises(ValueError, match=r"another plan \(plan.epochs is 1 there, 2 here\): name another --results"):
        _run(tmp_path / "r", folder, plan=replace(PLAN, epochs=2))
    monkeypatch.setattr(finetune, "digest", lambda cifar: "other")
    with pytest.raises(ValueError, match=r"other images \(images is .* there, other here\): name another --results"):
        _run(tmp_path / "r", folder)


def test_without_the_archive_nothing_is_begun(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="set RANKWISE_DATA to the folder that has it"):
        _run(tmp_path / "r", tmp_path)
    assert not (tmp_path / "r").exists()


def _record(seed: int, arm: str, ap: float, noise: float = 0.0) -> Record:
    return Record(seed, noise, arm, ["red"], 0.1, ap, 13, 1e-3, [0.2, 0.1], [ap, 0.0], 2.0)


THREE = [BY_NAME[name] for name in ("cross-entropy", "weighted", "direct-ap")]
ONE_NOISE = replace(PLAN, noises=(0.0,))


def _three() -> list[Record]:
    aps = {"cross-entropy": (0.2, 0.3, 0.4), "weighted": (0.3, 0.4, 0.5), "direct-ap": (0.25, 0.45, 0.5)}
    return [_record(seed, arm, ap) for arm, values in aps.items() for seed, ap in enumerate(values)]


def test_differences_are_paired_with_students_interval() -> None:
    (found,) = summarise(_three(), ONE_NOISE, THREE)["noises"]
    assert found["seeds"] == [0, 1, 2]
    assert found["before"] == pytest.approx(0.1)
    assert found["best_baseline"] == "weighted"
    difference = found["differences"]["cross-entropy"]["direct-ap"]
    assert difference["mean"] == pytest.approx(0.1)
    half = 4.302652729911275 * 0.05 / np.sqrt(3)  # t of 2 degrees of freedom; the differences are 0.05, 0.15, 0.10
    assert (difference["low"], difference["high"]) == (pytest.approx(0.1 - half), pytest.approx(0.1 + half))
    assert found["differences"]["weighted"]["direct-ap"]["mean"] == pytest.approx(0.0)
    assert json.loads(json.dumps(found)) == found


def test_seeds_without_all_arms_do_not_count() -> None:
    (found,) = summarise(_three()[:-1], ONE_NOISE, THREE)["noises"]
    assert found["seeds"] == [0, 1]
    assert found["ap"]["cross-entropy"] == [0.2, 0.3]


def test_the_table_says_each_arm_and_difference_and_what_was_not_run() -> None:
    text = table(summarise(_three(), PLAN, THREE))
    assert "0% of negative labels wrong, 3 seeds" in text
    assert "minus cross-entropy" in text
    assert "minus weighted" in text
    line = next(line for line in text.splitlines() if line.split()[:1] == ["direct-ap"])
    assert line.split()[1:3] == ["0.4000", "+0.1000"]
    assert "10% of negative labels wrong: no seed is finished" in text


def test_one_seed_has_differences_without_ends() -> None:
    records = [r for r in _three() if r.seed == 0]
    text = table(summarise(records, ONE_NOISE, THREE))
    assert "+0.0500" in text
    assert "[" not in text


def test_a_problem_is_drawn_from_the_archive_of_the_data_folder(folder: Path) -> None:
    problem = draw(finetune_data.load(folder, folder), SIZES, 0.0, 0)
    assert isinstance(problem, Problem)
    assert set(problem.rare) <= set(CLASSES)
