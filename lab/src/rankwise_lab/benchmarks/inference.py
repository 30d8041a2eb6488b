"""`rankwise bench inference`: every claim about its speed, measured beside its target."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rankwise as rw
from rankwise import Loss
from rankwise_lab.benchmarks import losses, processes, small
from rankwise_lab.benchmarks.plan import (
    LOSSES,
    PAPER,
    Benchmark,
    Case,
    Row,
    Section,
    Sizes,
    Target,
    at_least,
    at_most,
    over,
)
from rankwise_lab.measuring import machine, scores
from rankwise_lab.measuring.opponents import hinge
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import Task, compare


def _against_sorting(sizes: Sizes) -> list[Case]:
    """Section 1: normal scores in both dtypes; separated ones and those of a nearly trained model in float32."""
    cases = []
    for n_neg in (sizes.small, sizes.medium, sizes.large):
        for loss, name in LOSSES.items():
            size = (sizes.n_pos, n_neg)
            kinds: dict[str, Callable[[], Sample]] = {
                dtype: partial(scores.normal, *size, dtype=dtype) for dtype in ("float32", "float64")
            }
            if n_neg != sizes.small:
                kinds["separated"] = partial(scores.separated, *size)
                kinds["trained-like"] = partial(scores.trained_like, *size, loss)
            for kind, make in kinds.items():
                label = f"{name}, N = {n_neg:,}, {kind}"
                target = _target(n_neg < sizes.medium, machine.vendor(), machine.numpy_sorts_with())
                cases.append(Case(label, partial(_over_sorts, label, make, loss, target, sizes.repeats)))
    return cases


def _target(is_small: bool, vendor: str, sorts_with: str) -> Target | None:
    """Return the target, which depends on np.sort: it is fast with Intel's AVX-512 and slow with AMD's."""
    if vendor == "AMD":
        return at_most(0.15)
    if vendor == "Intel" and sorts_with == "AVX-512":
        return at_most(1.0 if is_small else 0.6)
    return None


def _over_sorts(
    label: str, make: Callable[[], Sample], loss: str, target: Target | None, repeats: int
) -> Iterator[Row]:
    """The hinge over np.sort of the negatives, over that without AVX-512, and over np.argsort, which gradients need."""
    sample = make()
    negatives = sample.negatives
    with processes.sort_without_avx512(negatives) as narrow:
        tasks: dict[str, Task] = {"hinge": hinge(sample, loss), "np.sort": partial(np.sort, negatives)}
        if narrow is not None:
            tasks["np.sort without AVX-512"] = narrow
        tasks["np.argsort"] = partial(np.argsort, negatives)
        found = compare(tasks, repeats)
    for opponent in list(tasks)[1:]:
        aim = target if opponent == "np.sort" else None
        yield over(f"{label}: over {opponent}", found, "hinge", opponent, target=aim)


def _threads(sizes: Sizes) -> list[Case]:
    """Section 2: one thread over two; two should never be slower, and nearly twice as fast on large queries."""
    return [
        Case(f"{name}, N = {n_neg:,}", partial(_one_over_two, loss, sizes.n_pos, n_neg, least, sizes.repeats))
        for n_neg, least in ((sizes.small, 1.0), (sizes.medium, 1.5), (sizes.large, 1.7))
        for loss, name in LOSSES.items()
    ]


def _one_over_two(loss: str, n_pos: int, n_neg: int, least: float, repeats: int) -> Iterator[Row]:
    what = f"{LOSSES[loss]}, N = {n_neg:,}: one thread over two"
    if machine.n_cores() < 2:
        yield Row(what, None, target=at_least(least))
        return
    sample = scores.normal(n_pos, n_neg)
    found = compare({f"threads: {n}": hinge(sample, loss, n_threads=n) for n in (1, 2)}, repeats)
    yield over(what, found, *found, target=at_least(least))


class Kind(NamedTuple):
    """How to make scores, the normal ones to compare with, and how much longer they may take."""

    make: Callable[[int, int], Sample]
    normal: str
    bound: float


_KINDS = {
    "2 values": Kind(scores.two_valued, "float32", 1.5),
    "10 values": Kind(partial(scores.few_values, 10), "float32", 1.5),
    "100 values": Kind(partial(scores.few_values, 100), "float32", 1.5),
    "1,000 values": Kind(partial(scores.few_values, 1000), "float32", 1.5),
    "all equal": Kind(scores.constant, "float32", 1.5),
    "saturated sigmoids": Kind(scores.saturated, "float32", 1.5),
    "sigmoids of 8 deviations": Kind(partial(scores.saturated, steepness=8.0), "float32", 1.5),
    "float16": Kind(partial(scores.normal, dtype="float16"), "float32", 2.0),
    "Cauchy": Kind(scores.heavy_tailed, "float32", 2.0),
    "1e-300 to 1e300, float64": Kind(scores.all_magnitudes, "float64", 2.0),
    "denormal, float64": Kind(scores.denormal, "float64", 2.0),
}


def _unfriendly(sizes: Sizes) -> list[Case]:
    """Section 3: kinds of scores, one outlier, and many positives."""
    cases = []
    for loss, name in LOSSES.items():
        for n_pos in sizes.unfriendly_pos:
            label = f"{name}, P = {n_pos:,}"
            cases.append(Case(label, partial(_kinds, label, loss, n_pos, sizes.medium, sizes.repeats)))
        for n in sizes.outlier:
            label = f"{name}, P = {sizes.n_pos:,}, n = {n:,}, one outlier"
            cases.append(Case(label, partial(_outlier, label, loss, sizes.n_pos, n, sizes.repeats)))
        for n_pos, n_neg, bound in (
            (max(sizes.unfriendly_pos), sizes.medium, 1.5),
            (sizes.medium // 2, sizes.medium // 2, 3.0),
        ):
            label = f"{name}, P = {n_pos:,}, N = {n_neg:,}"
            cases.append(Case(label, partial(_over_sort_of_all, label, loss, n_pos, n_neg, bound, sizes.repeats)))
    return cases


def _kinds(label: str, loss: str, n_pos: int, n: int, repeats: int) -> Iterator[Row]:
    """Compare each kind with normal scores of its working type, and with np.sort of all its scores."""
    tasks: dict[str, Task] = {
        dtype: hinge(scores.normal(n_pos, n - n_pos, dtype=dtype), loss) for dtype in ("float32", "float64")
    }
    for name, kind in _KINDS.items():
        sample = kind.make(n_pos, n - n_pos)
        tasks[name], tasks[_sort_of(name)] = hinge(sample, loss), partial(np.sort, sample.scores)
    found = compare(tasks, repeats)
    for name, kind in _KINDS.items():
        for other, target in ((kind.normal, at_most(kind.bound)), (_sort_of(name), None)):
            against = "np.sort" if target is None else "normal"
            yield over(f"{label}, {name}: over {against}", found, name, other, target=target)


def _sort_of(kind: str) -> str:
    return f"np.sort, {kind}"


def _outlier(label: str, loss: str, n_pos: int, n: int, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n - n_pos)
    found = compare({"with": hinge(scores.with_outlier(sample), loss), "without": hinge(sample, loss)}, repeats)
    yield over(f"{label}: over no outlier", found, *found, target=at_most(2))


def _over_sort_of_all(label: str, loss: str, n_pos: int, n_neg: int, bound: float, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg)
    found = compare({"hinge": hinge(sample, loss), "np.sort": partial(np.sort, sample.scores)}, repeats)
    yield over(f"{label}: over np.sort of all", found, *found, target=at_most(bound))


def _start_up(sizes: Sizes) -> list[Case]:
    """Section 5: importing, and the first call with and without compiled kernels on disk."""
    return [
        Case("import", partial(_import, sizes.start_ups)),
        Case("first call, small", partial(_first_call, "small", *PAPER, sizes)),
        Case("first call, large", partial(_first_call, "large", sizes.n_pos, sizes.small, sizes)),
    ]


def _import(times: int) -> Iterator[Row]:
    found = {"rankwise": float("inf"), "numpy": float("inf")}
    for _ in range(times):
        for module in found:
            found[module] = min(found[module], processes.import_seconds(module))
    what = "import rankwise, beyond import numpy"
    yield Row(what, max(found["rankwise"] - found["numpy"], 0.0), unit="s", target=at_most(0.5), parts=found)


def _first_call(size: str, n_pos: int, n_neg: int, sizes: Sizes) -> Iterator[Row]:
    """Time the first call of a process: on a new machine, and after that."""
    what = f"first call, {size} query, P = {n_pos:,}, N = {n_neg:,}"
    first_call = partial(processes.first_call, n_pos, n_neg)
    warm, cold = f"{what}: kernels on disk", f"{what}: kernels compiled"
    if not sizes.cold:  # compiling takes longer than a quick run may: use the kernels already there
        yield Row(warm, first_call(None), unit="s", target=at_most(1.5))
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Row(cold, first_call(Path(folder)), unit="s", target=at_most(10))
        seconds = min(first_call(Path(folder)) for _ in range(sizes.start_ups))
        yield Row(warm, seconds, unit="s", target=at_most(1.5))


def _own_loss(sizes: Sizes) -> list[Case]:
    """Section 6: a user-defined loss of the form of AP, against the built-in one."""
    own = rw.DiscountedLoss(weight=lambda k: k, discount=lambda m: 1 / m, name="own AP")
    return [
        Case(f"own loss, N = {n_neg:,}", partial(_over_built_in, own, n_pos, n_neg, sizes.repeats))
        for n_pos, n_neg in [PAPER, (sizes.n_pos, sizes.medium)]
    ]


def _over_built_in(own: Loss, n_pos: int, n_neg: int, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg)
    found = compare({"own": hinge(sample, own), "built-in": hinge(sample, "ap")}, repeats)
    yield over(f"user-defined AP over built-in AP, P = {n_pos:,}, N = {n_neg:,}", found, *found, target=at_most(1.5))


def _within_bounds(sizes: Sizes) -> list[Case]:
    """Section 7: the work of Algorithm 1 against the paper's N log2 P."""
    return [
        Case("work of Algorithm 1", partial(_work, sizes)),
        *(
            Case(f"{order} order", partial(_adversarial, order, sizes.n_pos, sizes.medium // 10, sizes.repeats))
            for order in scores.ORDERS
        ),
    ]


def _work(sizes: Sizes) -> Iterator[Row]:
    constants = []
    for n_neg in sizes.work_negatives:
        for n_pos in sizes.work_positives:
            constants.append(_work_constant(scores.normal(n_pos, n_neg)))
            yield Row(f"work/(N log2 P), N = {n_neg:,}, P = {n_pos:,}", constants[-1], unit="")
    found = {"least": min(constants), "most": max(constants)}
    yield over("work/(N log2 P): greatest over least", found, "most", "least", target=at_most(4))


def _work_constant(sample: Sample) -> float:
    """Return c, where Algorithm 1 evaluates and moves c·N·log2 P negatives in all."""
    work = rw.inference.count_work(sample.scores, sample.relevant, "ap")
    n_pos = int(sample.relevant.sum())
    n_neg = sample.relevant.size - n_pos
    return float(work.evaluated + work.moves) / (n_neg * math.log2(n_pos))


def _adversarial(order: str, n_pos: int, n_neg: int, repeats: int) -> Iterator[Row]:
    samples = {order: scores.in_order(order, n_pos, n_neg), "shuffled": scores.normal(n_pos, n_neg)}
    label = f"quicksort, N = {n_neg:,}, {order} over shuffled"
    work = {name: _work_constant(sample) for name, sample in samples.items()}
    yield over(f"{label}: work", work, *work, target=at_most(4))
    found = compare({name: hinge(sample, "ap", "quicksort") for name, sample in samples.items()}, repeats)
    yield over(f"{label}: time", found, *found, target=at_most(4))


def _growth(sizes: Sizes) -> list[Case]:
    """Section 8: more negatives, more positives."""
    few, many, n_pos, n_neg, most = sizes.few_pos, sizes.many_pos, sizes.n_pos, sizes.medium, sizes.large
    negatives = f"AP, P = {n_pos:,}, N from {n_neg:,} to {most:,}", {f"N = {n:,}": (n_pos, n) for n in (n_neg, most)}
    positives = f"AP, N = {n_neg:,}, P from {few:,} to {many:,}", {f"P = {n:,}": (n, n_neg) for n in (few, many)}
    return [
        Case("more negatives", partial(losses.growth, "hinge", *negatives, 12, sizes.repeats)),
        Case("more positives", partial(losses.growth, "hinge", *positives, 6, sizes.repeats)),
    ]


def _memory(sizes: Sizes) -> list[Case]:
    """Section 9: peak memory beyond the inputs, as a multiple of the bytes of the scores."""
    bounds = {"ap": 3.0, "ndcg": 3.0}
    return [
        Case(LOSSES.get(loss, loss), partial(_growth_over_scores, loss, bound, sizes)) for loss, bound in bounds.items()
    ]


def _growth_over_scores(loss: str, bound: float, sizes: Sizes) -> Iterator[Row]:
    found = processes.memory(loss, sizes.n_pos, sizes.large)
    what = f"{LOSSES.get(loss, loss)}, N = {sizes.large:,}, float32: peak extra memory over the scores"
    yield (
        Row(what, None, target=at_most(bound))
        if found is None
        else over(what, found, "growth", "scores", target=at_most(bound))
    )


BENCHMARK = Benchmark(
    "inference",
    (
        Section(1, "The whole call against np.sort of the negatives", _against_sorting),
        Section(2, "One thread over two", _threads),
        Section(3, "Unfriendly scores", _unfriendly),
        Section(4, "Small queries: the published methods, many queries, what a call costs", small.small),
        Section(5, "Start-up", _start_up),
        Section(6, "A loss of your own against a built-in one", _own_loss),
        Section(7, "Algorithm 1 and its bound", _within_bounds),
        Section(8, "Growth", _growth),
        Section(9, "Memory", _memory),
        Section(10, "Tight losses: smooth and error-driven", losses.tight),
        Section(11, "Grades and cut-offs", losses.graded),
    ),
    Sizes,
)
