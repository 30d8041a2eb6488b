"""The demonstration: it runs on real data, its checks can fail, and its text, data and page say the same."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rankwise_lab.demo import experiment
from rankwise_lab.demo import page as tables
from rankwise_lab.demo.page import make_part
from rankwise_lab.demo.results import Demo, Fit, Timed, as_dict
from rankwise_lab.progress import Progress
from rankwise_lab.report.page import page as page_of

from rankwise import figures
from rankwise.cli.main import main
from rankwise.figures import as_png, as_svg

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = experiment.Settings(train=0.2, splits=2, folds=2, n_Cs=3, fits=1)
VOID = {"meta", "link"}


@pytest.fixture(scope="module")
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(scope="module")
def found(said: io.StringIO) -> Demo:
    return experiment.run(SMALL, Progress(said))


@pytest.fixture(scope="module")
def page(found: Demo) -> str:
    return page_with(found)


def page_with(found: Demo) -> str:
    part = make_part(found)
    return page_of(part.title, part.as_blocks())


def test_the_checks_hold_on_real_data(found: Demo) -> None:
    assert found.holds, found.checks
    assert len(found.checks) == 7
    assert (found.data.n, found.data.n_pos) == (1797, 174)
    assert found.data.n_train + found.data.n_test == found.data.n
    assert found.data.n_train_pos + found.data.n_test_pos == found.data.n_pos


def test_every_loss_is_trained_beside_a_linear_svc_on_every_split(found: Demo) -> None:
    assert [(model.name, model.loss) for model in found.models] == [
        ("0-1 loss", "zero-one"),
        ("AP loss", "ap"),
        ("NDCG loss", "ndcg"),
        ("LinearSVC", None),
    ]
    for model in found.models:
        assert len(model.fits) == SMALL.splits
        assert len(model.certificates) == (0 if model.loss is None else SMALL.splits)
        assert 0.3 < model.ap.min() <= model.ap.max() < 1.0, "neither hopeless nor saturated"
        assert len({fit.ap for fit in model.fits}) == SMALL.splits, "splits must differ"


def test_every_method_is_timed_on_the_same_problem(found: Demo) -> None:
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


def test_progress_has_a_line_for_each_part(found: Demo, said: io.StringIO) -> None:
    starts = [line.split(":")[0].split(";")[0] for line in said.getvalue().splitlines()]
    assert starts == ["Loading kernels", "Split 1 of 2", "Split 2 of 2", *["Timing inference"] * 3]


def _spoil_fit(found: Demo, **changes: Any) -> Demo:
    """With other numbers in the last fit of the AP loss; those of its certificate by their names."""
    model = found.models[1]
    fit, known = model.fits[-1], Fit.__dataclass_fields__
    assert fit.certificate is not None
    certificate = replace(fit.certificate, **{name: value for name, value in changes.items() if name not in known})
    fit = replace(fit, certificate=certificate, **{name: value for name, value in changes.items() if name in known})
    models = [found.models[0], replace(model, fits=[*model.fits[:-1], fit]), *found.models[2:]]
    return replace(found, models=models)


def _spoil_timed(found: Demo, **changes: Any) -> Demo:
    """With other numbers for the last method of the first race."""
    race, *others = found.races
    timed = [*race.timed[:-1], replace(race.timed[-1], **changes)]
    return replace(found, races=[replace(race, timed=timed), *others])


def _last(found: Demo) -> Timed:
    return found.races[0].timed[-1]


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (lambda found: _spoil_fit(found, gap=2e-3), "every certified gap"),
        (lambda found: _spoil_timed(found, gap=float("nan")), "every certified gap"),
        (lambda found: _spoil_fit(found, objective=1.0), "computed again"),
        (lambda found: _spoil_fit(found, loss=1.1, hinge=1.0), "J is at least the loss"),
        (lambda found: _spoil_timed(found, objective=0.99 * _last(found).dual), "the same minimum"),
        (lambda found: _spoil_timed(found, hinge=_last(found).hinge + 1e-6), "the same J"),
        (lambda found: _spoil_fit(found, ap_sklearn=0.5), "that of scikit-learn"),
        (lambda found: _spoil_fit(found, ap=0.05, ap_sklearn=0.05), "better than chance"),
    ],
)
def test_each_check_can_fail(spoil: Any, check: str, found: Demo) -> None:
    spoilt = spoil(found)
    (failed,) = (name for name, holds in spoilt.checks.items() if not holds)
    assert check in failed
    assert not spoilt.holds
    assert f"  FAILED  {failed}" in make_part(spoilt).as_lines()


def test_the_text_has_every_table_and_check(found: Demo) -> None:
    lines = make_part(found).as_lines(100)
    assert max(map(len, lines)) <= 110
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    for table in (tables.quality(found), *map(tables.inference, found.races)):
        assert table.title in lines
        for row in (table.columns, *table.rows):
            assert list(row) in rows
    for check in found.checks:
        assert f"  ok      {check}" in lines


def test_tables_show_what_was_found(found: Demo) -> None:
    _, ap, _, svc = tables.quality(found).rows
    values = [fit.ap for fit in found.models[1].fits]
    assert ap[1] == f"{np.mean(values):.4f} ± {np.std(values):.4f}"
    assert svc[4:] == ["–"] * 3
    race = found.races[0]
    ours, *_, yue = tables.inference(race).rows
    assert ours[0] == "bucketed (ours)"
    assert ours[4] == "1.00x"
    assert yue[4] == f"{race.timed[-1].inference / race.timed[0].inference:.2f}x"


def test_the_verdict_follows_the_numbers(found: Demo) -> None:
    def with_ap(values: list[float]) -> str:
        models = [
            replace(m, fits=[replace(fit, ap=ap + 0.01 * k) for k, fit in enumerate(m.fits)])
            for m, ap in zip(found.models, values, strict=True)
        ]
        return " ".join(tables.about_quality(replace(found, models=models)))

    clear = with_ap([0.5, 0.7, 0.6, 0.55])
    assert "AP loss has the highest AP on every split" in clear
    assert "+0.1500 with AP loss (ahead on 2 of 2 splits)" in clear
    assert "-0.0500 with 0-1 loss (ahead on 0 of 2 splits)" in clear
    assert "within 0.2000 of each other; one model varies by 0.0050" in clear
    assert "about level" in with_ap([0.7, 0.7, 0.6, 0.55])


def test_the_document_is_plain_data(found: Demo) -> None:
    document = as_dict(found)
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again == document
    assert again["holds"] is True
    assert again["checks"] == found.checks
    assert [curve["name"] for curve in again["curves"]] == [model.name for model in found.models]
    assert list(again["histories"]) == ["0-1 loss", "AP loss", "NDCG loss"]
    for model in again["models"][:3]:
        certificate = model["fits"][0]["certificate"]
        assert again["histories"][model["name"]]["gap"][-1] == certificate["gap"]
        assert len(again["histories"][model["name"]]["gap"]) == certificate["n_iter"]


class _Page(HTMLParser):
    """Which elements are open, every attribute, and the text outside of style."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def values(self, name: str, tag: str | None = None) -> list[str]:
        return [value for t, n, value in self.attributes if n == name and tag in (None, t)]


