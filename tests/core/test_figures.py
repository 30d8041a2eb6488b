"""Differences of two rankers by query: what is drawn, for few queries and many."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rankwise.figures import as_png, as_svg, draw_differences


def test_a_bar_a_query_is_drawn_in_order() -> None:
    figure = draw_differences([0.3, -0.1, 0.0, 0.2], (-0.05, 0.25), metric="ndcg@10", names=("a.rw", "b.rw"))
    (axes,) = figure.axes
    worse, better = (patch.get_data() for patch in axes.patches[:2])
    assert (worse.values.tolist(), worse.edges.tolist()) == ([-0.1], [0.5, 1.5])
    assert (better.values.tolist(), better.edges.tolist()) == ([0.2, 0.3], [2.5, 3.5, 4.5])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["b.rw better: 2 queries", "a.rw better: 1 query", "mean +0.1000 (95 %: −0.0500 to +0.2500)"]
    assert axes.get_xlabel() == "4 queries (1 of them equal), sorted"


def test_thousands_of_queries_make_a_small_file() -> None:
    differences = np.random.default_rng(0).normal(0.01, 0.1, 6000).clip(-1.0, 1.0)
    figure = draw_differences(differences, (0.008, 0.012), metric="ap", names=("x" * 90, "y" * 90))
    assert sum(patch.get_data().values.size for patch in figure.axes[0].patches[:2]) == 6000
    assert len(as_svg(figure, page=False)) < 500_000
    assert len(as_png(figure)) < 200_000


@pytest.mark.parametrize("differences", [[0.0], [0.0] * 9, [0.25], [-1.0, -0.5]])
def test_what_has_but_one_side_or_none_is_drawn(differences: list[float]) -> None:
    figure = draw_differences(differences, None, metric="err", names=("a", "b"))
    low, high = figure.axes[0].get_ylim()
    assert low < min(0.0, *differences, 0.0)
    assert high > max(0.0, *differences, 0.0)
    assert "%" not in figure.legends[0].get_texts()[2].get_text()
    assert as_png(figure).startswith(b"\x89PNG")
