"""The benchmark of the losses in torch: rows, peers that are missing or die, and memory. No test depends on speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rankwise_lab.benchmarks import finetune, torch_losses  # noqa: E402
from rankwise_lab.benchmarks.arms import Package  # noqa: E402
from rankwise_lab.benchmarks.finetune_arms import ARMS  # noqa: E402
from rankwise_lab.benchmarks.torch_losses import BENCHMARK  # noqa: E402
from rankwise_lab.benchmarks.torch_peers import (  # noqa: E402
    OURS,
    PEERS,
    Batch,
    Peer,
    batch_of,
    pairwise_smooth_ap,
    published_ap_loss,
    step,
)
from rankwise_lab.measuring.machine import growth_of  # noqa: E402

from rankwise.cli.main import main  # noqa: E402
from rankwise.metrics import average_precision  # noqa: E402
from rankwise.torch import ErrorDrivenLoss  # noqa: E402

QUICK = BENCHMARK.sizes.quick()
PAIRWISE = PEERS["pairwise sigmoids"]
MEGABYTE = 2**20
OURS_ONLY = '{"growth": {"ours": 4096}, "seconds": {"ours": 0.001}}\n'
# A command line in a world where a module is not there.
WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
from rankwise.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
BOTH = '{"growth": {"ours": 4096, "peer": 8388608}, "seconds": {"ours": 0.001, "peer": 0.004}}\n'


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one quick run writes."""
    file = tmp_path_factory.mktemp("bench") / "rows.json"
    threads = torch.get_num_threads()
    assert main(["bench", "torch", "--quick", "--json", str(file)]) == 0
    assert torch.get_num_threads() == threads, "as it was before"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _rows(document: dict[str, Any], number: int) -> list[dict[str, Any]]:
    (section,) = (section for section in document["sections"] if section["number"] == number)
    rows: list[dict[str, Any]] = section["rows"]
    return rows


@pytest.mark.slow
def test_quick_benchmark_names_versions_and_threads(document: dict[str, Any]) -> None:
    assert (document["benchmark"], document["quick"]) == ("torch", True)
    described = document["machine"]
    assert described["torch"] == torch.__version__
    assert described["torch_threads"] == described["threads"] == 1
    assert {"cpu", "pytorch-metric-learning", "libauc"} <= set(described)


@pytest.mark.parametrize("loss", ["AP", "NDCG"])
def test_speed_is_measured_over_sorting_and_over_the_core(loss: str, document: dict[str, Any]) -> None:
    rows = [row for row in _rows(document, 2) if row["what"].startswith(f"{loss}, ")]
    found = {row["what"].removeprefix(f"{loss}, "): row["target"]["bound"] for row in rows}
    assert found == {
        "(10,000,), P = 100: over torch.sort": 0.1,
        '(10,000,), P = 100: over torch.sort, backend="tensor"': 4,
        "(4, 1,000), P = 20: over torch.sort": 0.3,
        '(4, 1,000), P = 20: over torch.sort, backend="tensor"': 4,
        "(10,000,), P = 100: over the core": 1.2,
        "(4, 1,000), P = 20: over the core": 1.2,
    }
    for row in rows:
        over, under = row["parts"].values()
        assert row["measured"] == pytest.approx(over / under)
        assert row["measured"] > 0
        assert row["target"]["sense"] == "<="


