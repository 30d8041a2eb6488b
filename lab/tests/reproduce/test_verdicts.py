"""Verdicts on the paper's claims: each follows from the numbers, and a doctored number flips it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rankwise_lab.report.claims import Claim
from rankwise_lab.reproduce import action_page, cifar_page, detection_page, scaling_page, timing_page
from rankwise_lab.reproduce import timing_results as timed
from rankwise_lab.reproduce.beside import TITLES
from rankwise_lab.reproduce.cifar_results import PAPER as CIFAR_PAPER
from rankwise_lab.reproduce.scaling_curves import OURS, QS, ROWS, ZERO_ONE
from small_experiments import put

Found = dict[str, Any]


def timing() -> Found:
    quotient = {"total": 200.0, "replayed": 200.0, "paper_total": 11.4}
    return {
        "data": {"samples": {"train": timed.PAPER_SAMPLES}},
        "faster": {one.name: {**quotient, "least": one.least} for one in timed.QUOTIENTS},
        "mean": {"zero_one": {"total": 3.0}, "ap_qs": {"total": 2.0}, "ndcg_qs": {"total": 1.0}},
    }


def scaling() -> Found:
    panels = []
    for loss, row in ROWS.items():
        for axis in ("total", "negatives", "positives"):
            curves = {name: {"seconds": [0.1, 1.0]} for name in row}
            curves[next(iter(row))] = {"seconds": [0.1, 5.0]}
            panels.append({"part": "training", "loss": loss, "axis": axis, "curves": curves})
    laws = {"plain": {"total": {"factor": 1.5}, "negatives": {"factor": 1.7}}, "all": {"factor": 1.9}}
    return {"panels": panels, "laws": {loss: {key: {**law} for key, law in laws.items()} for loss in ROWS}}


def action() -> Found:
    metrics = ("ap", "ndcg")
    test = {"better": 8, "classes": 10}
    return {
        "mean": {metric: {"zero-one": 0.50, metric: 0.52} for metric in metrics},
        "difference": {metric: {"mean": [0.01, 0.03]} for metric in metrics},
        "tests": {metric: {"ours": dict(test), "paper": dict(test)} for metric in metrics},
    }


def detection() -> Found:
    return {
        "mean": {"zero-one": {"ap_2007": 0.30}, "ap": {"ap_2007": 0.35}},
        "difference": {"ap_2007": {"mean": [0.02, 0.08]}},
        "inference": {"yue": {"inference": 4.0}, "quicksort": {"inference": 1.0}},
    }


def cifar() -> Found:
    methods = {"ap": "yue", "ndcg": "chakrabarti"}
    sizes = {
        loss: [{"block_size": 200, "methods": {slow: {"total": 3.0}, "quicksort": {"total": 2.0}}}]
        for loss, slow in methods.items()
    }
    gain = {"mean": 0.01, "low": 0.005, "high": 0.015}
    return {
        "plan": {"timed_rounds": 2},
        "differences": {loss: {"final": dict(gain)} for loss in methods},
        "inference": sizes,
        "paper": CIFAR_PAPER,
    }


EXPERIMENTS: dict[str, tuple[Callable[[], Found], Callable[[Found], Sequence[Claim]]]] = {
    "timing": (timing, timing_page.claims),
    "scaling": (scaling, scaling_page.claims),
    "action": (action, action_page.claims),
    "detection": (detection, detection_page.claims),
    "cifar": (cifar, cifar_page.claims),
}


def test_every_experiment_of_the_report_has_claims() -> None:
    assert list(EXPERIMENTS) == list(TITLES)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_good_numbers_reproduce_every_claim_and_each_states_its_criterion(name: str) -> None:
    make, claims = EXPERIMENTS[name]
    made = claims(make())
    assert [claim.holds for claim in made] == [True] * len(made)
    assert len({claim.text for claim in made}) == len(made) >= 2
    assert all(claim.criterion.endswith(".") and claim.ours and claim.paper for claim in made)


TOTAL, NEGATIVES = 0, 1  # panels of AP loss
DOCTORED: list[tuple[str, tuple[Any, ...], Any, int, bool | None]] = [
    # Experiment, what is changed, to what, which claim that changes, and its verdict then.
    ("timing", ("faster", timed.QUOTIENTS[0].name, "total"), 9.9, 0, False),
    ("timing", ("faster", timed.QUOTIENTS[0].name, "replayed"), 9.9, 1, False),
    ("timing", ("faster", timed.QUOTIENTS[1].name, "total"), 99.0, 2, False),
    ("timing", ("faster", timed.QUOTIENTS[1].name, "replayed"), 99.0, 3, False),
    ("timing", ("faster", timed.QUOTIENTS[3].name, "total"), 1.0, 4, False),
    ("timing", ("mean", "ap_qs", "total"), 3.5, 5, False),
    ("scaling", ("panels", NEGATIVES, "curves", QS, "seconds"), [0.1, 6.0], 0, False),
    ("scaling", ("laws", "ndcg", "plain", "total", "factor"), 2.1, 2, False),
    ("scaling", ("laws", "ap", "all", "factor"), 2.01, 3, False),
    ("scaling", ("panels", TOTAL, "curves", ZERO_ONE, "seconds"), [0.1, 0.4], 4, False),
    ("action", ("difference", "ap", "mean"), [-0.01, 0.01], 0, False),
    ("action", ("difference", "ap", "mean"), [-0.01, 0.05], 0, None),
    ("action", ("tests", "ap", "ours", "better"), 5, 1, False),
    ("action", ("difference", "ndcg", "mean"), [-0.02, -0.01], 2, False),
    ("action", ("tests", "ndcg", "ours", "better"), 4, 3, False),
    ("detection", ("difference", "ap_2007", "mean"), [-0.03, 0.06], 0, False),
    ("detection", ("inference", "quicksort", "inference"), 4.0, 1, False),
    ("cifar", ("differences", "ap", "final", "low"), -0.001, 0, None),
    ("cifar", ("differences", "ndcg", "final", "low"), None, 1, None),
    ("cifar", ("inference", "ap", 0, "methods", "quicksort", "total"), 3.0, 2, False),
    ("cifar", ("inference", "ndcg", 0, "methods", "quicksort", "total"), 3.0, 3, False),
]


@pytest.mark.parametrize(("name", "path", "value", "which", "holds"), DOCTORED)
def test_a_doctored_number_changes_the_verdict_of_its_claim_alone(
    name: str, path: tuple[Any, ...], value: Any, which: int, holds: bool | None
) -> None:
    make, claims = EXPERIMENTS[name]
    found = make()
    put(found, path, value)
    made = [claim.holds for claim in claims(found)]
    assert made == [holds if k == which else True for k in range(len(made))]


def test_what_a_small_run_cannot_decide_is_undecided() -> None:
    found = timing()
    found["data"]["samples"]["train"] = timed.PAPER_SAMPLES - 1
    assert [claim.holds for claim in timing_page.claims(found)] == [None] * 4 + [True] * 2
    found = cifar()
    found["plan"]["timed_rounds"] = 1
    assert [claim.holds for claim in cifar_page.claims(found)] == [True, True, None, None]


def test_our_own_engine_has_no_say_in_a_verdict_on_algorithm_1() -> None:
    found = scaling()
    for panel in found["panels"]:
        panel["curves"][OURS]["seconds"] = [9.0, 9.0]
    assert all(claim.holds for claim in scaling_page.claims(found))
