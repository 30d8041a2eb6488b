"""Section 1: a whole call, value and gradient, against sorting alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rankwise_lab.benchmarks.plan import Case, Sizes
from rankwise_lab.benchmarks.processes import sort_without_avx512
from rankwise_lab.benchmarks.report import Row, Target, at_most
from rankwise_lab.measuring import machine, opponents, scores
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import Task, compare

__all__ = ["DTYPES", "LOSSES", "against_sorting"]

LOSSES = {"ap": "AP", "ndcg": "NDCG"}
DTYPES = ("float32", "float64")


def against_sorting(sizes: Sizes) -> list[Case]:
    """Section 1: normal scores in both dtypes; separated ones and those of a nearly trained model in float32."""
    cases = []
    for n_neg in (sizes.small, sizes.medium, sizes.large):
        for loss in LOSSES:
            size = (sizes.n_pos, n_neg)
            kinds: dict[str, Callable[[], Sample]] = {
                dtype: partial(scores.normal, *size, dtype=dtype) for dtype in DTYPES
            }
            if n_neg != sizes.small:
                kinds["separated"] = partial(scores.separated, *size)
                kinds["trained-like"] = partial(scores.trained_like, *size, loss)
            for kind, make in kinds.items():
                label = f"{LOSSES[loss]}, N = {n_neg:,}, {kind}"
                target = _target(n_neg < sizes.medium, machine.vendor(), machine.numpy_sorts_with())
                cases.append(Case(label, partial(_rows, label, make, loss, target, sizes.repeats)))
    return cases


def _target(is_small: bool, vendor: str, sorts_with: str) -> Target | None:
    """What is aimed at depends on np.sort: fast with Intel's AVX-512, slow with AMD's, of which it asks too much."""
    if vendor == "AMD":
        return at_most(0.15)
    if vendor == "Intel" and sorts_with == "AVX-512":
        return at_most(1.0 if is_small else 0.6)
    return None


def _rows(label: str, make: Callable[[], Sample], loss: str, target: Target | None, repeats: int) -> Iterator[Row]:
    """The hinge over np.sort of the negatives, over that without AVX-512, and over np.argsort, which gradients need."""
    sample = make()
    negatives = sample.negatives
    with sort_without_avx512(negatives) as narrow:
        tasks: dict[str, Task] = {"hinge": opponents.hinge(sample, loss), "np.sort": opponents.sort(negatives)}
        if narrow is not None:
            tasks["np.sort without AVX-512"] = narrow
        tasks["np.argsort"] = opponents.argsort(negatives)
        found = compare(tasks, repeats)
    for opponent in list(tasks)[1:]:
        parts = {name: found[name] for name in ("hinge", opponent)}
        aim = target if opponent == "np.sort" else None
        yield Row(f"{label}: over {opponent}", found["hinge"] / found[opponent], target=aim, parts=parts)
