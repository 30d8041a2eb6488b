"""Sections 4 to 7: the hinge against sorting, against the published methods, and against its own bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import rankwise as rw
from rankwise.benchmarks.plan import SMALL, Case, Sizes
from rankwise.benchmarks.processes import sort_without_avx512
from rankwise.benchmarks.report import Row, at_least, at_most
from rankwise.losses import Loss
from rankwise.measuring import opponents, scores
from rankwise.measuring.scores import Sample
from rankwise.measuring.timing import Task, compare

__all__ = ["against_published", "against_sorting", "own_loss", "within_bounds"]

LOSSES = {"ap": "AP", "ndcg": "NDCG"}


def own_loss(sizes: Sizes) -> list[Case]:
    """Section 4: a loss of the user's own, of the same form as AP, against the built-in one."""
    own = rw.DiscountedLoss(weight=lambda k: k, discount=lambda m: 1 / m, name="own AP")
    return [
        Case(f"own loss, N = {n_neg:,}", partial(_own_loss, own, n_pos, n_neg, sizes.repeats))
        for n_pos, n_neg in [SMALL, (sizes.n_pos, sizes.medium)]
    ]


def _own_loss(own: Loss, n_pos: int, n_neg: int, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg)
    found = compare({"own": opponents.hinge(sample, own), "built-in": opponents.hinge(sample, "ap")}, repeats)
    what = f"user-defined AP over built-in AP, P = {n_pos:,}, N = {n_neg:,}"
    yield Row(what, found["own"] / found["built-in"], target=at_most(1.5), parts=found)


def against_sorting(sizes: Sizes) -> list[Case]:
    """Section 5: the whole call against np.sort of the negatives alone; hostile scores against normal ones."""
    cases = []
    for n_neg in (sizes.medium, sizes.large):
        for loss in LOSSES:
            size = (sizes.n_pos, n_neg)
            kinds: dict[str, Callable[[], Sample]] = {
                "normal": partial(scores.normal, *size),
                "separated": partial(scores.separated, *size),
                "trained-like": partial(scores.trained_like, *size, loss),
            }
            for kind, make in kinds.items():
                label = f"{LOSSES[loss]}, N = {n_neg:,}, {kind}"
                cases.append(Case(label, partial(_against_sorting, label, make, loss, sizes.repeats)))
            label = f"{LOSSES[loss]}, N = {n_neg:,}, hostile scores"
            cases.append(Case(label, partial(_hostile, *size, loss, sizes.repeats)))
    return cases


def _against_sorting(label: str, make: Callable[[], Sample], loss: str, repeats: int) -> Iterator[Row]:
    sample = make()
    negatives = sample.negatives
    with sort_without_avx512(negatives) as narrow:
        tasks: dict[str, Task] = {"hinge": opponents.hinge(sample, loss), "np.sort": opponents.sort(negatives)}
        if narrow is not None:
            tasks["np.sort without AVX-512"] = narrow
        found = compare(tasks, repeats)
    for opponent, target in (("np.sort", at_most(0.6)), ("np.sort without AVX-512", None)):
        if opponent in found:
            parts = {name: found[name] for name in ("hinge", opponent)}
            yield Row(f"{label}: over {opponent}", found["hinge"] / found[opponent], target=target, parts=parts)


def _hostile(n_pos: int, n_neg: int, loss: str, repeats: int) -> Iterator[Row]:
    kinds = {"heavy-tailed": scores.heavy_tailed, "two-valued": scores.two_valued, "constant": scores.constant}
    tasks = {kind: opponents.hinge(make(n_pos, n_neg), loss) for kind, make in kinds.items()}
    found = compare({"normal": opponents.hinge(scores.normal(n_pos, n_neg), loss), **tasks}, repeats)
    for kind in kinds:
        parts = {name: found[name] for name in (kind, "normal")}
        what = f"{LOSSES[loss]}, N = {n_neg:,}, {kind}: over normal scores"
        yield Row(what, found[kind] / found["normal"], target=at_most(1.5), parts=parts)


def against_published(sizes: Sizes) -> list[Case]:
    """Section 6: at the paper's size, against the methods it is compared with there."""
    return [Case("AP", partial(_published_ap, sizes.repeats)), Case("NDCG", partial(_published_ndcg, sizes.repeats))]


def _published_ap(repeats: int) -> Iterator[Row]:
    sample = scores.normal(*SMALL)
    tasks = {
        "hinge": opponents.hinge(sample, "ap"),
        "yue": opponents.hinge(sample, "ap", "yue"),
        "0-1": opponents.zero_one(sample),
    }
    found = compare(tasks, repeats)
    yield _faster("AP: yue over ours", found, "yue", 25)
    yield _as_slow_as_zero_one("AP", found)
    yield _agreement("AP", sample, {"ours": ("ap", "auto"), "yue": ("ap", "yue")})


