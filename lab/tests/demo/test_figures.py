"""Figures of rankers, drawn from what the demonstration found."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rankwise_lab.demo.results import Demo

from rankwise import figures
from rankwise.figures import as_png, as_svg

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_curve_is_that_of_scikit_learn_and_its_steps_have_the_area_ap() -> None:
    rng = np.random.default_rng(0)
    relevant = rng.random(300) < 0.2
    curve = figures.curve_of("model", rng.normal(relevant, 1.0).round(1), relevant)
    assert (curve.recall[0], curve.recall[-1], curve.precision[-1]) == (1.0, 0.0, 1.0)
    assert curve.ap == pytest.approx(float(-np.sum(np.diff(curve.recall) * curve.precision[:-1])), rel=1e-12)
    assert curve.recall.size < 300, "thresholds without a further positive are left out"


def test_a_figure_has_a_panel_for_each_thing_that_is_there(found: Demo) -> None:
    both = figures.draw(found.curves, found.histories, tol=1e-3)
    curves, gaps = both.axes
    assert [text.get_text() for text in curves.get_legend().get_texts()] == [
        f"{curve.name}: AP {curve.ap:.3f}" for curve in found.curves
    ]
    assert [text.get_text() for text in gaps.get_legend().get_texts()] == [*found.histories, "tol = 0.001"]
    assert gaps.get_yscale() == "log"
    for name, line in zip(found.histories, gaps.lines, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), found.histories[name]["gap"])
    for i in range(len(found.histories)):
        assert curves.lines[i].get_color() == gaps.lines[i].get_color()
    assert len(figures.draw(found.curves, {}).axes) == 1
    (alone,) = figures.draw([], found.histories).axes
    assert alone.get_ylabel() == "relative duality gap"


def test_a_gap_of_zero_does_not_spoil_the_scale() -> None:
    history = {"iteration": np.array([1, 2, 3]), "gap": np.array([1.0, 0.1, 0.0])}
    (axes,) = figures.draw([], {"model": history}).axes
    assert axes.get_ylim()[0] > 1e-3


def test_an_svg_is_the_same_every_time_and_its_ids_can_be_set_apart(found: Demo) -> None:
    figure = figures.draw(found.curves, found.histories)
    first = as_svg(figure)
    image = as_png(figure)
    assert image.startswith(PNG)
    assert [int.from_bytes(image[at : at + 4], "big") for at in (16, 20)] == [1500, 585], "both panels at their size"
    assert as_svg(figures.draw(found.curves, found.histories)) == first
    assert first.startswith("<svg")
    assert first.endswith("</svg>")
    assert "<dc:date>" not in first
    other = as_svg(figure, "other-")
    assert not set(re.findall(r' id="(.+?)"', first)) & set(re.findall(r' id="(.+?)"', other))
