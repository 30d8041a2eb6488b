"""The demonstration runs on real data, its checks can fail, and its data are plain."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("matplotlib")

from rankwise_lab import figures
from rankwise_lab.demo.page import as_lines
from rankwise_lab.demo.results import Demo, Ranked, as_dict, typical

Spoil = Callable[..., Demo]


def test_the_checks_hold_on_real_data(found: Demo) -> None:
    assert found.holds, found.checks
    assert len(found.checks) == len(found.comparison_checks) + len(found.structured_checks) == 7 + 7
    assert (found.data.n, found.data.n_pos) == (1797, 174)
    assert found.data.n_train + found.data.n_test == found.data.n
    assert found.data.n_train_pos + found.data.n_test_pos == found.data.n_pos


def test_every_model_is_trained_on_every_split_and_every_method_on_the_same_problem(found: Demo) -> None:
    both, splits = found.comparison, found.settings.splits
    assert [(model.name, model.loss) for model, _ in both.pairs] == [
        ("LinearRanker", None),
        ("LogisticRegression", None),
    ]
    assert (both.ours.Cs, len(both.baseline.Cs), both.untuned.Cs) == ([], splits, [1.0] * splits)
    assert set(both.baseline.Cs) <= {1e-4, 0.1, 1e2}, "three values from 0.0001 to 100"
    assert [(model.name, model.loss) for model in found.models] == [
        ("0-1 loss", "zero-one"),
        ("AP loss", "ap"),
        ("NDCG loss", "ndcg"),
    ]
    assert all(len(model.certificates) == splits for model in found.models)
    for model in (both.ours, both.baseline, both.untuned, *found.models):
        assert len({fit.ap for fit in model.fits}) == len(model.fits) == splits, "splits must differ"
        assert 0.3 < model.ap.min() <= model.ap.max() < 1.0, "neither hopeless nor saturated"
    assert {race.loss: [one.method for one in race.timed] for race in found.races} == {
        "ap": ["bucketed", "quicksort", "mohapatra2014", "yue"],
        "ndcg": ["bucketed", "quicksort", "yue", "chakrabarti"],
        "zero-one": ["auto"],
    }
    for race in found.races:
        assert race.ratio(race.timed[0]) == 1.0
        for one in race.timed:
            assert 0.0 < one.inference < one.total
            assert one.per_call * one.calls == pytest.approx(one.inference)


def test_the_images_of_a_list_are_those_of_the_data(found: Demo) -> None:
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    for _, ranked in found.comparison.pairs:
        np.testing.assert_array_equal(ranked.digits, digits[ranked.images])
        np.testing.assert_array_equal(16 * ranked.pixels.reshape(-1, 64), pixels[ranked.images])
        assert ranked.scores.size == found.data.n_test
        assert ranked.hits.size == found.data.n_test_pos
    assert found.comparison.shown.trained.size == found.data.n_train


def test_ranks_begin_at_1_and_the_split_closest_to_the_mean_is_shown_not_the_best() -> None:
    ranked = Ranked(np.arange(5.0)[::-1], np.arange(5), np.array([8, 3, 8, 8, 1]), np.zeros((5, 8, 8)), 8)
    assert (ranked.hits.tolist(), ranked.errors.tolist()) == ([1, 3, 4], [2, 5])
    assert ranked.ap == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3, rel=1e-15)
    assert typical(np.array([0.09, 0.0, 0.04, -0.01])) == 2
    assert typical(np.array([0.02, 0.02])) == 0


def _with_shown(found: Demo, **changes: Any) -> Demo:
    both = found.comparison
    return replace(found, comparison=replace(both, shown=replace(both.shown, **changes)))


def _with_list(found: Demo, **changes: Any) -> Demo:
    """With other values in the list of the ranker."""
    return _with_shown(found, ours=replace(found.comparison.shown.ours, **changes))


def _with_fits(found: Demo, numbers: list[int], **changes: Any) -> Demo:
    """With other numbers of the ranker on some splits."""
    both = found.comparison
    fits = [replace(fit, **changes) if k in numbers else fit for k, fit in enumerate(both.ours.fits)]
    return replace(found, comparison=replace(both, ours=replace(both.ours, fits=fits)))


def _swap(values: NDArray[Any], one: int, other: int) -> NDArray[Any]:
    copy = values.copy()
    copy[[one, other]] = values[[other, one]]
    return copy


def _another_typical(found: Demo) -> Demo:
    """The splits that are not shown have a higher AP, so that the mean is near to theirs."""
    others = [k for k in range(found.settings.splits) if k != found.comparison.shown.number]
    return _with_fits(found, others, ap=0.99, ap_sklearn=0.99)


def _swap_late(found: Demo) -> Demo:
    """A hit and an error change places, both after the first images."""
    ranked = found.comparison.shown.ours
    hit, error = (int(ranks[ranks > found.settings.first][0]) - 1 for ranks in (ranked.hits, ranked.errors))
    return _with_list(found, digits=_swap(ranked.digits, hit, error))


def _ranked(found: Demo) -> Ranked:
    return found.comparison.shown.ours


@pytest.mark.parametrize(
    ("spoil", "checks"),
    [
        (lambda found: _with_fits(found, [0], ap_sklearn=0.5), ["that of scikit-learn, on every split"]),
        (
            lambda found: replace(found, data=replace(found.data, n_test_pos=found.data.n_test)),
            ["all models rank better than chance", "every structured SVM ranks better than chance"],
        ),
        (_another_typical, ["closest to the mean"]),
        (lambda found: _with_list(found, scores=_swap(_ranked(found).scores, 3, 4)), ["in the order of their scores"]),
        (_swap_late, ["counted from the ranked images"]),
        (lambda found: _with_fits(found, [found.comparison.shown.number], errors=59.0), ["errors among the first 60"]),
        (lambda found: _with_shown(found, trained=_ranked(found).images[5:6]), ["learnt from none"]),
        (lambda found: _with_list(found, images=np.append(_ranked(found).images, 0)), ["rank the same images"]),
        (
            lambda found: _with_list(found, images=np.append(_ranked(found).images[1:], _ranked(found).images[1])),
            ["each once"],
        ),
    ],
)
def test_each_check_of_the_comparison_can_fail(spoil: Any, checks: list[str], found: Demo) -> None:
    _assert_failed(spoil(found), checks)


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        (lambda last: {"gap": float("nan")}, "every certified gap"),
        (lambda last: {"objective": 0.99 * last.dual}, "the same minimum"),
        (lambda last: {"hinge": last.hinge + 1e-6}, "the same J"),
        ({"gap": 2e-3}, "every certified gap"),
        ({"objective": 1.0}, "computed again"),
        ({"loss": 1.1, "hinge": 1.0}, "J is at least the loss"),
        ({"ap_sklearn": 0.5}, "structured SVMs is that of scikit-learn"),
        ({"ap": 0.05, "ap_sklearn": 0.05}, "every structured SVM ranks better than chance"),
    ],
)
def test_each_structured_check_fails(
    changes: Any, check: str, found: Demo, spoil_fit: Spoil, spoil_timed: Spoil
) -> None:
    spoilt = spoil_timed(**changes(found.races[0].timed[-1])) if callable(changes) else spoil_fit(**changes)
    _assert_failed(spoilt, [check])


def _assert_failed(spoilt: Demo, checks: list[str]) -> None:
    """These checks fail and no others, and the text says so."""
    failed = [name for name, holds in spoilt.checks.items() if not holds]
    assert len(failed) == len(checks)
    for check, name in zip(checks, failed, strict=True):
        assert check in name
        assert f"  FAILED  {name}" in as_lines(spoilt)
    assert not spoilt.holds


def test_the_document_is_plain_data(found: Demo) -> None:
    document = as_dict(found)
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again == document
    assert again["holds"] is True
    assert again["checks"] == found.checks
    assert [curve["name"] for curve in again["curves"]] == [model.name for model in found.models]
    assert list(again["histories"]) == ["0-1 loss", "AP loss", "NDCG loss"]


# Figures


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
