"""Section 4.3 of the paper: a piecewise-linear network for CIFAR-10, trained by LW-SVM for 0-1, AP and NDCG loss.

For every seed one network is pre-trained with softmax, and every loss continues from it: a few epochs of Adadelta for
the loss, then LW-SVM, each stage with the network that validates best. Everything but the loss is the same. For the
first seed, a pass of LW-SVM is repeated with other methods of inference to time them.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankwise.metrics import average_precision, ndcg
from rankwise_lab import pieces
from rankwise_lab.data.cifar10 import Cifar10
from rankwise_lab.layerwise import LWSVM, PLCNN
from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.reproduce.cifar_data import Parts, digest, split

# Inference of the paper's competitor, of the paper, and of our own choice.
METHODS = {"ap": ("yue", "quicksort", "auto"), "ndcg": ("chakrabarti", "quicksort", "auto")}
_MEMORY = 4e9


@dataclass(frozen=True)
class Plan(pieces.Plan):
    """What all losses share. width: filters of the first module. lams, mus: values that validation chooses from.

    n_test: test images, all if None. score_of_zero_one: the score that validates 0-1 loss; AP and NDCG loss use their
    own measure. timed_epochs: at most per layer, in the pass of LW-SVM that is timed with each method of inference;
    timed_layers: its layers, from the last, all if None; timed_blocks: its block sizes; timed_rounds: rounds of all
    methods, of which the fastest counts.
    """

    width: int = 16
    n_train: int = 10_000
    n_val: int = 2_000
    n_test: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    losses: tuple[str, ...] = ("zero-one", "ap", "ndcg")
    pretrain_epochs: int = 12
    warmup_epochs: int = 5
    max_passes: int = 1
    max_epochs: int = 3
    lams: tuple[float, ...] = (1e-3,)
    mus: tuple[float, ...] = (1e-2,)
    block_size: int = 200
    score_of_zero_one: str = "ap"
    timed_epochs: int = 1
    timed_layers: int | None = 3
    timed_rounds: int = 2
    timed_blocks: tuple[int, ...] = (200, 2000)

    @classmethod
    def quick(cls) -> Plan:
        return cls(
            width=4,
            n_train=300,
            n_val=100,
            n_test=500,
            seeds=(0,),
            pretrain_epochs=2,
            warmup_epochs=1,
            max_passes=1,
            max_epochs=1,
            block_size=100,
            timed_layers=2,
            timed_rounds=1,
            timed_blocks=(100, 300),
        )

    @classmethod
    def full(cls) -> Plan:
        """All images, and the paper's network."""
        return cls(
            width=64, n_train=45_000, n_val=5_000, pretrain_epochs=100, max_passes=50, max_epochs=100, timed_layers=None
        )