@pytest.fixture(scope="module")
def parsed(page: str) -> _Page:
    parser = _Page()
    parser.feed(page)
    parser.close()
    return parser


def test_the_page_is_well_formed(page: str, parsed: _Page) -> None:
    assert page.startswith("<!DOCTYPE html>")
    assert parsed.open == []
    for once in ("html", "head", "title", "body", "main", "h1"):
        assert parsed.tags.count(once) == 1
    ids = parsed.values("id")
    assert ids
    assert len(set(ids)) == len(ids)
    targets = {value.removeprefix("#") for value in parsed.values("xlink:href")} | set(
        re.findall(r"url\(#(.+?)\)", page)
    )
    assert targets <= set(ids)


def test_the_page_needs_nothing_else(page: str, parsed: _Page) -> None:
    assert not {"script", "img", "iframe", "object", "embed"} & set(parsed.tags)
    assert parsed.values("href", "link") == ["data:,"], "an icon of nothing, else a browser asks for one"
    assert parsed.values("src") == []
    assert all(value.startswith("#") for value in parsed.values("xlink:href"))
    assert not re.search(r"@import|url\((?!#)", page)
    named = set(re.findall(r"https?://[^\"\s<]+", page))
    assert named <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, (
        "names of SVG, which nothing fetches"
    )


def test_the_page_suits_readers_and_screens(page: str, parsed: _Page) -> None:
    assert parsed.values("lang", "html") == ["en"]
    assert "width=device-width, initial-scale=1" in parsed.values("content", "meta")
    assert "prefers-color-scheme: dark" in page
    assert parsed.values("role", "svg") == ["img", "img"]
    labels = parsed.values("aria-label", "svg")
    assert "Precision against recall" in labels[0]
    assert "duality gap" in labels[1]
    assert parsed.tags.count("figcaption") == parsed.tags.count("figure") == 2
    assert parsed.tags.count("caption") == parsed.tags.count("table") == 4
    assert "currentColor" in page


def test_the_page_has_every_number_of_the_tables(found: Demo, parsed: _Page, page: str) -> None:
    cells = [unescape(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", page)]
    expected: list[str] = []
    for table in (tables.quality(found), *map(tables.inference, found.races)):
        expected += [*table.columns, *(cell for row in table.rows for cell in row)]
    assert cells == expected
    for text in (*tables.facts(found), *tables.about_quality(found), *tables.about_inference(found)):
        assert text in parsed.text
    for check in found.checks:
        assert f"ok {check}" in parsed.text
    assert "FAILED" not in parsed.text


def test_the_page_shows_a_failure(found: Demo) -> None:
    assert '<span class="failed">FAILED</span> every certified gap' in page_with(_spoil_fit(found, gap=1.0))


def test_the_command_prints_and_writes_what_was_found(
    found: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment, "run", lambda: found)
    assert main(["demo", "--json", "demo.json"]) == 0
    printed = capsys.readouterr().out
    assert "\n".join(make_part(found).as_lines(100)) in printed
    assert json.loads(Path("demo.json").read_text("utf-8")) == as_dict(found)
    assert Path("rankwise-demo.html").read_text("utf-8") == page_with(found)
    assert len(list(tmp_path.iterdir())) == 2, "no temporary file may stay behind"


def test_the_command_fails_if_a_check_does(
    found: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment, "run", lambda: _spoil_timed(found, hinge=_last(found).hinge + 1e-6))
    assert main(["demo"]) == 1
    assert "FAILED  all methods find the same J" in capsys.readouterr().out


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
    as_png(figure)
    assert as_svg(figure) == first == as_svg(figures.draw(found.curves, found.histories))
    assert first.startswith("<svg")
    assert first.endswith("</svg>")
    assert "<dc:date>" not in first
    other = as_svg(figure, "other-")
    assert not set(re.findall(r' id="(.+?)"', first)) & set(re.findall(r' id="(.+?)"', other))


def test_a_png_has_both_panels_at_their_size(found: Demo) -> None:
    image = as_png(figures.draw(found.curves, found.histories))
    assert image.startswith(PNG)
    assert len(image) > 20_000
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1500, 585)
