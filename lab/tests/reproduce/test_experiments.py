"""What all experiments share: runs that are cut off go on, other plans are refused, parts become pages."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Capture
from rankwise_lab.reproduce import action_page, cifar_page, detection_page, scaling_page, timing_page
from rankwise_lab.reproduce.action import MEASURES
from rankwise_lab.reproduce.beside import TITLES
from rankwise_lab.reproduce.scaling import ScalingExperiment
from rankwise_lab.reproduce.scaling_curves import QS
from rankwise_lab.reproduce.timing import TimingExperiment
from rankwise_lab.reproduce.timing_results import QUOTIENTS
from small_experiments import ACTION, DATA, put

from rankwise.cli.main import main

experiments = pytest.mark.parametrize("name", TITLES)
PAGES: dict[str, Any] = {"action": action_page, "timing": timing_page, "scaling": scaling_page, "cifar": cifar_page}
PAGES["detection"] = detection_page
# Where times are not all there is, they are left out of a comparison of two runs.
TIMES = {"timing", "inference", "seconds", "total", "products", "warm_seconds", "curve", "machine"}
# Where they are what it is about.
TIMED = {"training", "per_call", "replayed", "load", "law", "laws", "sort", "mean", "faster"}
TIMED |= {"deviation", "replayed_total", "replayed_deviation"}


def untimed(found: Any, left_out: set[str]) -> Any:
    if isinstance(found, dict):
        return {key: untimed(value, left_out) for key, value in found.items() if key not in left_out}
    return [untimed(value, left_out) for value in found] if isinstance(found, list | tuple) else found


def numbers_of(found: Any) -> Iterator[Any]:
    if isinstance(found, dict | list | tuple):
        for value in found.values() if isinstance(found, dict) else found:
            yield from numbers_of(value)
    else:
        yield found


def pieces(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.json")}


@pytest.mark.slow
@experiments
def test_a_run_that_is_cut_off_goes_on(name: str, wholes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, whole, said = wholes.case(name), wholes.part(name), []
    monkeypatch.setattr("rankwise_lab.report.figure.have_matplotlib", lambda: False)  # figures take the longest

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
    left_out = TIMES | TIMED if name in ("timing", "scaling") else TIMES
    assert untimed(part.found, left_out) == untimed(whole.found, left_out)
    again = case.make(tmp_path, case.plan, lambda line: pytest.fail(line))
    assert {**again.found, "machine": {}} == {**part.found, "machine": {}}


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


@pytest.mark.parametrize(("name", "given"), [("detection", "features"), ("cifar", "images")])  # others in commands/
def test_the_command_writes_the_same_report_again(
    name: str,
    given: str,
    wholes: Any,
    place: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    found, plan = wholes.found(name), wholes.case(name).plan
    monkeypatch.setattr(type(plan), "quick", lambda: plan)
    shutil.copytree(wholes.folder / name, f"report/{name}")  # its pieces are finished
    option = "--features" if name == "detection" else "--data"
    command = ["reproduce", name, "--quick", option, str(request.getfixturevalue(given))]
    assert main(command) == 0
    printed, text = capsys.readouterr().out, Path("report/index.html").read_text()
    written = json.loads(Path(f"report/{name}.json").read_text())
    for key in {"classes", "seeds", "mean"} & set(found):
        assert written[key] == json.loads(json.dumps(found[key]))
    for line in PAGES[name].conclusions(found):
        assert line in printed
        assert line in unescape(text)
    assert main(command) == 0
    assert Path("report/index.html").read_text() == text


@pytest.mark.parametrize("name", [name for name in TITLES if name != "detection"])
def test_without_matplotlib_a_line_says_that_there_are_no_figures(
    name: str, wholes: Any, page_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wholes.part(name)
    monkeypatch.setattr("rankwise_lab.report.figure.have_matplotlib", lambda: False)
    case = wholes.case(name)
    part = case.make(wholes.folder, case.plan, lambda line: None)
    assert part.figures == {}
    page_of(part)
    assert "No figures: Matplotlib is not installed" in (tmp_path / "index.html").read_text(encoding="utf-8")


AP_MEAN, OLDER = ("difference", "ap", "mean"), ("faster", QUOTIENTS[3].name, "total")
TESTS, LAW = ("tests", "ndcg", "ours"), ("laws", "ap", "all", "factor")
INSIDE = [
    (("classes", k, loss, metric, "at_edge"), False)
    for k in range(3)
    for loss, metrics in MEASURES.items()
    for metric in metrics
]
# Experiment, what is changed to what, and what a sentence then says.
SENTENCES: list[tuple[str, list[tuple[tuple[Any, ...], Any]], str]] = [
    ("action", [(AP_MEAN, [0.01, 0.02])], "AP loss is better beyond chance, as in the paper"),
    ("action", [(AP_MEAN, [-0.02, -0.01])], "0-1 loss is better beyond chance, unlike in the paper"),
    ("action", [(AP_MEAN, [-0.02, 0.01])], "within chance"),
    ("action", [((*TESTS, "p_t"), 0.01), ((*TESTS, "p_w"), 0.02)], "beyond chance;"),
    ("action", [((*TESTS, "p_t"), 0.01), ((*TESTS, "p_w"), 0.2)], "by one test only;"),
    ("action", [((*TESTS, "p_t"), 0.1), ((*TESTS, "p_w"), 0.2)], "within chance;"),
    ("action", [*INSIDE, (("classes", 2, "zero-one", "ndcg", "at_edge"), True)], "for yak (0-1 loss by NDCG)."),
    ("timing", [(OLDER, 0.5)], "2.0 times slower than Mohapatra et al. 2014"),
    ("timing", [(OLDER, 1.04)], "AP_QS is as fast as Mohapatra et al. 2014"),
    ("timing", [(("agreement", "ndcg", "bracketed"), False)], "do not all end at the same minimum"),
    ("timing", [(("mean", key, "total"), time) for key, time in (("zero_one", 1.0), ("ap_qs", 2.0), ("ndcg_qs", 0.5))],
     "Over a training, 0-1 loss takes longer than NDCG_QS."),
    ("scaling", [(LAW, 1.9)], "within 1.90 × of all 9 times of a call, to 4,000 samples. This is within the limit"),
    ("scaling", [(LAW, 2.5)], "This is over the limit of 2 ×. A separate law for each axis is within"),
    ("scaling", [(("load",), [2.25]), (("machine", "cores"), 2)], "a load average of up to 2.2 on 2 cores"),
    ("cifar", [(("differences", "ap", "final", "low"), 0.001), (("differences", "ap", "final", "high"), 0.002)],
     "the paper's gain appears."),
    ("cifar", [(("differences", "ap", "final", "low"), -0.2), (("differences", "ap", "final", "high"), -0.1)],
     "the gain is negative"),
    ("cifar", [(("differences", "ap", "final", "low"), -0.2), (("differences", "ap", "final", "high"), 0.1)],
     "within chance"),
    ("cifar", [(("differences", "ap", "final", "low"), None)], "too few seeds"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "said"), SENTENCES)
def test_sentences(name: str, changes: list[tuple[tuple[Any, ...], Any]], said: str, wholes: Any) -> None:
    found = deepcopy(wholes.found(name))
    for path, value in changes:
        put(found, path, value)
    assert any(said in line for line in PAGES[name].conclusions(found))


def test_a_faster_method_is_said_to_be_so_by_how_much_on_each_axis(wholes: Any) -> None:
    found = deepcopy(wholes.found("scaling"))
    for panel in found["panels"]:
        if (panel["part"], panel["loss"], panel["axis"]) == ("training", "ap", "total"):
            panel["curves"] = {key: curve | {"seconds": [1.0, 1.0]} for key, curve in panel["curves"].items()}
            assert QS in panel["curves"]
    (line,) = (line for line in scaling_page.conclusions(found) if line.startswith("AP over AP_QS"))
    assert "all samples at 1:10: 1.0 × (1.0 × over ours)" in line
    assert "not always faster" in line