def _published_ndcg(repeats: int) -> Iterator[Row]:
    sample = scores.normal(*SMALL)
    untabulated = rw.NDCG(tabulate=False)
    tasks = {
        "hinge": opponents.hinge(sample, "ndcg"),
        "chakrabarti": opponents.hinge(sample, "ndcg", "chakrabarti"),
        "as published": opponents.hinge(sample, untabulated, "chakrabarti"),
        "0-1": opponents.zero_one(sample),
    }
    found = compare(tasks, repeats)
    yield _faster("NDCG: chakrabarti (tabulated) over ours", found, "chakrabarti", 15)
    yield _faster("NDCG: chakrabarti (logarithms in the loop) over ours", found, "as published", 100)
    yield _as_slow_as_zero_one("NDCG", found)
    methods = {"ours": ("ndcg", "auto"), "tabulated": ("ndcg", "chakrabarti")}
    yield _agreement("NDCG", sample, {**methods, "as published": (untabulated, "chakrabarti")})


def _faster(what: str, found: dict[str, float], opponent: str, times: float) -> Row:
    parts = {name: found[name] for name in ("hinge", opponent)}
    return Row(what, found[opponent] / found["hinge"], target=at_least(times), parts=parts)


def _as_slow_as_zero_one(loss: str, found: dict[str, float]) -> Row:
    parts = {name: found[name] for name in ("hinge", "0-1")}
    return Row(f"{loss}: ours over NumPy's 0-1 hinge", found["hinge"] / found["0-1"], target=at_most(5), parts=parts)


def _agreement(loss: str, sample: Sample, methods: dict[str, tuple[str | Loss, str]]) -> Row:
    """The opponents must find the same J, or the race was not the same."""
    values = {
        name: float(rw.structured_hinge(*sample, which, method=method).value)
        for name, (which, method) in methods.items()
    }
    spread = max(values.values()) - min(values.values())
    return Row(f"{loss}: largest difference in J", spread, unit="", target=at_most(1e-9), parts=values)


def within_bounds(sizes: Sizes) -> list[Case]:
    """Section 7: Algorithm 1 as the paper has it: against Yue et al., and its work against N log2 P."""
    return [
        Case("Algorithm 1 against Yue et al.", partial(_quicksort_against_yue, sizes.repeats)),
        Case("work of Algorithm 1", partial(_work, sizes)),
        *(
            Case(f"{order} order", partial(_adversarial, order, sizes.n_pos, sizes.medium // 10, sizes.repeats))
            for order in scores.ORDERS
        ),
    ]


def _quicksort_against_yue(repeats: int) -> Iterator[Row]:
    sample = scores.normal(*SMALL)
    found = compare(
        {"hinge": opponents.hinge(sample, "ap", "quicksort"), "yue": opponents.hinge(sample, "ap", "yue")}, repeats
    )
    yield _faster("AP: yue over quicksort", found, "yue", 10)


def _work(sizes: Sizes) -> Iterator[Row]:
    constants = {}
    for n_neg in sizes.work_negatives:
        for n_pos in sizes.work_positives:
            what = f"work/(N log2 P), N = {n_neg:,}, P = {n_pos:,}"
            constants[what] = _work_constant(scores.normal(n_pos, n_neg))
            yield Row(what, constants[what], unit="")
    least, most = min(constants.values()), max(constants.values())
    parts = {"least": least, "most": most}
    yield Row("work/(N log2 P): greatest over least", most / least, target=at_most(4), parts=parts)


def _work_constant(sample: Sample) -> float:
    """c, if Algorithm 1's evaluated negatives and moves together number c·N·log2 P."""
    work = rw.inference.count_work(sample.scores, sample.relevant, "ap")
    n_pos = int(sample.relevant.sum())
    n_neg = sample.relevant.size - n_pos
    return float(work.evaluated + work.moves) / (n_neg * math.log2(n_pos))


def _adversarial(order: str, n_pos: int, n_neg: int, repeats: int) -> Iterator[Row]:
    hostile, shuffled = scores.in_order(order, n_pos, n_neg), scores.normal(n_pos, n_neg)
    work = {order: _work_constant(hostile), "shuffled": _work_constant(shuffled)}
    label = f"quicksort, N = {n_neg:,}, {order} over shuffled"
    yield Row(f"{label}: work", work[order] / work["shuffled"], target=at_most(4), parts=work)
    tasks = {name: opponents.hinge(s, "ap", "quicksort") for name, s in ((order, hostile), ("shuffled", shuffled))}
    found = compare(tasks, repeats)
    yield Row(f"{label}: time", found[order] / found["shuffled"], target=at_most(4), parts=found)
