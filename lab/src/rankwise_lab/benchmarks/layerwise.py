"""`rankwise bench lwsvm`: LW-SVM against Adadelta, from the same warm start for the same time.

A network is pre-trained with softmax and warmed up by Adadelta for the loss. From there LW-SVM trains its last layers
in passes, and Adadelta continues with all of them, keeping its state: at the rate of the warm-up, and at its usual rate
of 1. All train on the same fixed blocks, on one thread, and are judged by the objective that they minimise,
F = Σ_b (n_b/n)·J_b + (λ/2)·Σ‖W‖². For LW-SVM, F after the first layer that ends when time is up counts; for Adadelta,
its lowest F after any epoch that begins before then.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankwise_lab import pieces
from rankwise_lab.benchmarks.finetune_model import one_thread
from rankwise_lab.benchmarks.plan import Benchmark, Case, Row, Section, at_least, at_most
from rankwise_lab.data.cifar10 import find_cifar10, load_cifar10
from rankwise_lab.layerwise import LWSVM, PLCNN
from rankwise_lab.layerwise.block_loss import BlockLoss
from rankwise_lab.layerwise.blocks import Blocks
from rankwise_lab.layerwise.evaluation import in_mode, objective
from rankwise_lab.measuring.timing import THREADS
from rankwise_lab.reproduce.cifar_data import split

_LOSSES = {"ap": "AP", "ndcg": "NDCG", "hinge": "multi-class hinge"}
# The rate of the warm-up comes first.
_RATES = (0.1, 1.0)
_LAM, _MU = 1e-3, 1e-2
# When F is compared, as fractions of the time.
_MOMENTS = (1 / 4, 1 / 2, 1.0)

# Seconds since the start, and F then.
Path = list[tuple[float, float]]


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """The problem: data is "cifar" or "digits"; layers: how many LW-SVM trains, from the last; seconds: its time."""

    data: str = "cifar"
    n_train: int = 5_000
    width: int = 16
    block_size: int = 200
    pretrain_epochs: int = 12
    warmup_epochs: int = 5
    layers: int = 3
    max_epochs: int = 3
    seconds: float = 30.0
    seeds: int = 3

    @classmethod
    def quick(cls) -> Sizes:
        return cls(
            "digits", 300, 4, 100, pretrain_epochs=2, warmup_epochs=1, layers=2, max_epochs=2, seconds=0.3, seeds=1
        )


class Duel(NamedTuple):
    """F at the start; how LW-SVM lowers it, and how Adadelta does by rate."""

    start: float
    by_layers: Path
    adadelta: dict[float, Path]

    def at(self, seconds: float) -> tuple[float, float, dict[float, float]]:
        """Return when LW-SVM ends its first layer after that many seconds, its F, and that of Adadelta by rate."""
        when, ours = next((one for one in self.by_layers if one[0] >= seconds), self.by_layers[-1])
        return when, ours, {rate: _lowest(path, when) for rate, path in self.adadelta.items()}


def _lowest(path: Path, when: float) -> float:
    """Return the lowest F after an epoch that began before."""
    begun = [0.0, *(seconds for seconds, _ in path)]
    return min(value for start, (_, value) in zip(begun, path, strict=False) if start < when)


def describe() -> dict[str, Any]:
    """Return the version of torch, and its threads."""
    return {"torch": torch.__version__, "torch_threads": THREADS}


class Adadelta:
    """Adadelta on F of a network, epoch by epoch over the blocks; `path` has F after each.

    Batch normalisation is in inference mode, its scale and shift learnt too, as in the warm-up of `LWSVM`.
    """

    def __init__(self, net: PLCNN, blocks: Blocks, loss: BlockLoss, rate: float, seed: int) -> None:
        self.net, self._blocks, self._loss = net, blocks, loss
        self._optimiser = torch.optim.Adadelta(net.parameters(), lr=rate)
        self._rng = np.random.default_rng(seed)
        self.seconds = 0.0
        self.path: Path = []

    def continued(self, rate: float, seed: int) -> Adadelta:
        """Return a copy that continues from here with another rate, at zero seconds."""
        other = Adadelta(copy.deepcopy(self.net), self._blocks, self._loss, rate, seed)
        other._optimiser.load_state_dict(copy.deepcopy(self._optimiser.state_dict()))  # otherwise it would be shared
        for group in other._optimiser.param_groups:
            group["lr"] = rate
        return other

    def epoch(self) -> None:
        """Take a step for each block; the evaluation of F is not timed."""
        began = time.perf_counter()
        with in_mode(self.net, False):
            for b in self._rng.permutation(len(self._blocks)).tolist():
                self._optimiser.zero_grad()
                risk = self._loss.as_function(self.net(self._blocks.images(b)), self._blocks.labels(b))
                (risk + 0.5 * _LAM * self.net.regulariser()).backward()
                self._optimiser.step()
        self.seconds += time.perf_counter() - began
        self.path.append((self.seconds, objective(self.net, self._blocks, self._loss, _LAM)))

    def until(self, seconds: float) -> None:
        while self.seconds < seconds or not self.path:
            self.epoch()


def _network(sizes: Sizes) -> PLCNN:
    if sizes.data == "cifar":
        return PLCNN.cifar10(sizes.width)
    w = sizes.width
    first = [nn.Conv2d(1, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(w, 2 * w, 3, padding=1), nn.BatchNorm2d(2 * w), nn.ReLU(), nn.MaxPool2d(2)]
    return PLCNN(*first, *second, nn.Flatten(), nn.Linear(8 * w, 10))


def _data(sizes: Sizes, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return scaled images and labels: CIFAR-10 from the data folder, or scikit-learn's digits of 8 × 8 pixels."""
    if sizes.data == "cifar":
        return split(load_cifar10(find_cifar10()), sizes.n_train, 0, seed).train
    from sklearn.datasets import load_digits

    digits = load_digits()
    rows = np.random.default_rng(seed).permutation(digits.target.size)[: sizes.n_train]
    images = digits.images[rows, None].astype(np.float32)
    return (images - images.mean()) / images.std(), digits.target[rows].astype(np.int64)


