"""Sections 6 and 7: a loss of one's own, and Algorithm 1 against its bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import rankwise as rw
from rankwise.losses import Loss
from rankwise_lab.benchmarks.plan import PAPER, Case, Sizes
from rankwise_lab.benchmarks.report import Row, at_most
from rankwise_lab.measuring import opponents, scores
from rankwise_lab.measuring.scores import Sample
from rankwise_lab.measuring.timing import compare

__all__ = ["own_loss", "within_bounds"]


def own_loss(sizes: Sizes) -> list[Case]:
    """Section 6: a loss of the user's own, of the same form as AP, against the built-in one."""
    own = rw.DiscountedLoss(weight=lambda k: k, discount=lambda m: 1 / m, name="own AP")
    return [
        Case(f"own loss, N = {n_neg:,}", partial(_own_loss, own, n_pos, n_neg, sizes.repeats))
        for n_pos, n_neg in [PAPER, (sizes.n_pos, sizes.medium)]
    ]


def _own_loss(own: Loss, n_pos: int, n_neg: int, repeats: int) -> Iterator[Row]:
    sample = scores.normal(n_pos, n_neg)
    found = compare({"own": opponents.hinge(sample, own), "built-in": opponents.hinge(sample, "ap")}, repeats)
    what = f"user-defined AP over built-in AP, P = {n_pos:,}, N = {n_neg:,}"
    yield Row(what, found["own"] / found["built-in"], target=at_most(1.5), parts=found)


def within_bounds(sizes: Sizes) -> list[Case]:
    """Section 7: the work of Algorithm 1, as the paper has it, against N log2 P."""
    return [
        Case("work of Algorithm 1", partial(_work, sizes)),
        *(
            Case(f"{order} order", partial(_adversarial, order, sizes.n_pos, sizes.medium // 10, sizes.repeats))
            for order in scores.ORDERS
        ),
    ]


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