class Experiment:
    """The experiment on CIFAR-10; finished pieces, one file per seed and loss, are in `folder`."""

    def __init__(
        self,
        cifar: Cifar10,
        folder: Path,
        plan: Plan | None = None,
        *,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.cifar, self.plan = cifar, plan or Plan()
        self._say = say
        self._drawn: tuple[int, Parts] | None = None
        self._parts(self.plan.seeds[0])  # check sizes before anything is written
        self.pieces = pieces.Pieces(folder, self.plan, {"images": digest(cifar)})

    def run(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The results of every seed, and times by loss, size of blocks and method of inference."""
        found = []
        for seed in self.plan.seeds:
            pretrained = self.pieces.kept(f"seed-{seed}-pretrained", partial(self._pretrained, seed))
            losses = {
                loss: self.pieces.kept(f"seed-{seed}-{loss}", partial(self._trained, seed, loss))
                for loss in self.plan.losses
            }
            found.append({"seed": seed, "pretrained": pretrained, "losses": losses})
        return found, {loss: self._all_timed(loss) for loss in METHODS if loss in self.plan.losses}

    def _all_timed(self, loss: str) -> list[dict[str, Any]]:
        """Return the fastest round by block size and method; methods take turns, so a slow phase affects all."""
        found = []
        for size in self.plan.timed_blocks:
            times: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS[loss]}
            for number in range(self.plan.timed_rounds):
                for method, rounds in times.items():
                    name = f"time-{loss}-{size}-{method}-{number}"
                    rounds.append(self.pieces.kept(name, partial(self._timed, loss, size, method)))
            found.append({"block_size": size, "methods": {name: _fastest(rounds) for name, rounds in times.items()}})
        return found

    def network(self, seed: int, loss: str | None = None, stage: str = "final") -> PLCNN:
        """Return a trained network: by seed and loss, or the one before any loss."""
        return PLCNN.load(self._path(seed, loss, stage))

    def _path(self, seed: int, loss: str | None, stage: str) -> Path:
        return self.pieces.path(f"seed-{seed}" if loss is None else f"seed-{seed}-{loss}-{stage}", ".rw")

    def _parts(self, seed: int) -> Parts:
        if self._drawn is None or self._drawn[0] != seed:
            plan = self.plan
            self._drawn = seed, split(self.cifar, plan.n_train, plan.n_val, seed, plan.n_test)
        return self._drawn[1]

    def _model(self, net: PLCNN, loss: str, seed: int, **settings: Any) -> LWSVM:
        plan = self.plan
        score = "accuracy" if loss == "hinge" else plan.score_of_zero_one if loss == "zero-one" else loss
        shared = {
            "score": score,
            "block_size": plan.block_size,
            "pretrain_epochs": plan.pretrain_epochs,
            "warmup_epochs": plan.warmup_epochs,
            "max_passes": plan.max_passes,
            "max_epochs": plan.max_epochs,
            "memory": _MEMORY,
            "seed": seed,
        }
        return LWSVM(net, loss, **{**shared, **settings})

    def _pretrained(self, seed: int, checkpoint: Path) -> dict[str, Any]:
        """Train a new network with softmax, and judge it."""
        parts = self._parts(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = PLCNN.cifar10(self.plan.width, n_classes=len(self.cifar.classes))
        model = self._model(net, "hinge", seed)  # this stage does not use the loss
        started = time.perf_counter()
        model.pretrain(parts.train, parts.val, checkpoint=checkpoint)
        seconds = time.perf_counter() - started
        model.net.save(self._path(seed, None, "pretrained"))
        test = judge(model.decision_function(parts.test.images), parts.test.labels)
        self._say(f"seed {seed}: pre-trained with softmax, {_shown(test)}, {seconds:.0f} s")
        return {"val": model.score_, "test": test, "seconds": seconds}

    def _trained(self, seed: int, loss: str, checkpoint: Path) -> dict[str, Any]:
        """Warm up and train by layers with every choice, write the network that validates best, and judge it."""
        tried = []
        best: tuple[dict[str, Any], PLCNN, PLCNN] | None = None
        for k, (lam, mu) in enumerate(itertools.product(self.plan.lams, self.plan.mus)):
            one, warm, final = self._tried(seed, loss, lam, mu, checkpoint / str(k))
            tried.append({"lam": lam, "mu": mu, "val": one["val"]["final"]})
            if best is None or one["val"]["final"] > best[0]["val"]["final"]:
                best = one, warm, final
        assert best is not None
        found, warm, final = best
        warm.save(self._path(seed, loss, "warm"))
        final.save(self._path(seed, loss, "final"))
        return {**found, "tried": tried}

    def _tried(
        self, seed: int, loss: str, lam: float, mu: float, checkpoint: Path
    ) -> tuple[dict[str, Any], PLCNN, PLCNN]:
        """One choice: its results, and the networks after warm-up and after LW-SVM."""
        parts = self._parts(seed)
        model = self._model(self.network(seed), loss, seed, lam=lam, mu=mu)
        started = time.perf_counter()
        model.warm_up(parts.train, parts.val, checkpoint=checkpoint / "warm-up")
        warm_seconds, val, warm = time.perf_counter() - started, {"warm": model.score_}, copy.deepcopy(model.net)
        test = {"warm": judge(model.decision_function(parts.test.images), parts.test.labels)}
        self._say(f"seed {seed}, {loss}, λ = {lam:g}, μ = {mu:g}: warmed up, {_shown(test['warm'])}")
        model.fit_layers(parts.train, parts.val, checkpoint=checkpoint / "layers")
        val["final"] = model.score_
        test["final"] = judge(model.decision_function(parts.test.images), parts.test.labels)
        self._say(f"seed {seed}, {loss}, λ = {lam:g}, μ = {mu:g}: LW-SVM, {_shown(test['final'])}")
        found = {
            "lam": lam,
            "mu": mu,
            "val": val,
            "test": test,
            "warm_seconds": warm_seconds,
            "passes": model.n_passes_,
            "objective": model.objective_,
            "curve": curve(model.history_),
            "timing": model.timing_,
        }
        return found, warm, model.net

    def _timed(self, loss: str, block_size: int, method: str, _: Path) -> dict[str, Any]:
        """Time a pass from the warm start of the first seed with a method of inference, without validation."""
        seed = self.plan.seeds[0]
        train = self._parts(seed).train
        chosen = self.pieces.read(f"seed-{seed}-{loss}")
        settings = {"lam": chosen["lam"], "mu": chosen["mu"], "max_passes": 1, "max_epochs": self.plan.timed_epochs}
        settings |= {"method": method, "block_size": block_size, "layers": self.plan.timed_layers}
        _compile(loss, method, train.labels[:block_size], len(self.cifar.classes))
        model = self._model(self.network(seed, loss, "warm"), loss, seed, **settings)
        model.fit_layers(train)
        timing: dict[str, Any] = dict(model.timing_)
        self._say(
            f"{loss} loss, blocks of {block_size}, {method}: {timing['total']:.1f} s, of which "
            f"{timing['inference']:.2f} s in {timing['calls']} calls of inference"
        )
        return {**timing, "objective": model.objective_}


def judge(scores: NDArray[np.floating[Any]], labels: NDArray[np.int64]) -> dict[str, float]:
    """Mean AP and mean NDCG over the classes, each a ranking of all images, and accuracy; scores (n, C)."""
    columns = [(scores[:, c], labels == c) for c in range(scores.shape[1])]
    return {
        "ap": float(np.mean([average_precision(column, relevant) for column, relevant in columns])),
        "ndcg": float(np.mean([ndcg(column, relevant) for column, relevant in columns])),
        "accuracy": float((scores.argmax(axis=1) == labels).mean()),
    }


def _fastest(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {**rounds[0], **{name: min(one[name] for one in rounds) for name in ("inference", "total")}}


def _compile(loss: str, method: str, labels: NDArray[np.int64], n_classes: int) -> None:
    """Call inference once, before it is timed."""
    scores = torch.arange(labels.size * n_classes, dtype=torch.float32).reshape(labels.size, n_classes)
    BlockLoss(loss, n_classes, method=method).solve(scores, torch.from_numpy(labels))


def curve(history: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Seconds of LW-SVM and F, at its start and after every layer."""
    rows = [row for row in history if row["stage"] == "fit_layers" and row["objective"] is not None]
    return [[row["seconds"] - rows[0]["seconds"], row["objective"]] for row in rows]


def _shown(test: Mapping[str, float]) -> str:
    return f"test mean AP {100.0 * test['ap']:.2f} %, mean NDCG {100.0 * test['ndcg']:.2f} %"