@cache
def _pretrained(sizes: Sizes, seed: int) -> PLCNN:
    net = _network(sizes)
    _model(net, sizes, "hinge", seed).pretrain(_data(sizes, seed))  # this stage does not use the loss
    return net


def duel(sizes: Sizes, loss: str, seed: int) -> Duel:
    """Train with both from the same warm start; the seed decides which is first."""
    with one_thread(seed):
        net, (images, labels) = copy.deepcopy(_pretrained(sizes, seed)), _data(sizes, seed)
        blocks = Blocks(images, labels, net.n_classes, block_size=sizes.block_size, seed=seed)
        warm = Adadelta(net, blocks, BlockLoss(loss, net.n_classes), _RATES[0], seed)
        for _ in range(sizes.warmup_epochs):
            warm.epoch()
        theirs = {rate: warm.continued(rate, seed + 1) for rate in _RATES}
        seconds, by_layers = sizes.seconds, [(0.0, 0.0)]
        for ours in (True, False) if seed % 2 == 0 else (False, True, False):
            if ours:
                by_layers = _by_layers(copy.deepcopy(net), sizes, loss, seed, (images, labels))
                seconds = by_layers[-1][0]
            else:
                for one in theirs.values():
                    one.until(seconds)
        return Duel(warm.path[-1][1], by_layers, {rate: one.path for rate, one in theirs.items()})


def _model(net: PLCNN, sizes: Sizes, loss: str, seed: int) -> LWSVM:
    return LWSVM(
        net,
        loss,
        lam=_LAM,
        mu=_MU,
        block_size=sizes.block_size,
        pretrain_epochs=sizes.pretrain_epochs,
        max_passes=1,
        max_epochs=sizes.max_epochs,
        layers=sizes.layers,
        seed=seed,
    )


def _by_layers(net: PLCNN, sizes: Sizes, loss: str, seed: int, train: Any) -> Path:
    """Return F after each layer, in passes until the time is up."""
    path: Path = []
    while not path or path[-1][0] < sizes.seconds:
        before = path[-1][0] if path else 0.0
        model = _model(net, sizes, loss, seed).fit_layers(train)
        path += [(before + row["seconds"], row["objective"]) for row in model.history_ if row["fraction"] is not None]
    return path


def _rows(sizes: Sizes, loss: str) -> Iterator[Row]:
    wins = 0
    for seed in range(sizes.seeds):
        found = duel(sizes, loss, seed)
        for part in _MOMENTS:
            seconds, ours, theirs = found.at(part * sizes.seconds)
            parts = {"start": found.start, "lwsvm": ours, "seconds": seconds}
            parts |= {f"adadelta {rate:g}": value for rate, value in theirs.items()}
            where = f"{_LOSSES[loss]}, seed {seed}, {seconds:.1f} s"
            yield Row(f"{where}: F of LW-SVM over that of Adadelta", ours / theirs[_RATES[0]], "x", at_most(1.0), parts)
            best = min(theirs, key=lambda rate: theirs[rate])
            yield Row(f"  over the lower of Adadelta at both rates ({best:g})", ours / theirs[best])
            yield Row("  F of LW-SVM over F at the start", ours / found.start)
        wins += ours < theirs[_RATES[0]]
    yield Row(
        f"{_LOSSES[loss]}: seeds that LW-SVM wins, of {sizes.seeds}", float(wins), "", at_least(float(sizes.seeds))
    )


def _cases(loss: str, sizes: Sizes) -> list[Case]:
    return [Case(_LOSSES[loss], partial(_rows, sizes, loss))]


_SECTIONS = [
    Section(
        number, f"{name}: training objective F after the same time, from the same warm start", partial(_cases, loss)
    )
    for number, (loss, name) in enumerate(_LOSSES.items(), 1)
]
BENCHMARK = Benchmark("lwsvm", _SECTIONS, Sizes)
