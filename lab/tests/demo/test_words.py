"""What the demonstration says: the verdict follows from the numbers, and the text has every table and check."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rankwise_lab.demo import page as words
from rankwise_lab.demo import structured
from rankwise_lab.demo.page import as_lines, by_split, front
from rankwise_lab.demo.results import Demo

WithAP = Callable[[list[float], list[float]], Demo]


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (
            [0.6, 0.61, 0.62],
            "LinearRanker ranks better here. The mean test AP of LinearRanker is 0.1100 higher than that of "
            "LogisticRegression (0.6100 against 0.5000), and the 95 % interval of the gain, +0.0852 to +0.1348, lies "
            "above 0. LinearRanker is ahead on 3 and behind on 0 of 3 splits.",
        ),
        (
            [0.5, 0.49, 0.54],
            "The two are level here. The mean test AP of LinearRanker is 0.0100 higher than that of "
            "LogisticRegression (0.5100 against 0.5000), but the 95 % interval of the gain, −0.0557 to +0.0757, "
            "contains 0. LinearRanker is ahead on 1 and behind on 1 of 3 splits.",
        ),
        (
            [0.6],
            "Undecided: one split cannot tell a difference from chance. The mean test AP of LinearRanker is 0.1000 "
            "higher than that of LogisticRegression (0.6000 against 0.5000).",
        ),
    ],
)
def test_the_verdict_follows_the_numbers(ours: list[float], verdict: str, with_ap: WithAP) -> None:
    assert words.lines(with_ap(ours, [0.5] * len(ours)))[0] == verdict


def test_the_tiles_have_the_numbers(found: Demo, with_ap: WithAP) -> None:
    both = found.comparison
    spoilt = with_ap([0.6, 0.61, 0.48], [0.5, 0.5, 0.5])
    numbers, meanings = zip(*words.tiles(spoilt), strict=True)
    assert numbers[:4] == (f"{1.69 / 3:.4f}", "0.5000", f"+{0.19 / 3:.4f}", "2 of 3")
    errors = both.ours.fits[0].errors, both.baseline.fits[0].errors
    assert numbers[4] == f"{errors[0]:.1f} | {errors[1]:.1f}"
    half = 4.302652729911275 * np.std([0.1, 0.11, -0.02], ddof=1) / 3**0.5  # t with 2 degrees of freedom, times s/√n
    assert f"95 % interval over splits: −{half - 0.19 / 3:.4f} to +{half + 0.19 / 3:.4f}" in meanings[2]
    assert "no interval" in words.tiles(with_ap([0.6], [0.5]))[2][1]


def test_the_first_half_tells_the_first_errors_and_has_no_jargon(found: Demo) -> None:
    told = words.lines(found)[-1]
    for model, ranked in found.comparison.pairs:
        one, two, three = (f"{rank} ({words.an(int(ranked.digits[rank - 1]))})" for rank in ranked.errors[:3])
        assert f"{model.name} are at ranks {one}, {two} and {three}" in told
    part = front(found, figures=False)
    text = " ".join([part.about, *part.lines, *part.facts, *part.checks])
    assert not re.search(r"violating|structured|hinge|inference|dual|\bJ\b", text)
    assert text.count("Average precision (AP) is") == 1


def test_the_text_begins_with_the_comparison_and_has_every_table_and_check(found: Demo) -> None:
    lines = as_lines(found, 100)
    assert max(map(len, lines)) <= 110
    assert lines[0] == by_split(found).title
    assert lines.index(structured.quality(found).title) > lines.index("Structured SVMs, as in the paper")
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    for table in (by_split(found), structured.quality(found), *map(structured.inference, found.races)):
        assert table.title in lines
        for row in (table.columns, *table.rows):
            assert list(row) in rows
    for check in found.checks:
        assert f"  ok      {check}" in lines
    text = " ".join(lines)
    for sentence in (*words.lines(found), *structured.about_quality(found), *structured.about_inference(found)):
        assert sentence in text


def test_tables_show_what_was_found(found: Demo) -> None:
    *splits, mean = by_split(found).rows
    both, first = found.comparison, splits[0]
    assert first[:3] == ["1", f"{both.ours.ap[0]:.4f}", f"{both.baseline.ap[0]:.4f}"]
    assert first[4:] == [f"{both.ours.errors[0]:.0f}", f"{both.baseline.errors[0]:.0f}"]
    assert mean[3] == f"{np.mean(both.ours.ap - both.baseline.ap):+.4f}".replace("-", "−")
    _, ap, _, baseline = structured.quality(found).rows
    values = [fit.ap for fit in found.models[1].fits]
    assert ap[1] == f"{np.mean(values):.4f} ± {np.std(values):.4f}"
    assert baseline[0] == "logistic regression"
    assert baseline[4:] == ["–"] * 3
    race = found.races[0]
    ours, *_, yue = structured.inference(race).rows
    assert ours[0] == "bucketed (ours)"
    assert ours[4] == "1.00x"
    assert yue[4] == f"{race.timed[-1].inference / race.timed[0].inference:.2f}x"


def test_what_is_said_of_the_losses_follows_the_numbers(found: Demo) -> None:
    def with_losses(values: list[float]) -> str:
        *models, baseline = (
            replace(m, fits=[replace(fit, ap=ap + 0.01 * k) for k, fit in enumerate(m.fits)])
            for m, ap in zip([*found.models, found.comparison.baseline], values, strict=True)
        )
        both = replace(found.comparison, baseline=baseline)
        return " ".join(structured.about_quality(replace(found, models=models, comparison=both)))

    clear = with_losses([0.5, 0.7, 0.6, 0.55])
    assert "AP loss has the highest AP on every split" in clear
    assert "+0.1500 with AP loss (ahead on 3 of 3 splits)" in clear
    assert "−0.0500 with 0-1 loss (ahead on 0 of 3 splits)" in clear
    spread = 0.01 * (2 / 3) ** 0.5
    assert f"within 0.2000 of each other; one model varies by {spread:.4f}" in clear
    assert "about level" in with_losses([0.7, 0.7, 0.6, 0.55])