def test_the_issues_sizes_are_those_of_a_full_run() -> None:
    full = BENCHMARK.sizes.sized(quick=False)
    assert (full.flat, full.rows) == ((10**6, 10**3), (64, 10**4, 100))
    assert [n for n, _ in full.flat_core] == [10**5, 10**6]
    assert full.scores == (256, 1024, 4096, 10**5)
    assert full.embeddings == (256, 1024, 4096)
    assert (full.rare, full.remembered) == ((300 + 300_000,), (50_000, 5))


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_measured_or_said_to_be_missing(name: str, document: dict[str, Any]) -> None:
    rows = [row for row in _rows(document, 3) if row["what"].startswith(f"{name}, B = ")]
    peer = PEERS[name]
    if not peer.package.installed:
        (row,) = rows
        assert row["what"].endswith(f": not installed: {peer.package.install}")
        assert row["measured"] is None
        return
    time, memory = rows
    ours = OURS[peer.kind][0]
    assert time["what"].endswith(f": time, over {ours}")
    assert time["measured"] == pytest.approx(time["parts"]["peer seconds"] / time["parts"]["ours seconds"])
    assert memory["what"].endswith(f": peak extra memory, over {ours}")
    if Path("/proc/self/status").exists():
        assert {"peer bytes", "ours bytes"} <= set(memory["parts"])


def test_soft_losses_are_measured_over_the_hinge_and_a_memory_over_a_step_without() -> None:
    rows = [row for case in torch_losses._soft(QUICK) for row in case.rows()]
    assert {row.what: row.target.bound for row in rows if row.target is not None} == {
        "SmoothRankLoss, (10,000,), P = 100: over APHingeLoss": 1.5,
        "ErrorDrivenLoss, (10,000,), P = 100: over APHingeLoss": 1.5,
        "a step on 125 images, memory of (1,000, 5): over cross-entropy": 1.15,
    }
    for row in rows:
        over, under = row.parts.values()
        assert row.measured == pytest.approx(over / under)


def test_the_published_loop_is_to_be_20_times_slower_than_ours(document: dict[str, Any]) -> None:
    time, _ = (row for row in _rows(document, 3) if row["what"].startswith("AP-loss as published, B = 2,002"))
    assert time["target"] == {"sense": ">=", "bound": 20}


@pytest.mark.parametrize("seed", range(5))
def test_the_published_loop_gives_the_value_and_the_update_that_ours_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(rng.random(300) < 0.1)
    found = []
    for loss in (published_ap_loss, ErrorDrivenLoss()):
        scores = torch.from_numpy(2 * np.random.default_rng([seed, 1]).standard_normal(300)).requires_grad_()
        value = loss(scores, target)
        value.backward()
        found.append((value.item(), scores.grad.numpy()))
    (value, update), (ours, our_update) = found
    assert value == pytest.approx(ours, rel=1e-12)
    np.testing.assert_allclose(update, our_update, atol=1e-15, rtol=1e-10)


def test_a_package_that_is_not_there_is_a_row_with_the_command_that_installs_it() -> None:
    peer = Peer("AnyLoss", "scores", PAIRWISE.make, Package("no_such_package", "pip install no-such-package"))
    (row,) = torch_losses._beside(peer, 400, QUICK)
    assert row.what == "AnyLoss, B = 400: not installed: pip install no-such-package"
    assert row.measured is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to the limit")
def test_a_peer_that_runs_out_of_memory_is_a_row_that_says_so() -> None:
    (row,) = torch_losses._beside(PAIRWISE, 400_000, QUICK)  # 8,000 positives: 12.8 GB for each matrix
    assert row.what == "pairwise sigmoids, B = 400,000: out of memory (8 GB)"
    assert row.measured is None
    assert set(row.parts) == {"ours seconds", "ours bytes"}
    assert all(value > 0 for value in row.parts.values())


def test_a_peer_that_takes_too_long_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(command: list[str], **options: Any) -> None:
        raise subprocess.TimeoutExpired(command, options["timeout"], output=OURS_ONLY.encode())

    monkeypatch.setattr(subprocess, "run", late)
    (row,) = torch_losses._beside(PAIRWISE, 400, QUICK)
    assert row.what == "pairwise sigmoids, B = 400: more than 60 s"
    assert row.parts == {"ours seconds": 0.001, "ours bytes": 4096}


def _ends(monkeypatch: pytest.MonkeyPatch, status: int, said: str, wrong: str = "") -> None:
    done: Any = subprocess.CompletedProcess([], status, said, wrong)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: done)


