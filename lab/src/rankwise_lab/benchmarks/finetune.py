"""The benchmark behind `rankwise bench finetune`: a small CNN for rare classes of CIFAR-10, trained on for AP.

A network learns rare classes with cross-entropy; from there each arm trains on with a loss of its own, for as many
epochs, with the batch and learning rate of one grid that rank the validation images best. Test labels are right; in
training and validation some negatives may be labelled as positives. Every seed draws classes, images, wrong labels,
initial weights and order. What is finished is kept in a folder, a file a seed and loss; a run goes on from there.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from rankwise_lab import pieces
from rankwise_lab.benchmarks.finetune_data import Problem, Sizes, archive, draw, load
from rankwise_lab.benchmarks.finetune_model import (
    ARMS,
    REFERENCE,
    Arm,
    cross_entropy,
    mean_ap,
    network,
    one_thread,
    train,
)
from rankwise_lab.intervals import interval_cells, student
from rankwise_lab.progress import Progress
from rankwise_lab.report.table import Table, as_text
from rankwise_lab.reproduce.cifar_data import digest

__all__ = ["Choice", "Plan", "Record", "run", "summarise", "table"]


@dataclass(frozen=True)
class Choice:
    """Images a step, and the first learning rate, which falls to 0 along half a cosine."""

    batch: int
    learning_rate: float


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """What is drawn, how long is trained, and what each arm chooses from."""

    sizes: Sizes = field(default_factory=Sizes)
    noises: tuple[float, ...] = (0.0, 0.02)
    widths: tuple[int, ...] = (16, 32, 64)
    first: Choice = Choice(125, 2e-3)
    first_epochs: int = 10
    epochs: int = 6
    choices: tuple[Choice, ...] = (Choice(125, 3e-3), Choice(125, 1e-2), Choice(1000, 1e-2))

    @classmethod
    def quick(cls) -> Plan:
        choices = Choice(125, 1e-2), Choice(500, 1e-2)
        return cls(Sizes(40, 250, 20, 125), widths=(8, 16), first_epochs=2, epochs=1, choices=choices)

    def settled(self) -> dict[str, Any]:
        return {"benchmark": "finetune", **super().settled()}


@dataclass(frozen=True)
class Record:
    """One arm of one seed: mean AP over rare classes, of test images before, and after by the choice validated best.

    validation, test: the same of every choice, in the plan's order.
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
    seeds: Sequence[int] = range(5),
    plan: Plan | None = None,
    arms: Sequence[Arm] = ARMS,
    n_jobs: int = 1,
    data_dir: Path | None = None,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Records of all arms for all seeds; those that are finished are in `folder`.

    data_dir: where the archive is, else RANKWISE_DATA, else ../shared/data from the root of a checkout; raises
    MissingDataError where it is not. n_jobs: seeds at a time, each on one thread.
    """
    plan = Plan() if plan is None else plan
    bar = Progress() if progress is None else progress
    archive(data_dir)
    done = pieces.Pieces(folder, plan, option="--results")
    left = [
        (seed, noise, missing)
        for seed in seeds
        for noise in plan.noises
        if (missing := [arm for arm in arms if _name(seed, noise, arm) not in done])
    ]
    if left:  # decoded here, once, and not by every process
        done.agree("data", {"images": digest(load(data_dir, cache_dir))}, "other images")
    jobs = (delayed(_evaluate)(done, plan, *of_seed, data_dir, cache_dir) for of_seed in left)
    bar.follow("Fine-tuning", Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs), len(left))
    names = [_name(seed, noise, arm) for noise in plan.noises for seed in seeds for arm in arms]
    return [done.record(name, Record) for name in names]


def _name(seed: int, noise: float, arm: Arm) -> str:
    """What a piece is called."""
    return f"seed-{seed}-noise-{noise:g}-{arm.name}"


def _evaluate(
    done: pieces.Pieces,
    plan: Plan,
    seed: int,
    noise: float,
    arms: Sequence[Arm],
    data_dir: Path | None,
    cache_dir: Path | None,
) -> str:
    """Train with cross-entropy, then on with each arm from there, and keep what it gave; says which seed and noise."""
    problem = draw(load(data_dir, cache_dir), plan.sizes, noise, seed)
    with one_thread(seed):
        start = network(plan.widths, len(problem.rare))
        first = plan.first
        rng = np.random.default_rng([seed, 1])
        train(
            start, problem.train, cross_entropy, plan.first_epochs, first.batch, first.learning_rate, rng, decay=False
        )
        before = mean_ap(start, problem.test)
        for arm in arms:
            record = _train_on(start, problem, plan, seed, noise, arm, before)
            done.write(_name(seed, noise, arm), asdict(record))
    return f"seed {seed}, {noise:.0%} of negative labels wrong"


def _train_on(start: Any, problem: Problem, plan: Plan, seed: int, noise: float, arm: Arm, before: float) -> Record:
    """Train on by every choice; the one that validates best counts."""
    began = time.perf_counter()
    loss = arm.make(problem.train.labels)
    validation, test = [], []
    for choice in plan.choices:
        model = copy.deepcopy(start)
        rng = np.random.default_rng([seed, 2])
        train(model, problem.train, loss, plan.epochs, choice.batch, choice.learning_rate, rng)
        validation.append(mean_ap(model, problem.validation))
        test.append(mean_ap(model, problem.test))
    best = int(np.argmax(validation))
    batch, rate = plan.choices[best].batch, plan.choices[best].learning_rate
    seconds = time.perf_counter() - began
    return Record(seed, noise, arm.name, list(problem.rare), before, test[best], batch, rate, validation, test, seconds)


def summarise(records: Collection[Record], plan: Plan, arms: Sequence[Arm] = ARMS) -> dict[str, Any]:
    """Plain data: for each noise, mean test AP before and by arm, and paired differences with 95 % intervals (t).

    Differences are to plain cross-entropy, and to the best baseline of that noise by mean test AP. Only seeds with all
    arms count.
    """
    return {
        "benchmark": "finetune",
        **asdict(plan),
        "noises": [_noise_summary([r for r in records if r.noise == noise], noise, arms) for noise in plan.noises],
    }


def _noise_summary(records: Sequence[Record], noise: float, arms: Sequence[Arm]) -> dict[str, Any]:
    by_seed: dict[int, dict[str, Record]] = {}
    for record in records:
        by_seed.setdefault(record.seed, {})[record.arm] = record
    seeds = [seed for seed in sorted(by_seed) if all(arm.name in by_seed[seed] for arm in arms)]
    if not seeds:
        return {"noise": noise, "seeds": []}
    found = {arm.name: [by_seed[seed][arm.name] for seed in seeds] for arm in arms}
    ap = {name: np.array([r.ap for r in of_arm]) for name, of_arm in found.items()}
    baselines = {arm.name: float(ap[arm.name].mean()) for arm in arms if not arm.ours}
    best = max(baselines, key=baselines.__getitem__) if baselines else None
    return {
        "noise": noise,
        "seeds": seeds,
        "before": float(np.mean([of_arm[0].before for of_arm in zip(*found.values(), strict=True)])),
        "ap": {name: values.tolist() for name, values in ap.items()},
        "chosen": {name: [[r.batch, r.learning_rate] for r in of_arm] for name, of_arm in found.items()},
        "seconds": {name: float(np.mean([r.seconds for r in of_arm])) for name, of_arm in found.items()},
        "best_baseline": best,
        "differences": {
            to: {name: asdict(student(values - ap[to])) for name, values in ap.items() if name != to}
            for to in dict.fromkeys((REFERENCE, best))
            if to in ap
        },
    }


def table(summary: dict[str, Any]) -> str:
    """The summary as text: for each noise, arms with mean test AP and the differences to the baselines."""
    blocks = []
    for found in summary["noises"]:
        title = f"{found['noise']:.0%} of negative labels wrong"
        if not found["seeds"]:
            blocks.append(f"{title}: no seed was run to its end")
            continue
        others = found["differences"]
        columns = ["", "mean test AP", *(cell for to in others for cell in (f"less {to}", "95 % interval"))]
        rows = [["before", f"{found['before']:.4f}", *[""] * (2 * len(others))]]
        for name, values in found["ap"].items():
            cells = (cell for of in others.values() for cell in interval_cells(of.get(name)))
            rows.append([name, f"{np.mean(values):.4f}", *cells])
        blocks.append(as_text([Table(f"{title}, {len(found['seeds'])} seeds", columns, rows)]))
    return "\n\n".join(blocks)
