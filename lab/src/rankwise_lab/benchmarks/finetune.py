"""`rankwise bench finetune`: a small CNN for rare classes of CIFAR-10, fine-tuned for AP.

A network learns rare classes with cross-entropy. From there each arm continues with its own loss for the same number of
epochs, with the batch size and learning rate of one grid that rank the validation images best. Some arms train for the
whole budget instead, from the initial weights under one schedule. Test labels are right; in training and validation
some negatives may be labelled as positives. Every seed draws classes, images, wrong labels, initial weights and order.
Results are kept in a folder, one file per seed and loss; a stopped run resumes from there.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankwise_lab import pieces
from rankwise_lab.benchmarks.arms import arms_table, compared, of_whole_seeds
from rankwise_lab.benchmarks.finetune_model import (
    REFERENCE,
    Arm,
    Labels,
    Part,
    mean_ap,
    network,
    one_thread,
    plain,
    train,
)
from rankwise_lab.data.cifar10 import ARCHIVE, Cifar10, load_cifar10
from rankwise_lab.data.folder import data_folder, existing
from rankwise_lab.progress import Progress
from rankwise_lab.report.table import as_text
from rankwise_lab.reproduce.cifar_data import digest


@dataclass(frozen=True)
class Sizes:
    """Images of each rare class and of each common one, to train with and to validate with; number of rare classes."""

    train_rare: int = 500
    train_common: int = 4000
    validation_rare: int = 125
    validation_common: int = 1000
    rare_classes: int = 5


@dataclass(frozen=True, eq=False)
class Problem:
    """The parts of one draw and the names of its rare classes; the labels of `test` are right, whatever the noise."""

    rare: tuple[str, ...]
    train: Part
    validation: Part
    test: Part


@dataclass(frozen=True)
class Choice:
    """Images per step, and the first learning rate, which falls to 0 along half a cosine."""

    batch: int
    learning_rate: float


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """What is drawn, how long training takes, and what each arm chooses from."""

    sizes: Sizes = field(default_factory=Sizes)
    noises: tuple[float, ...] = (0.0, 0.02)
    widths: tuple[int, ...] = (16, 32, 64)
    first: Choice = Choice(125, 2e-3)
    first_epochs: int = 10
    epochs: int = 6
    choices: tuple[Choice, ...] = (Choice(64, 5e-3), Choice(64, 1e-2), Choice(125, 1e-2))

    @classmethod
    def quick(cls) -> Plan:
        choices = Choice(125, 1e-2), Choice(500, 1e-2)
        return cls(Sizes(40, 250, 20, 125), widths=(8, 16), first_epochs=2, epochs=1, choices=choices)

    def settled(self) -> dict[str, Any]:
        return {"benchmark": "finetune", **super().settled()}


@dataclass(frozen=True)
class Record:
    """One arm of one seed: mean test AP over rare classes, before and after, for the choice that validates best.

    validation, test: the same for every choice, in the plan's order.
    """

    seed: int
    noise: float
    arm: str
    rare: list[str]
    before: float
    ap: float
    batch: int
    learning_rate: float
    validation: list[float]
    test: list[float]
    seconds: float


def run(
    folder: Path,
    seeds: Sequence[int],
    plan: Plan,
    arms: Sequence[Arm],
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[Record]:
    """Return records of these arms for these seeds; finished ones are in `folder`.

    n_jobs: seeds at a time, each on one thread.
    """
    archive = existing(data_folder() / ARCHIVE)
    done = pieces.Pieces(folder, plan, option="--results")
    left = [
        (plan, seed, noise, missing, archive)
        for seed in seeds
        for noise in plan.noises
        if (missing := [arm for arm in arms if _name(seed, noise, arm) not in done])
    ]
    if left:  # decode once here, not in every process
        done.agree("data", {"images": digest(load_cifar10(archive))}, "other images")
    done.finish("Fine-tuning", _evaluate, left, n_jobs, progress)
    names = [_name(seed, noise, arm) for noise in plan.noises for seed in seeds for arm in arms]
    return [done.record(name, Record) for name in names]


def _name(seed: int, noise: float, arm: Arm) -> str:
    """Return the name of a piece."""
    return f"seed-{seed}-noise-{noise:g}-{arm.name}"


def _evaluate(done: pieces.Pieces, plan: Plan, seed: int, noise: float, arms: Sequence[Arm], archive: Path) -> str:
    """Train with cross-entropy, continue with each arm, and write its record; return a label of seed and noise."""
    problem = draw(load_cifar10(archive), plan.sizes, noise, seed)
    with one_thread(seed):
        initial = network(plan.widths, len(problem.rare))
        start, first = copy.deepcopy(initial), plan.first
        rng = np.random.default_rng([seed, 1])
        train(start, problem.train, plain, plan.first_epochs, first.batch, first.learning_rate, rng, decay=False)
        before = mean_ap(start, problem.test)
        for arm in arms:
            began = time.perf_counter()
            validation, test = _by_choice(initial if arm.whole else start, problem, plan, seed, arm)
            best = int(np.argmax(validation))
            about = seed, noise, arm.name, list(problem.rare), before
            chosen, seconds = plan.choices[best], time.perf_counter() - began
            record = Record(*about, test[best], chosen.batch, chosen.learning_rate, validation, test, seconds)
            done.write(_name(seed, noise, arm), asdict(record))
    return f"seed {seed}, {noise:.0%} of negative labels wrong"


def _by_choice(start: Any, problem: Problem, plan: Plan, seed: int, arm: Arm) -> list[list[float]]:
    """Return mean AP of validation and of test images by choice, after training with it and a new loss."""
    epochs = plan.epochs + (plan.first_epochs if arm.whole else 0)
    found: list[list[float]] = [[], []]
    for choice in plan.choices:
        model, loss = copy.deepcopy(start), arm.make(problem.train.labels)
        rng = np.random.default_rng([seed, 2])
        train(model, problem.train, loss, epochs, choice.batch, choice.learning_rate, rng)
        for so_far, part in zip(found, (problem.validation, problem.test), strict=True):
            so_far.append(mean_ap(model, part))
    return found


def summarise(records: Collection[Record], plan: Plan, arms: Sequence[Arm]) -> dict[str, Any]:
    """Return, for each noise, mean test AP before and by arm, and paired differences with 95 % intervals (t).

    Differences are to plain cross-entropy, and to the best baseline of that noise by mean test AP. Only seeds with all
    arms count.
    """
    return {
        "benchmark": "finetune",
        **asdict(plan),
        "noises": [_noise_summary([r for r in records if r.noise == noise], noise, arms) for noise in plan.noises],
    }


def _noise_summary(records: Sequence[Record], noise: float, arms: Sequence[Arm]) -> dict[str, Any]:
    seeds, found = of_whole_seeds(records, arms)
    if not seeds:
        return {"noise": noise, "seeds": []}
    ap = {name: [r.ap for r in of_arm] for name, of_arm in found.items()}
    return {
        "noise": noise,
        "seeds": seeds,
        "before": float(np.mean([of_arm[0].before for of_arm in zip(*found.values(), strict=True)])),
        "ap": ap,
        "chosen": {name: [[r.batch, r.learning_rate] for r in of_arm] for name, of_arm in found.items()},
        "seconds": {name: float(np.mean([r.seconds for r in of_arm])) for name, of_arm in found.items()},
        **compared(ap, arms, REFERENCE),
    }


def table(summary: dict[str, Any]) -> str:
    """Return the summary as text: for each noise, arms with mean test AP and differences to the baselines."""
    blocks = []
    for found in summary["noises"]:
        title = f"{found['noise']:.0%} of negative labels wrong"
        if not found["seeds"]:
            blocks.append(f"{title}: no seed is finished")
            continue
        means = {"before": found["before"], **{name: float(np.mean(of)) for name, of in found["ap"].items()}}
        title = f"{title}, {len(found['seeds'])} seeds"
        blocks.append(as_text([arms_table(title, {"mean test AP": means}, found["differences"])]))
    return "\n\n".join(blocks)


# Data


def draw(cifar: Cifar10, sizes: Sizes, noise: float, seed: int) -> Problem:
    """Draw the rare classes, then the images of every class, then which negative labels are made positive.

    noise: the part of the negative labels of each rare class that are wrong, in training and validation alike. Images
    do not depend on it. The whole test set is kept; an image of a rare class weighs there as much less than one of a
    common class as it is rarer in training.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(cifar.classes))
    rare = order[: sizes.rare_classes]
    train, validation = [], []
    for label in order:
        rows = rng.permutation(np.flatnonzero(cifar.train_labels == label))
        is_rare = label in rare
        a = sizes.train_rare if is_rare else sizes.train_common
        b = a + (sizes.validation_rare if is_rare else sizes.validation_common)
        if b > rows.size:
            raise ValueError(f"class {cifar.classes[label]} has {rows.size} images, but {b} are needed")
        train.append(rows[:a])
        validation.append(rows[a:b])
    parts = []
    for rows in map(np.concatenate, (train, validation)):
        labels = _flip(cifar.train_labels[rows, None] == rare, noise, rng)
        parts.append(Part(cifar.train_images[rows], labels, np.ones(rows.size)))
    truth = cifar.test_labels[:, None] == rare
    weight = np.where(truth.any(axis=1), sizes.train_rare / sizes.train_common, 1.0)
    names = tuple(cifar.classes[label] for label in rare)
    return Problem(names, parts[0], parts[1], Part(cifar.test_images, truth, weight))


def _flip(truth: Labels, noise: float, rng: np.random.Generator) -> Labels:
    """A part `noise` of each column's negatives made positive."""
    labels = truth.copy()
    for column, right in zip(labels.T, truth.T, strict=True):
        negatives = np.flatnonzero(~right)
        column[rng.permutation(negatives)[: round(noise * negatives.size)]] = True
    return labels
