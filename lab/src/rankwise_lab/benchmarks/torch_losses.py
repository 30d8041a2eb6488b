"""`rankwise bench torch`: what our losses and others cost in training with PyTorch."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import rankwise as rw
from rankwise.torch import APHingeLoss, ErrorDrivenLoss, RankHingeLoss, SmoothRankLoss
from rankwise_lab import pieces
from rankwise_lab.benchmarks import finetune
from rankwise_lab.benchmarks.finetune_model import ARMS, REFERENCE, network, one_thread, optimiser_of
from rankwise_lab.benchmarks.finetune_model import step as training_step
from rankwise_lab.benchmarks.plan import LOSSES, Benchmark, Case, Row, Section, at_most, over
from rankwise_lab.benchmarks.processes import child, environment
from rankwise_lab.benchmarks.torch_peers import OURS, PEERS, Batch, Peer, batch_of_arrays, step
from rankwise_lab.measuring import machine
from rankwise_lab.measuring.scores import normal
from rankwise_lab.measuring.timing import THREADS, Task, compare

# Less memory than this cannot be told from what a process takes anyway.
_MEGABYTE = 2**20
_GIGABYTE = 2**30
# Share of positive labels in a memory of scores, about as in `bench finetune`.
_RARE = 0.02


@dataclass(frozen=True)
class Sizes(pieces.Plan):
    """flat: scores and positives of one query; rows: queries, scores and positives of each; flat_core: as flat.

    embeddings, scores, rare: sizes of batches to compare with peers. remembered: samples and classes of a memory.
    limit: bytes that a process may have; patience: seconds that it may take.
    """

    flat: tuple[int, int] = (10**6, 10**3)
    rows: tuple[int, int, int] = (64, 10**4, 100)
    flat_core: tuple[tuple[int, int], ...] = ((10**5, 10**3), (10**6, 10**3))
    embeddings: tuple[int, ...] = (256, 1024, 4096)
    scores: tuple[int, ...] = (256, 1024, 4096, 10**5)
    rare: tuple[int, ...] = (300_300,)
    remembered: tuple[int, int] = (50_000, 5)
    repeats: int = 9
    peer_repeats: int = 5
    limit: int = 8 * _GIGABYTE
    patience: float = 300.0

    @classmethod
    def quick(cls) -> Sizes:
        return cls(
            flat=(10**4, 100),
            rows=(4, 1000, 20),
            flat_core=((10**4, 100),),
            embeddings=(64,),
            scores=(400,),
            rare=(2002,),
            remembered=(1000, 5),
            repeats=2,
            peer_repeats=1,
            patience=60.0,
        )


class Problem(NamedTuple):
    """Scores and target as tensors, (n,) or (B, n), and the query of each score, flattened."""

    name: str
    batch: Batch
    qid: NDArray[np.int64] | None


def describe() -> dict[str, Any]:
    """Return the versions of torch and of the peers, and the threads of torch."""
    packages = ("torch", "pytorch-metric-learning", "libauc")
    versions = {package: machine.version_of(package) or "not installed" for package in packages}
    return {**versions, "torch_threads": THREADS}


def _flat(n: int, n_pos: int) -> Problem:
    return Problem(f"({n:,},), P = {n_pos:,}", batch_of_arrays(*normal(n_pos, n - n_pos)), None)


def _rows(queries: int, n: int, n_pos: int) -> Problem:
    samples = [normal(n_pos, n - n_pos, seed) for seed in range(queries)]
    batch = batch_of_arrays(*(np.stack(arrays) for arrays in zip(*samples, strict=True)))
    return Problem(f"({queries:,}, {n:,}), P = {n_pos:,}", batch, np.repeat(np.arange(queries), n))


def _speed(sizes: Sizes) -> list[Case]:
    """Section 2: forward and backward over torch.sort of the same scores, and over the core's call."""
    shapes = ((_flat, sizes.flat, 0.1), (_rows, sizes.rows, 0.3))
    cases = [
        Case(f"{name}, {size[0]:,}", partial(_over_sort, loss, make, size, bound, sizes.repeats))
        for make, size, bound in shapes
        for loss, name in LOSSES.items()
    ]
    cores = [*((_flat, size) for size in sizes.flat_core), (_rows, sizes.rows)]
    return cases + [
        Case(f"{name} over the core, {size[0]:,}", partial(_over_core, loss, make, size, sizes.repeats))
        for make, size in cores
        for loss, name in LOSSES.items()
    ]


def _over_sort(loss: str, make: Any, size: tuple[int, ...], bound: float, repeats: int) -> Iterator[Row]:
    problem: Problem = make(*size)
    unsorted = problem.batch.inputs.detach()
    tasks: dict[str, Task] = {
        "loss": step(RankHingeLoss(loss, dim=-1), problem.batch),
        "tensor": step(RankHingeLoss(loss, dim=-1, backend="tensor"), problem.batch),
        "torch.sort": lambda: torch.sort(unsorted, dim=-1),
    }
    with one_thread(0):
        found = compare(tasks, repeats)
    what = f"{LOSSES[loss]}, {problem.name}: over torch.sort"
    yield over(what, found, "loss", "torch.sort", target=at_most(bound))
    yield over(f'{what}, backend="tensor"', found, "tensor", "torch.sort", target=at_most(4))


def _over_core(loss: str, make: Any, size: tuple[int, ...], repeats: int) -> Iterator[Row]:
    problem: Problem = make(*size)
    scores, relevant = (tensor.detach().numpy().ravel() for tensor in problem.batch)
    tasks: dict[str, Task] = {
        "loss": step(RankHingeLoss(loss, dim=-1), problem.batch),
        "core": lambda: rw.structured_hinge(scores, relevant, loss, qid=problem.qid, n_threads=THREADS),
    }
    with one_thread(0):
        found = compare(tasks, repeats)
    yield over(f"{LOSSES[loss]}, {problem.name}: over the core", found, "loss", "core", target=at_most(1.2))


