"""`rankwise detect train`: train a detector of a class on a features folder."""

from __future__ import annotations

import argparse
import math
import shutil
from pathlib import Path
from typing import Any

from rankwise.cli import (
    INTERRUPTED,
    Voice,
    add_json,
    add_parser,
    add_quiet,
    check_files,
    counted,
    file_name,
    is_standard,
    real,
    whole,
    write_document,
)
from rankwise.metrics import as_loss
from rankwise_lab.commands.options import add_option

_STARTS = ["mean", "whole", "centre", "random"]
_N_CS, _FOLDS = 6, 5
_INIT_HELP = (
    "where training starts in each image: the mean of its windows, the whole image, a window in the centre, or a "
    "random one (default: mean)"
)
_EPILOG = """\
training:
  Training knows which images contain the class, not where. It alternates between two steps: choose one window in each
  image that contains the class, and solve the convex problem for these windows. The result depends on the start. Images
  in which every object of the class is marked difficult are left out.

choice of C:
  With --C auto, the chosen C is the one whose detector ranks held-out images best (average precision over images). The
  held-out images are cross-validation folds, or the set named with --val. The final fit uses the images of --val only
  if --set includes them. With --set train alone, --val val is the default if that set exists.

interrupting:
  If training is interrupted or killed, run the same command again: it continues from the last checkpoint and ends with
  the same model.

examples:
  rankwise detect train features/ --class scallop -o scallop.rw
  rankwise detect train features/ --class scallop -o scallop.rw --val val --loss zero-one
  rankwise detect train features/ --class scallop -o scallop.rw --C 100 --init whole --json -
"""


def add_command(steps: Any) -> None:
    """The step's arguments."""
    parser = add_parser(
        steps,
        "train",
        run,
        short="train a detector of a class",
        long="Train a detector of a class from labels of whole images.",
        epilog=_EPILOG,
    )
    parser.add_argument("folder", type=file_name, metavar="FEATURES", help="folder written by rankwise detect prepare")
    parser.add_argument("--class", dest="name", required=True, metavar="NAME", help="class to detect")
    output = "file to write the model to"
    parser.add_argument("-o", "--output", type=file_name, required=True, metavar="MODEL.rw", help=output)
    model = parser.add_argument_group("model")
    add_option(model, "--loss", _loss, "ap", "LOSS", "ranking loss to minimise, such as ndcg or ndcg@10 (default: ap)")
    weight = "weight of the loss against the regularisation; auto chooses it by validation (default: auto)"
    add_option(model, "--C", lambda text: None if text == "auto" else _positive(text), None, "auto|NUMBER", weight)
    model.add_argument(
        "--set", nargs="+", default=["trainval"], metavar="NAME", help="image sets to train on (default: trainval)"
    )
    model.add_argument("--init", choices=_STARTS, default="mean", help=_INIT_HELP)
    choice = parser.add_argument_group("choice of C, with --C auto")
    choice.add_argument("--Cs", type=whole(1), metavar="N", help=f"number of values to try (default: {_N_CS})")
    which = choice.add_mutually_exclusive_group()
    which.add_argument("--cv", type=whole(2), metavar="N", help=f"number of cross-validation folds (default: {_FOLDS})")
    which.add_argument("--val", metavar="SET", help="image set to use instead of folds (default: see below)")
    solver = parser.add_argument_group("solver")
    tol = "stop when the objective is within this fraction of the minimum (relative duality gap; default: 0.001)"
    add_option(solver, "--tol", _positive, 1e-3, "TOL", tol)
    threads = "threads for scoring windows and for the search for most violating rankings; -1 uses all (default: 1)"
    add_option(solver, "--threads", whole(1, or_all=True), 1, "N", threads)
    seed = "random seed for the split into folds and for --init random (default: 0)"
    add_option(solver, "--seed", whole(0, 2**32 - 1), 0, "N", seed)
    add_option(solver, "--max-outer", whole(1), 50, "N", "largest number of alternations (default: 50)")
    kept = "folder for checkpoints (default: MODEL.rw.checkpoint, removed at the end)"
    add_option(solver, "--checkpoint", file_name, None, "DIR", kept)
    report = parser.add_argument_group("report")
    add_json(report, "the summary")
    add_quiet(report)


def _loss(text: str) -> str:
    try:
        as_loss(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).replace(", or a Loss object", "")) from None
    return text


def _positive(text: str) -> float:
    return real(text, lambda value: 0.0 < value < math.inf, "is not a positive number")


def _check(arguments: argparse.Namespace) -> None:
    """Refuse a model on standard output, and options that say how C is chosen where C is given."""
    if is_standard(arguments.output):
        raise ValueError("-o -: a model cannot be written to standard output; name a file")
    given = [f"--{name}" for name in ("Cs", "cv", "val") if getattr(arguments, name) is not None]
    if arguments.C is not None and given:
        raise ValueError(f"{given[0]} controls how C is chosen, but --C is {arguments.C:g}; remove one of them")


