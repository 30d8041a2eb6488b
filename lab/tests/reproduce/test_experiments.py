"""What all experiments share: runs that are cut off go on, other plans are refused, parts become pages."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Capture
from rankwise_lab.reproduce import action_page, cifar_page, detection_page, scaling_page, timing_page
from rankwise_lab.reproduce import timing_results as timed
from rankwise_lab.reproduce.beside import TITLES
from rankwise_lab.reproduce.cifar_results import PAPER as CIFAR_PAPER
from rankwise_lab.reproduce.report import write_index, write_part
from rankwise_lab.reproduce.scaling import ScalingExperiment
from rankwise_lab.reproduce.scaling_curves import OURS, QS, ROWS, ZERO_ONE
from rankwise_lab.reproduce.timing import TimingExperiment
from small_experiments import ACTION, DATA, put

from rankwise.cli.main import main

experiments = pytest.mark.parametrize("name", TITLES)
PAGES: dict[str, Any] = {"action": action_page, "timing": timing_page, "scaling": scaling_page, "cifar": cifar_page}
PAGES["detection"] = detection_page
# Times are left out of a comparison of two runs.
TIMES = {"timing", "inference", "seconds", "total", "products", "warm_seconds", "curve", "machine"}


def untimed(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: untimed(value) for key, value in found.items() if key not in TIMES}
    return [untimed(value) for value in found] if isinstance(found, list | tuple) else found


def numbers_of(found: Any) -> Iterator[Any]:
    if isinstance(found, dict | list | tuple):
        for value in found.values() if isinstance(found, dict) else found:
            yield from numbers_of(value)
    else:
        yield found


def pieces(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.json")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["action", "detection", "cifar"])  # of the others, times are all there is
def test_a_run_that_is_cut_off_goes_on(name: str, wholes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, whole, said = wholes.case(name), wholes.part(name), []
    monkeypatch.setattr("rankwise_lab.report.figure.have_matplotlib", lambda: False)

    def stop(line: str) -> None:
        said.append(line)
        if len(said) in (2, 6, 11):
            raise KeyboardInterrupt

    kept: dict[Path, bytes] = {}
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            case.make(tmp_path, case.plan, stop)
        assert kept.items() <= pieces(tmp_path).items()
        kept = pieces(tmp_path)
    part = case.make(tmp_path, case.plan, said.append)
    assert kept.items() < pieces(tmp_path).items()
    assert not list(tmp_path.rglob("*.checkpoint"))
    assert untimed(part.found) == untimed(whole.found)
    again = case.make(tmp_path, case.plan, lambda line: pytest.fail(line))
    assert {**again.found, "machine": {}} == {**part.found, "machine": {}}
    assert again.figures == {}
    write_part(tmp_path / "written", again)
    assert name == "detection" or "No figures: Matplotlib" in write_index(tmp_path / "written").read_text("utf-8")


@experiments
def test_results_of_another_plan_are_not_mixed_in(name: str, wholes: Any) -> None:
    wholes.part(name)
    case = wholes.case(name)
    with pytest.raises(
        ValueError, match=r"another plan or of other \w+ \(plan\..* there, .* here.*\): name another --out"
    ):
        case.make(wholes.folder, case.other, lambda line: None)


@pytest.mark.parametrize("name", ["timing", "scaling"])
def test_times_of_other_samples_or_at_another_choice_of_C_are_not_mixed_in(name: str, wholes: Any) -> None:
    wholes.part(name)
    experiment = {"timing": TimingExperiment, "scaling": ScalingExperiment}[name]
    for data, plan in ((DATA._replace(digest="abd"), ACTION), (DATA, replace(ACTION, folds=2))):
        other: Any = SimpleNamespace(data=data, classes=[0, 1, 2], chosen=lambda *_: 1.0, plan=plan)
        with pytest.raises(ValueError, match=r"results of another plan or of other samples \(.*\): name another --out"):
            experiment(other, wholes.folder / name, wholes.case(name).plan)


@experiments
def test_a_part_becomes_a_page(name: str, wholes: Any, page_of: Any, tmp_path: Path) -> None:
    part = wholes.part(name)
    page = page_of(part)
    assert len(page.ids) == len(set(page.ids))
    assert all(source.startswith("data:") for source in page.sources)  # nothing from elsewhere
    for table in part.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert {cell for row in table.rows for cell in row if cell} <= set(page.cells)
    for figure, drawing in part.figures.items():
        assert drawing.png.startswith(b"\x89PNG")
        assert (tmp_path / name / f"{figure}.png").is_file()
    rows = list(csv.reader(io.StringIO((tmp_path / f"{name}.csv").read_text(encoding="utf-8"))))
    assert {len(row) for row in rows} == {len(rows[0])}
    numbers = {f"{number}" for number in numbers_of(part.found)}
    cells = {cell for row in rows[1:] for cell in row if re.fullmatch(r"-?[0-9.e-]+", cell)}
    assert len(cells & numbers) > max(20, 0.6 * len(cells))  # the others follow from them


def test_the_command_writes_the_same_report_again(  # the others: in commands/, and with and without pictures
    wholes: Any, place: Path, images: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    found, plan = wholes.found("cifar"), wholes.case("cifar").plan
    monkeypatch.setattr(type(plan), "quick", lambda: plan)
    shutil.copytree(wholes.folder / "cifar", "report/cifar")  # its pieces are finished
    command = ["reproduce", "cifar", "--quick", "--data", str(images)]
    assert main(command) == 0
    printed, text = capsys.readouterr().out, Path("report/index.html").read_text()
    assert json.loads(Path("report/cifar.json").read_text())["seeds"] == json.loads(json.dumps(found["seeds"]))
    for line in cifar_page.conclusions(found):
        assert line in printed
        assert line in unescape(text)
    assert main(command) == 0
    assert Path("report/index.html").read_text() == text


# Verdicts on the paper's claims: each follows from the numbers, and a doctored number flips it

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


MADE_UP = (timing, scaling, action, detection, cifar)


def test_every_experiment_of_the_report_has_claims() -> None:
    assert [make.__name__ for make in MADE_UP] == list(TITLES)


@pytest.mark.parametrize("make", MADE_UP)
def test_good_numbers_reproduce_every_claim_and_each_states_its_criterion(make: Callable[[], Found]) -> None:
    made = PAGES[make.__name__].claims(make())
    assert [claim.holds for claim in made] == [True] * len(made)
    assert len({claim.text for claim in made}) == len(made) >= 2
    assert all(claim.criterion.endswith(".") and claim.ours and claim.paper for claim in made)


TOTAL, NEGATIVES = 0, 1  # panels of AP loss
DOCTORED: list[tuple[str, tuple[Any, ...], Any, int, bool | None]] = [
    # Experiment, what is changed, to what, which claim that changes, and its verdict then.
    ("timing", ("faster", timed.QUOTIENTS[0].name, "total"), 9.9, 0, False),
    ("timing", ("faster", timed.QUOTIENTS[0].name, "replayed"), 9.9, 1, False),
    ("timing", ("faster", timed.QUOTIENTS[3].name, "total"), 1.0, 4, False),
    ("timing", ("mean", "ap_qs", "total"), 3.5, 5, False),
    ("scaling", ("panels", NEGATIVES, "curves", QS, "seconds"), [0.1, 6.0], 0, False),
    ("scaling", ("laws", "ndcg", "plain", "total", "factor"), 2.1, 2, False),
    ("scaling", ("laws", "ap", "all", "factor"), 2.01, 3, False),
    ("scaling", ("panels", TOTAL, "curves", ZERO_ONE, "seconds"), [0.1, 0.4], 4, False),
    ("action", ("difference", "ap", "mean"), [-0.01, 0.01], 0, False),
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
    found = next(make() for make in MADE_UP if make.__name__ == name)
    put(found, path, value)
    made = [claim.holds for claim in PAGES[name].claims(found)]
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
