"""What the CIFAR-10 experiment says of results that are made up: tables, sentences, figures."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch")

from rankwise_lab.data.cifar10 import Cifar10
from rankwise_lab.report.blocks import Paragraph
from rankwise_lab.reproduce import cifar_page, cifar_results
from rankwise_lab.reproduce.cifar import METHODS, Plan
from rankwise_lab.reproduce.cifar_page import draw

PLAN = Plan(seeds=(3,), block_size=15, timed_blocks=(15,))


def texts(found: dict[str, Any]) -> list[str]:
    """The paragraphs of the part."""
    return [block.text for block in cifar_page.make_part(found, {}).body if isinstance(block, Paragraph)]


def made_up(gains: dict[str, list[float]], n_test: int = 100) -> dict[str, Any]:
    """A document in which AP and NDCG loss gain so much over 0-1 loss, by seed, after LW-SVM."""

    def test(value: float) -> dict[str, float]:
        return {"ap": value, "ndcg": value, "accuracy": 0.5}

    seeds = []
    for k in range(len(gains["ap"])):
        losses = {
            loss: {
                "lam": 1e-3,
                "mu": 1e-2,
                "test": {"warm": test(0.6 + 0.01 * k), "final": test(0.7 + 0.01 * k + gains.get(loss, [0.0] * 9)[k])},
                "warm_seconds": 1.0,
                "objective": 0.5,
                "curve": [[0.0, 1.0], [2.0, 0.5]],
                "timing": {"total": 2.0, "inference": 1.0, "calls": 7},
            }
            for loss in PLAN.losses
        }
        seeds.append({"seed": k, "pretrained": {"test": test(0.5), "seconds": 3.0}, "losses": losses})
    times = {"total": 20.0, "inference": 12.0, "calls": 7, "objective": 0.5}
    fast = {**times, "total": 10.0, "inference": 2.0}
    timed = {
        loss: [
            {"block_size": size, "methods": {methods[0]: times, methods[1]: fast, methods[2]: fast}}
            for size in (15, 30)
        ]
        for loss, methods in METHODS.items()
    }
    plan = replace(PLAN, seeds=tuple(range(len(seeds))))
    images, labels = np.zeros((3, 3, 32, 32), np.uint8), np.arange(3)
    cifar = Cifar10(images, labels, images, labels, ("cat", "dog", "emu"))
    return cifar_results.document(plan, cifar, n_test, seeds, timed, {})


def test_the_sentence_goes_by_the_interval() -> None:
    found = made_up({"ap": [0.01, 0.012, 0.011], "ndcg": [-0.02, -0.021, -0.019]})
    lines = cifar_page.conclusions(found)
    assert any("AP loss minus 0-1 loss is +1.10 points, better in 3 of 3 seeds" in line for line in lines)
    assert any("Mean AP after LW-SVM" in line and line.endswith("the paper's gain appears.") for line in lines)
    assert any("Mean NDCG after LW-SVM" in line and "the gain is negative" in line for line in lines)
    wide = cifar_page.conclusions(made_up({"ap": [0.01, -0.012, 0.02], "ndcg": [0.0, 0.0, 0.0]}))
    assert any("Mean AP after LW-SVM" in line and "within chance" in line for line in wide)
    few = cifar_page.conclusions(made_up({"ap": [0.01, 0.01], "ndcg": [0.0, 0.0]}))
    assert any("Mean AP after LW-SVM" in line and "too few seeds" in line for line in few)


def test_the_interval_is_that_of_student_and_three_seeds_are_the_fewest() -> None:
    values = [0.01, 0.03, -0.004, 0.02]
    found = made_up({"ap": values, "ndcg": values})["differences"]["ap"]["final"]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=np.std(values, ddof=1) / math.sqrt(4))
    assert [found["mean"], found["low"], found["high"]] == pytest.approx([np.mean(values), low, high])
    few = made_up({"ap": values[:2], "ndcg": values[:2]})["differences"]["ap"]["final"]
    assert (few["low"], few["high"]) == (None, None)


def test_tables_put_our_numbers_beside_the_papers() -> None:
    found = made_up({"ap": [0.01, 0.02, 0.03], "ndcg": [0.0, 0.0, 0.01]})
    zero_one, ap, ndcg = cifar_results.metric_table(found, "ap").rows
    assert zero_one == ["0-1 loss", "50.00 ± 0.00", "61.00 ± 1.00", "71.00 ± 1.00", "84.22", "0.84"]
    assert ap[3:] == ["73.00 ± 2.00", "85.28", "0.86"]
    assert ndcg[4:] == ["", ""]
    rows = cifar_results.differences_table(found).rows
    assert rows[1][1:5] == ["+1.00", "+2.00", "+3.00", "+2.00"]
    assert rows[1][-2:] == ["+1.06", "1.89"]
    times = cifar_results.time_table(found).rows
    name = "AP loss, blocks of 15: Yue et al. 2007"
    assert times[0] == [name, "12.00", "8.0", "20.0", "7", "1.00", "1.00", "1.974", "1.00"]
    assert times[1][5:] == ["6.00", "2.00", "1.589", "1.24"]
    assert times[3][5:] == ["1.00", "1.00", "", ""]
    assert times[8][5:] == ["6.00", "2.00", "", ""]


def test_without_matplotlib_the_page_says_that_there_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made_up({"ap": [0.01], "ndcg": [0.0]})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert draw(found) == {}
    assert any("No figures: Matplotlib is not installed" in text for text in texts(found))


def test_the_page_says_whether_the_objective_rises() -> None:
    found = made_up({"ap": [0.01], "ndcg": [0.0]})
    assert any("It never rises." in text for text in texts(found))
    found["seeds"][0]["losses"]["ap"]["curve"] += [[3.0, 0.55], [4.0, 0.54]]
    rises = "It rises 1 times, by at most 1.0e-01 of its value."
    assert any(rises in text for text in texts(found))


def test_figures_are_the_same_whenever_they_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    found = made_up({"ap": [0.01, 0.0], "ndcg": [0.0, 0.0]})
    found["plan"]["losses"] = ("ap", "ndcg")
    figures = draw(found)
    assert figures == draw(found)
    assert figures["objective-ap"].png.startswith(b"\x89PNG")
    assert b"<svg" in figures["objective-ndcg"].svg
