"""The scaling experiment: its axes, its law, and where methods stop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rankwise_lab.measuring import scores
from rankwise_lab.reproduce import scaling
from rankwise_lab.reproduce.action_data import ActionData
from rankwise_lab.reproduce.scaling import ScalingExperiment
from rankwise_lab.reproduce.scaling_curves import (
    QS,
    ROWS,
    Curve,
    axes,
)
from rankwise_lab.reproduce.scaling_law import fit, theorem
from rankwise_lab.reproduce.scaling_results import document, law_table, moves, panel_of, stops
from small_experiments import SCALING as PLAN

CLASSES = ("jumping", "phoning", "running")


@pytest.fixture
def data() -> ActionData:
    """Samples of three classes, the second of them the paper's."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 15
    Y = np.stack([labels < 4, labels == 4, labels > 4], axis=1)
    X = rng.standard_normal((300, 8)).astype(np.float32)
    X[:, 0] += 2.0 * Y[:, 1]
    return ActionData(X, Y, X, Y, CLASSES, "Samples that were drawn", True, "0123")


def experiment(data: ActionData, folder: Path, classes: list[int] | None = None) -> ScalingExperiment:
    known = list(range(len(data.classes))) if classes is None else classes
    chooser: Any = SimpleNamespace(data=data, classes=known, chosen=lambda *_: 0.1, plan=None)
    return ScalingExperiment(chooser, folder, PLAN)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that follow from sizes alone, and fall from round to round."""
    done: list[tuple[int, int]] = []

    def call(curves: Mapping[str, Curve], sample: scores.Sample, repeats: int) -> dict[str, float]:
        n_pos, n_neg = int(sample.relevant.sum()), int((~sample.relevant).sum())
        done.append((n_pos, n_neg))
        fast, slow = 1e3 + theorem(n_pos, n_neg), float(n_pos * n_neg)
        times = {name: slow if math.isfinite(curve.pairs) else fast for name, curve in curves.items()}
        return {name: 1e-9 * time / done.count(done[-1]) for name, time in times.items()}

    def train(self: Any, curve: Curve, C: float, X: Any, y: Any, max_iter: int = 10_000) -> dict[str, Any]:
        return {"seconds": 1e-6 * y.size * (1 + len(curve.label)), "calls": 7, "converged": True}

    monkeypatch.setattr(scaling, "time_call", call)
    monkeypatch.setattr(ScalingExperiment, "_train", train)
    monkeypatch.setattr(scaling.os, "getloadavg", lambda: (0.5, 0.0, 0.0), raising=False)


def test_axes_are_the_papers_three_and_end_where_they_should() -> None:
    total, negatives, positives = axes(4, (110_000, 100_000, 10_000))
    assert [axis.name for axis in (total, negatives, positives)] == ["total", "negatives", "positives"]
    assert total.sizes == [(10, 100), (100, 1000), (1000, 10_000), (10_000, 100_000)]
    assert negatives.sizes == [(227, n) for n in (100, 1000, 10_000, 100_000)]
    assert positives.sizes == [(n, 200) for n in (10, 100, 1000, 10_000)]
    for axis, count in ((total, sum), (negatives, lambda size: size[1]), (positives, lambda size: size[0])):
        assert axis.x == [count(size) for size in axis.sizes]


def times(sizes: list[tuple[int, int]], a: float, b: float, noise: float = 0.0) -> np.ndarray[Any, Any]:
    exact = np.array([a + b * theorem(*size) for size in sizes])
    return exact * np.exp(np.random.default_rng(3).uniform(-noise, noise, exact.size))


@pytest.mark.parametrize(("a", "b", "noise"), [(2e-5, 4e-9, 0.5), (0.0, 4e-9, 1.0), (1e-3, 1e-10, 0.3)])
def test_the_largest_factor_is_the_least_that_any_law_has(a: float, b: float, noise: float) -> None:
    sizes = [size for axis in axes(5, (10**6, 10**6, 10**6)) for size in axis.sizes]
    t, w = times(sizes, a, b, noise), np.array([theorem(*size) for size in sizes])
    law = fit(sizes, t, theorem)
    assert law.factor == pytest.approx(np.exp(np.abs(np.log(t / (law.a + law.b * w))).max()), rel=1e-9)
    assert law.a >= 0.0
    assert law.b > 0.0
    intercepts = np.concatenate([[0.0], np.geomspace(1e-8, 1e-1, 200)])
    slopes = np.geomspace(1e-12, 1e-6, 400)
    fitted = intercepts[:, None, None] + slopes[None, :, None] * w
    grid = np.exp(np.abs(np.log(t / fitted)).max(axis=2)).min()
    assert law.factor <= grid <= 1.05 * law.factor
    assert t[law.slowest] / law(w[law.slowest]) == pytest.approx(law.factor, rel=1e-9)
    assert law(w[law.fastest]) / t[law.fastest] == pytest.approx(law.factor, rel=1e-9)


def test_quadratic_methods_stop(data: ActionData, tmp_path: Path, timed: None) -> None:
    one = experiment(data, tmp_path)
    found = document(one, one.run(), {})
    bounds = {"yue": PLAN.pairs, "tabulated": PLAN.pairs, "published": 0.2 * PLAN.pairs}
    for panel in found["panels"]:
        for name, curve in panel["curves"].items():
            ends = [n_pos * n_neg for n_pos, n_neg in panel["sizes"]]
            allowed = [x for x, pairs in zip(panel["x"], ends, strict=True) if pairs <= bounds.get(name, math.inf)]
            assert curve["x"] == (allowed if panel["part"] == "calls" else panel["x"])
    assert set(stops(found)) == {("ap", "yue"), ("ndcg", "published"), ("ndcg", "tabulated")}
    assert stops(found)["ap", "yue"]["negatives"] == [227, 632]


@pytest.fixture
def found(data: ActionData, tmp_path: Path, timed: None) -> dict[str, Any]:
    one = experiment(data, tmp_path / "scaling")
    return document(one, one.run(), {"cpu": "any", "cores": 2})


def test_laws_are_fitted_to_algorithm_1_alone(found: dict[str, Any]) -> None:
    for loss in ROWS:
        laws = found["laws"][loss]
        assert laws["all"]["points"] == 9
        assert laws["all"]["factor"] == pytest.approx(1.0, abs=1e-9)
        assert set(laws["axes"]) == {"total", "negatives", "positives"}
        assert all(law["points"] == 3 for law in laws["axes"].values())
        assert set(laws["plain"]) == {"total", "negatives", "1:10 and negatives"}
        assert laws["plain"]["total"]["factor"] > 1.0
        panel = panel_of(found, "calls", loss, "total")
        np.testing.assert_allclose(panel["law"], panel["curves"][QS]["seconds"], rtol=1e-9)
        low, high = moves(found, loss)
        assert 0.5 < low <= high < 5.0
    assert len(law_table(found).rows) == 14
