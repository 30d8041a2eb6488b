"""`rankwise bench retrieval`: embeddings of characters, judged on unseen alphabets.

A small network learns from four alphabets of Omniglot, once for each arm, seed and learning rate. The rate that does
best on a fifth alphabet is judged on three others. Results are kept in a folder, one file per seed and arm.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwise.io import fingerprint
from rankwise_lab import pieces
from rankwise_lab.benchmarks.arms import Arm, arms_table, compared, of_whole_seeds
from rankwise_lab.benchmarks.finetune_model import one_thread
from rankwise_lab.benchmarks.retrieval_model import METRICS, Shape, judge, network, train
from rankwise_lab.data.folder import data_folder, existing
from rankwise_lab.data.omniglot import ARCHIVE, Drawings, Omniglot, load_omniglot
from rankwise_lab.progress import Progress
from rankwise_lab.report.table import as_text

# The metric that chooses a learning rate and compares arms.
_CHIEF = METRICS[0]


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """The network, how long it is trained, and on which alphabets.

    characters, drawings: in a batch, and of each character.
    """

    train: tuple[str, ...] = ("Balinese", "Early_Aramaic", "Greek", "Latin")
    validation: str = "Korean"
    test: tuple[str, ...] = ("Japanese_(katakana)", "Sanskrit", "Tagalog")
    channels: int = 64
    embedding: int = 64
    characters: int = 16
    drawings: int = 4
    steps: int = 500
    learning_rates: tuple[float, ...] = (1e-3, 3e-3)

    @classmethod
    def quick(cls) -> Plan:
        return cls(channels=8, embedding=16, steps=5)

    def settled(self) -> dict[str, Any]:
        return {"benchmark": "retrieval", **super().settled()}


@dataclass(frozen=True)
class Record:
    """One arm of one seed: the chosen rate, MAP@R on the validation alphabet by rate, and metrics by test alphabet."""

    seed: int
    arm: str
    learning_rate: float
    validation: list[float]
    test: dict[str, dict[str, float]]
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

    n_jobs: arms and seeds at a time, each on one thread.
    """
    archive = existing(data_folder() / ARCHIVE)
    done = pieces.Pieces(folder, plan, option="--results")
    left = [(plan, seed, arm, archive) for seed in seeds for arm in arms if _name(seed, arm) not in done]
    if left:  # decode once here, not in every process
        drawings = load_omniglot(archive)
        arrays = [array for of_alphabet in drawings.values() for array in of_alphabet]
        digest = fingerprint({"alphabets": list(drawings)}, arrays)
        done.agree("data", {"drawings": digest}, "other drawings")
    done.finish("Retrieval", _evaluate, left, n_jobs, progress)
    return [done.record(_name(seed, arm), Record) for seed in seeds for arm in arms]


def _name(seed: int, arm: Arm) -> str:
    """Return the name of a piece."""
    return f"seed-{seed}-{arm.name}"


def _evaluate(done: pieces.Pieces, plan: Plan, seed: int, arm: Arm, archive: Path) -> str:
    """Train with every rate from the same weights, and write the record of the best; return a label of seed and arm."""
    began = time.perf_counter()
    omniglot = load_omniglot(archive)
    together = joined(omniglot, plan.train)
    shape = Shape(int(together.characters.max()) + 1, plan.embedding)
    models = []
    for rate in plan.learning_rates:
        with one_thread(seed):
            model = network(plan.channels, plan.embedding)
            batch = plan.characters, plan.drawings
            train(model, together, arm.make(shape), batch, plan.steps, rate, np.random.default_rng(seed))
            models.append((model, judge(model, omniglot[plan.validation])[_CHIEF]))
    validation = [found for _, found in models]
    best = int(np.argmax(validation))
    with one_thread(seed):
        test = {name: judge(models[best][0], omniglot[name]) for name in plan.test}
    seconds = time.perf_counter() - began
    record = Record(seed, arm.name, plan.learning_rates[best], validation, test, seconds)
    done.write(_name(seed, arm), asdict(record))
    return f"seed {seed}, {arm.name}"


def joined(omniglot: Omniglot, alphabets: Sequence[str]) -> Drawings:
    """Return the drawings of several alphabets, with characters numbered from 0 throughout."""
    images, characters, begin = [], [], 0
    for name in alphabets:
        known, numbers = np.unique(omniglot[name].characters, return_inverse=True)
        images.append(omniglot[name].images)
        characters.append(begin + numbers)
        begin += known.size
    return Drawings(np.concatenate(images), np.concatenate(characters).astype(np.int64))


def summarise(records: Collection[Record], plan: Plan, arms: Sequence[Arm]) -> dict[str, Any]:
    """Return metrics by arm and seed, means over test alphabets, and MAP@R by alphabet, means over seeds.

    Paired differences in MAP@R with 95 % intervals (t) are to the best baseline. Only seeds with all arms count.
    """
    seeds, found = of_whole_seeds(records, arms)
    head = {"benchmark": "retrieval", **asdict(plan), "seeds": seeds}
    if not seeds:
        return head
    means = {
        metric: {
            name: [float(np.mean([of[metric] for of in r.test.values()])) for r in of_arm]
            for name, of_arm in found.items()
        }
        for metric in METRICS
    }
    by_alphabet = {
        alphabet: {name: float(np.mean([r.test[alphabet][_CHIEF] for r in of_arm])) for name, of_arm in found.items()}
        for alphabet in plan.test
    }
    return {
        **head,
        "metrics": means,
        "alphabets": by_alphabet,
        "chosen": {name: [r.learning_rate for r in of_arm] for name, of_arm in found.items()},
        "seconds": {name: float(np.mean([r.seconds for r in of_arm])) for name, of_arm in found.items()},
        **compared(means[_CHIEF], arms),
    }


def table(summary: dict[str, Any]) -> str:
    """Return the summary as text: arms with their metrics and differences, then MAP@R by alphabet."""
    if not summary["seeds"]:
        return "no seed is finished"
    title = f"Unseen alphabets, {len(summary['seeds'])} seeds; differences in {_CHIEF}"
    columns = {
        metric: {name: float(np.mean(values)) for name, values in of.items()}
        for metric, of in summary["metrics"].items()
    }
    by_alphabet = arms_table(f"{_CHIEF} by alphabet", summary["alphabets"], {})
    return as_text([arms_table(title, columns, summary["differences"]), by_alphabet])
