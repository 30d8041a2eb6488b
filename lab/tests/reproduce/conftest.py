"""Every experiment of the report on tiny data, run once for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import encoded, write_archive
from rankwise_lab.data.cifar10 import ARCHIVE, load_cifar10
from rankwise_lab.detection.store import FeatureStore
from rankwise_lab.report.part import Part
from rankwise_lab.reproduce import action_page, detection, scaling, scaling_page, timing, timing_page
from rankwise_lab.reproduce.report import write_index, write_part
from small_experiments import ACTION, DATA, DETECTION, SCALING, Case, Say, cifar_plan

COLOURS = {"cat": (200, 30, 30), "dog": (30, 200, 30), "emu": (30, 30, 200)}


class Wholes:
    """Parts of runs that nothing cut off, by name of the experiment, made when they are first asked for."""

    def __init__(self, folder: Path, cases: dict[str, Callable[[], Case]]) -> None:
        self.folder, self._cases, self._parts = folder, cases, dict[str, Part]()

    def case(self, name: str) -> Case:
        return self._cases[name]()

    def part(self, name: str) -> Part:
        if name not in self._parts:
            case = self.case(name)
            if case.before is not None:
                self.part(case.before)
            self._parts[name] = case.make(self.folder, case.plan, lambda line: None)
        return self._parts[name]

    def found(self, name: str) -> dict[str, Any]:
        return self.part(name).found


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of JPEG files of three classes, as CIFAR-10 is found."""
    pytest.importorskip("PIL.Image")
    rng, members = np.random.default_rng(0), {}
    for part, count in (("train", 8), ("test", 4)):
        for name, colour in COLOURS.items():
            for i in range(count):
                pixels = rng.integers(0, 256, (32, 32, 3)) * 0.7 + 0.3 * np.array(colour)
                members[f"{part}/{name}/{i:04}.jpg"] = encoded(pixels.astype(np.uint8), "JPEG")
    return write_archive(tmp_path_factory.mktemp("images") / ARCHIVE, members)


@pytest.fixture(scope="session")
def features(tmp_path_factory: pytest.TempPathFactory, write_features: Callable[..., Path]) -> Path:
    """The features of images in which objects are hard to find; the images are beside them, in `kit`."""
    return write_features(tmp_path_factory.mktemp("written") / "features", noise=0.25, windows=60)


@pytest.fixture(scope="session")
def wholes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Wholes:
    def make_detection(folder: Path, plan: Any, say: Say) -> Part:
        from rankwise_lab.reproduce.detection_page import make_part
        from rankwise_lab.reproduce.detection_results import document, judge

        store = FeatureStore.open(request.getfixturevalue("features"))
        experiment = detection.Experiment(store, folder / "detection", plan, say=say)
        return make_part(document(experiment, experiment.run(), judge(experiment), {}), [], "no pictures")

    def make_cifar(folder: Path, plan: Any, say: Say) -> Part:
        from rankwise_lab.reproduce.cifar import Experiment
        from rankwise_lab.reproduce.cifar_page import draw, make_part
        from rankwise_lab.reproduce.cifar_results import document

        archive = request.getfixturevalue("images")
        cifar = load_cifar10(archive, archive.parent)
        found = document(plan, cifar, 12, *Experiment(cifar, folder / "cifar", plan, say=say).run(), {})
        return make_part(found, draw(found))

    def make_cifar_case() -> Case:
        pytest.importorskip("torch")
        return Case(make_cifar, cifar_plan(), replace(cifar_plan(), width=3))

    cases = {
        "timing": lambda: Case(
            lambda folder, plan, say: timing_page.make_part(DATA, folder, plan, ACTION, say),
            timing.Plan(repeats=2),
            timing.Plan(repeats=3),
            "action",
        ),
        "scaling": lambda: Case(
            lambda folder, plan, say: scaling_page.make_part(DATA, folder, plan, ACTION, say),
            SCALING,
            scaling.Plan(),
            "action",
        ),
        "action": lambda: Case(
            lambda folder, plan, say: action_page.make_part(DATA, folder, plan, say), ACTION, replace(ACTION, tol=1e-2)
        ),
        "detection": lambda: Case(make_detection, DETECTION, replace(DETECTION, Cs=(1.0,))),
        "cifar": make_cifar_case,
    }
    return Wholes(tmp_path_factory.mktemp("report"), cases)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Two threads share too little work here, and no bits with one."""
    torch = None
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def page_of(tmp_path: Path, read_page: Any) -> Callable[[Part], Any]:
    """Writes a part into the test's folder, and reads the page that has it."""

    def write(part: Part) -> Any:
        pytest.importorskip("matplotlib")
        write_part(tmp_path, part)
        page = read_page(write_index(tmp_path).read_text(encoding="utf-8"))
        assert not page.open
        return page

    return write