def _peers(sizes: Sizes) -> list[Case]:
    """Section 3: the cost of other losses on the same batch, over ours, each in its own process."""
    batches = {"embeddings": sizes.embeddings, "scores": sizes.scores, "rare": sizes.rare}
    return [
        Case(f"{peer.name}, B = {size:,}", partial(_beside, peer, size, sizes))
        for peer in PEERS.values()
        for size in batches[peer.kind]
    ]


def _beside(peer: Peer, size: int, sizes: Sizes) -> Iterator[Row]:
    label = f"{peer.name}, B = {size:,}"
    if not peer.package.installed:
        yield Row(f"{label}: not installed: {peer.package.install}", None)
        return
    found, failure = _measure(peer.name, size, sizes)
    seconds, growth = found["seconds"], found["growth"]
    parts = {f"{who} seconds": value for who, value in seconds.items()}
    parts |= {f"{who} bytes": value for who, value in growth.items() if value is not None}
    if failure is not None:
        yield Row(f"{label}: {failure}", None, parts=parts)
        return
    ours = OURS[peer.kind][0]
    yield Row(f"{label}: time, over {ours}", seconds["peer"] / seconds["ours"], target=peer.target, parts=parts)
    yield Row(f"{label}: peak extra memory, over {ours}", _memory_ratio(growth), parts=parts)


def _memory_ratio(growth: dict[str, int | None]) -> float | None:
    """Return theirs over ours, with ours at least a megabyte; None if neither reaches that."""
    theirs, ours = growth["peer"], growth["ours"]
    if theirs is None or ours is None or max(theirs, ours) < _MEGABYTE:
        return None
    return theirs / max(ours, _MEGABYTE)


def _measure(name: str, size: int, sizes: Sizes) -> tuple[dict[str, Any], str | None]:
    """Return what the process measured, and why the peer failed, if it did."""
    command = child("peer", name, size, sizes.peer_repeats, sizes.limit)
    said, wrong = "", ""
    failure: str | None = None
    try:
        done = subprocess.run(
            command, env=environment({}), capture_output=True, text=True, check=False, timeout=sizes.patience
        )
        said, wrong = done.stdout, done.stderr
        if done.returncode < 0:
            failure = f"ended by signal {-done.returncode}"
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode()
        failure = f"more than {sizes.patience:g} s"
    answers = [json.loads(line) for line in said.splitlines()]
    if answers and "failed" in answers[-1]:
        failure = f"{answers.pop()['failed']} ({sizes.limit / _GIGABYTE:g} GB)"
    if not answers or (failure is None and len(answers) < 2):
        reason = (wrong.strip().splitlines() or [failure or "no message"])[-1]
        raise OSError(f"a measuring process failed ({name}, B = {size}): {reason}")
    return answers[-1], failure


def _soft(sizes: Sizes) -> list[Case]:
    """Section 4: losses of soft counts over the hinge, and what a memory of scores adds to a step of training."""
    return [
        Case("soft losses", partial(_over_hinge, sizes.flat, sizes.repeats)),
        Case("a memory of scores", partial(_with_memory, sizes.remembered, sizes.repeats)),
    ]


def _over_hinge(size: tuple[int, int], repeats: int) -> Iterator[Row]:
    problem = _flat(*size)
    losses = {"SmoothRankLoss": SmoothRankLoss(), "ErrorDrivenLoss": ErrorDrivenLoss()}
    tasks = {name: step(loss, problem.batch) for name, loss in {**losses, "APHingeLoss": APHingeLoss()}.items()}
    with one_thread(0):
        found = compare(tasks, repeats)
    for name in losses:
        yield over(f"{name}, {problem.name}: over APHingeLoss", found, name, "APHingeLoss", target=at_most(1.5))


def _with_memory(remembered: tuple[int, int], repeats: int) -> Iterator[Row]:
    """A step of `bench finetune` with a full memory over one with cross-entropy."""
    n, n_classes = remembered
    rng = np.random.default_rng(0)
    plan = finetune.Plan()
    labels = rng.random((n, n_classes)) < _RARE
    rows = torch.arange(plan.first.batch)
    images = torch.randn(len(rows), 3, 32, 32).to(memory_format=torch.channels_last)
    target = torch.from_numpy(labels).float()
    arms = {arm.name: arm for arm in ARMS}
    tasks: dict[str, Task] = {}
    with one_thread(0):
        for name in ("error-driven-memory", REFERENCE):
            loss = arms[name].make(labels)
            with torch.no_grad():
                loss(torch.randn(n, n_classes), target, torch.arange(n))
            model = network(plan.widths, n_classes)
            optimiser = optimiser_of(model, plan.first.learning_rate)
            tasks[name] = partial(training_step, model, optimiser, loss, images, target[rows], rows)
        found = compare(tasks, repeats)
    what = f"a step on {len(rows)} images, memory of ({n:,}, {n_classes}): over {REFERENCE}"
    yield over(what, found, "error-driven-memory", REFERENCE, target=at_most(1.15))


BENCHMARK = Benchmark(
    "torch",
    (
        Section(2, "Forward and backward on one thread", _speed),
        Section(3, "Other losses on the same batch, forward and backward on one thread", _peers),
        Section(4, "Soft losses, and a step with a memory of scores, on one thread", _soft),
    ),
    Sizes,
)