def test_a_peer_that_is_killed_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _ends(monkeypatch, -9, OURS_ONLY)
    (row,) = torch_losses._beside(PAIRWISE, 400, QUICK)
    assert row.what == "pairwise sigmoids, B = 400: ended by signal 9"


@pytest.mark.parametrize("said", ["", OURS_ONLY])
def test_a_peer_that_is_called_wrongly_stops_the_benchmark(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _ends(monkeypatch, 1, said, "Traceback …\nTypeError: no such argument\n")
    with pytest.raises(OSError, match=r"pairwise sigmoids, B = 400.*TypeError: no such argument"):
        list(torch_losses._beside(PAIRWISE, 400, QUICK))


def test_ours_must_be_measured_in_time() -> None:
    with pytest.raises(OSError, match=r"more than 0\.01 s"):
        list(torch_losses._beside(PAIRWISE, 400, replace(QUICK, patience=0.01)))


def test_a_peer_is_told_as_a_multiple_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    _ends(monkeypatch, 0, OURS_ONLY + BOTH)
    time, memory = torch_losses._beside(PAIRWISE, 400, QUICK)
    assert time.measured == pytest.approx(0.004 / 0.001)
    assert memory.measured == pytest.approx(8.0), "over a megabyte, which is more than ours"


@pytest.mark.parametrize(
    ("ours", "peer", "ratio"),
    [(2, 8, 4.0), (0, 8, 8.0), (0.5, 0.5, None), (None, None, None)],
)
def test_memory_below_a_megabyte_is_not_told_apart(ours: float | None, peer: float | None, ratio: float | None) -> None:
    growth = {
        who: None if value is None else int(value * MEGABYTE) for who, value in {"ours": ours, "peer": peer}.items()
    }
    assert torch_losses._memory_ratio(growth) == ratio


def test_growth_is_what_a_task_holds_at_its_peak() -> None:
    def task() -> None:
        for _ in range(3):
            np.ones(50 * MEGABYTE, np.uint8)

    task()
    growth = growth_of(task)
    if not Path("/proc/self/status").exists():
        assert growth is None
    else:
        assert growth is not None
        assert 49 * MEGABYTE < growth < 75 * MEGABYTE


def test_a_batch_of_scores_has_two_positives_in_a_hundred() -> None:
    scores, target = batch_of("scores", 1000)
    assert scores.shape == target.shape == (1000,)
    assert scores.requires_grad
    assert int(target.sum()) == 20


def test_a_batch_of_embeddings_has_classes_in_order_each_with_as_many_members_as_there_are_classes() -> None:
    embeddings, labels = batch_of("embeddings", 64)
    assert embeddings.shape == (64, 128)
    assert embeddings.requires_grad
    assert labels.tolist() == [label for label in range(8) for _ in range(8)]
    with pytest.raises(ValueError, match="must be a square, got"):
        batch_of("embeddings", 60)


def test_pairwise_sigmoids_tend_to_average_precision_where_scores_are_far_apart() -> None:
    rng = np.random.default_rng(0)
    scores, relevant = rng.permutation(50).astype(np.float32), rng.random(50) < 0.3
    value = pairwise_smooth_ap(torch.from_numpy(scores), torch.from_numpy(relevant))
    assert value.item() == pytest.approx(1 - float(average_precision(scores, relevant)), abs=1e-6)


def test_a_step_leaves_the_gradient_of_one_step() -> None:
    inputs = torch.tensor([1.0, 2.0], requires_grad=True)
    task = step(lambda values, truth: (values * truth).sum(), Batch(inputs, torch.tensor([3.0, 4.0])))
    task()
    task()
    assert inputs.grad is not None
    assert inputs.grad.tolist() == [3.0, 4.0]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with an archive of images that are never decoded."""
    (tmp_path / "picture").touch()
    with tarfile.open(tmp_path / "cifar10-jpeg.tar.xz", "w:xz") as archive:
        for part in ("train", "test"):
            archive.add(tmp_path / "picture", f"{part}/cat/0001.jpg")
    return tmp_path


def _names(package: str, extra: str, said: str, wrong: str) -> bool:
    """Whether a command said nothing but how to install a package."""
    hint = f"pip install 'rankwise[{extra}]' (in a checkout: pip install '.[{extra}]')"
    last = wrong.splitlines()[-1]
    return last == f"rankwise: this needs {package}: {hint}" and "Traceback" not in wrong and said == ""


@pytest.mark.parametrize("benchmark", ["torch", "finetune"])
def test_without_torch_one_line_names_the_extra(benchmark: str, data: Path) -> None:
    command = [sys.executable, "-c", WITHOUT.format(module="torch"), "bench", benchmark, "--quick"]
    environment = {**os.environ, "RANKWISE_DATA": str(data)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert _names("torch", "torch", done.stdout, done.stderr)


def test_without_pillow_one_line_names_the_extra(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(data))
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(data / "cache"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["bench", "finetune", "--quick"]) == 2
    assert _names("PIL", "images", *capsys.readouterr())


def _found(seeds: Sequence[int], noises: Sequence[float]) -> list[finetune.Record]:
    return [
        finetune.Record(seed, noise, arm.name, ["cat"], 0.2, 0.3 + 0.1 * seed, 125, 0.01, [0.3], [0.3], 1.0)
        for noise in noises
        for seed in seeds
        for arm in ARMS
    ]


@pytest.mark.parametrize(
    ("options", "seeds", "kept_in"),
    [
        ([], 5, "rankwise-finetune"),
        (["--seeds", "3", "--results", "mine"], 3, "mine"),
        (["--quick"], 2, None),
        (["--quick", "--results", "mine"], 2, "mine"),
        (["--quick", "--arms", "softmax", "cross-entropy"], 2, None),
    ],
)
def test_finetuning_is_run_for_the_seeds_asked_for_and_told(
    options: list[str],
    seeds: int,
    kept_in: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: dict[str, Any] = {}

    def run(folder: Path, seeds: Sequence[int], plan: Any, arms: Any, **options: Any) -> list[finetune.Record]:
        asked.update(folder=folder, seeds=seeds, plan=plan, arms=arms, **options)
        return _found(seeds, plan.noises)

    monkeypatch.setattr(finetune, "run", run)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "finetune", "--jobs", "2", "--json", "found.json", *options]) == 0
    assert list(asked["seeds"]) == list(range(seeds))
    assert asked["n_jobs"] == 2
    named = ["cross-entropy", "softmax"] if "--arms" in options else [a.name for a in ARMS if a.package.installed]
    assert [arm.name for arm in asked["arms"]] == named
    assert asked["plan"] == (finetune.Plan.sized("--quick" in options))
    if kept_in is None:
        assert not asked["folder"].parent.exists(), "gone with the run"
    else:
        assert asked["folder"] == Path(kept_in)
    written = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert written["quick"] is ("--quick" in options)
    assert all(ARMS[0].name in of_noise["ap"] for of_noise in written["noises"])
    assert f"{seeds} seeds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--jobs", "-1"], "--jobs must be at least 1, got -1"),
        (["--json", "same", "--results", "same"], "--results same is a file; name a folder"),
        (["--json", "both", "--results", "both"], "cannot both be both; name another file"),
        (["--quick"], "cifar10-jpeg.tar.xz"),
        (["--arms", "focal", "fokal"], "no arm 'fokal': arms are cross-entropy, weighted"),
    ],
    ids=["seeds", "jobs", "a file", "one place for both", "no data", "an arm"],
)
def test_finetuning_refuses_in_one_line(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RANKWISE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("same").touch()
    assert main(["bench", "finetune", *options]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("rankwise: ")
    assert said in line