def run(arguments: argparse.Namespace) -> int:
    """Train, write the model, and print a summary; 130 if interrupted, which loses no finished round."""
    from rankwise_lab.detection.detector import labelled
    from rankwise_lab.detection.detector_file import write_detector
    from rankwise_lab.detection.store import FeatureStore

    _check(arguments)
    check_files({}, {"--output": arguments.output, "--json": arguments.json})
    voice = Voice(quiet=arguments.quiet, aside=is_standard(arguments.json))
    store = FeatureStore.open(arguments.folder)
    known = labelled(store, arguments.name, arguments.set)
    voice.say(_described(arguments, known, store))
    own = arguments.checkpoint is None
    checkpoint = arguments.output.with_name(f"{arguments.output.name}.checkpoint") if own else arguments.checkpoint
    try:
        with voice.noting_warnings():
            model, choice = _trained(arguments, store, checkpoint, voice)
    except KeyboardInterrupt:
        voice.note(
            f"interrupted: {arguments.output} was not written; run the same command to continue from {checkpoint}"
        )
        return INTERRUPTED
    note = {"sets": arguments.set, "start": arguments.init, "choice": choice}
    write_detector(arguments.output, model, arguments.name, store.settings, note)
    if own:
        shutil.rmtree(checkpoint, ignore_errors=True)
    voice.say(*_summary(model, arguments, choice))
    write_document(arguments.json, "detect train", _document(model, arguments, store, known, choice, voice.notes))
    return 0


def _trained(
    arguments: argparse.Namespace, store: Any, checkpoint: Path, voice: Voice
) -> tuple[Any, dict[str, Any] | None]:
    """The model, and how its C was chosen, if it was."""
    from rankwise_lab.detection.detector import Recipe, choose_C, grid, train, train_cv

    recipe = Recipe(
        arguments.loss,
        arguments.init,
        tol=arguments.tol,
        max_outer=arguments.max_outer,
        n_threads=arguments.threads,
        seed=arguments.seed,
    )
    name, sets = arguments.name, arguments.set
    running: dict[str, Any] = {"checkpoint": checkpoint, "verbose": 0 if arguments.quiet else 1}
    if arguments.C is not None:
        return train(store, name, sets, recipe, C=arguments.C, **running), None
    n_Cs = _N_CS if arguments.Cs is None else arguments.Cs
    val = arguments.val
    if val is None and arguments.cv is None and sets == ["train"] and "val" in store.sets:
        val = "val"
    if val is None:
        cv = _FOLDS if arguments.cv is None else arguments.cv
        voice.progress(f"choosing C among {n_Cs} on {cv} folds …")
        model = train_cv(store, name, sets, recipe, Cs=n_Cs, cv=cv, **running)
        return model, {"folds": cv, "C": model.Cs_.tolist(), "scores": model.scores_.mean(axis=1).tolist()}
    Cs = grid(store, name, sets, recipe, n_Cs)
    voice.progress(f"choosing C among {n_Cs} on {val} …")
    chosen = choose_C(
        store,
        name,
        sets,
        val,
        Cs,
        recipe,
        checkpoint=checkpoint,
        progress=lambda C, ap: voice.progress(f"C = {C:.4g}: average precision of the images of {val} {ap:.4f}"),
    )
    choice = {"set": val, "C": chosen.Cs.tolist(), "scores": chosen.scores.tolist()}
    return train(store, name, sets, recipe, C=chosen.C, **running), choice


def _described(arguments: argparse.Namespace, known: Any, store: Any) -> str:
    windows = int(store.bags[known.images].n_candidates)
    return (
        f"{arguments.folder}: {counted(known.images.size, 'image')} of {' and '.join(arguments.set)}, "
        f"{int(known.relevant.sum()):,} with {arguments.name}; {counted(windows, 'window')} of "
        f"{counted(store.bags.width, 'feature')}"
    )


def _summary(model: Any, arguments: argparse.Namespace, choice: dict[str, Any] | None) -> list[str]:
    """What was learnt, how surely, and at what cost."""
    timing = model.timing_
    lines = [f"loss {arguments.loss}, C = {model.C_:.4g}"]
    if choice is not None:
        where = f"on {choice['folds']} folds" if "folds" in choice else f"on {choice['set']}"
        lines = [f"loss {arguments.loss}, C = {model.C_:.4g} chosen by average precision of images {where}:"]
        for C, score in zip(choice["C"], choice["scores"], strict=True):
            lines.append(f"{'*' if model.C_ == C else ' '} {C:12.4g}  {score:8.4f}")
    return [
        *lines,
        f"objective {model.objective_:.6g} after {counted(model.n_iter_, 'alternation')}; the last convex problem was "
        f"solved to a relative gap of {model.gap_:.1e}",
        f"{counted(timing['passes'], 'pass', 'passes')} over the windows, "
        f"{counted(timing['calls'], 'inference call')}, {timing['total']:.2f} s ({timing['inference']:.3f} s in "
        "inference)",
        f"model: {arguments.output}",
    ]


def _document(
    model: Any, arguments: argparse.Namespace, store: Any, known: Any, choice: dict[str, Any] | None, notes: list[str]
) -> dict[str, Any]:
    """The same and more as plain data."""
    timing = model.timing_
    return {
        "model": arguments.output,
        "class": arguments.name,
        "features": {"folder": arguments.folder, **store.settings},
        "sets": arguments.set,
        "images": known.images.size,
        "positives": int(known.relevant.sum()),
        "loss": arguments.loss,
        "C": model.C_,
        "choice": choice,
        "init": arguments.init,
        "objective": model.objective_,
        "dual": model.dual_,
        "gap": model.gap_,
        "tol": model.tol,
        "converged": model.converged_,
        "outer_steps": model.n_iter_,
        "objectives": model.history_["objective"],
        "passes": timing["passes"],
        "inference_calls": timing["calls"],
        "seconds": {name: timing[name] for name in ("total", "inference", "products")},
        "notes": notes,
    }
